import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { attribute, buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { explainResultSchema } from '../../../src/quality/explain/explain.js';
import { recordedLogs } from '../../fakes/trtexec.js';
import { trtforge } from '../../support/trtforge.js';

const main = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'trtforge-explain-command-'));
const at = (name: string) => join(root, name);
const recorded = (name: string) => readFileSync(join(recordedLogs, `${name}.log`), 'utf8');
afterAll(() => rmSync(root, { recursive: true }));

async function explain(words: readonly string[]) {
  const { exitCode, out, err } = await trtforge(['explain', ...words], { ...process.env, NO_COLOR: '1' });
  return { status: exitCode, stdout: out, stderr: err };
}

/** In a process of its own, which has this as its standard input. */
function piped(input: string) {
  const { status, stdout } = spawnSync(process.execPath, [main, 'explain', '-'], {
    encoding: 'utf8',
    input,
    env: { ...process.env, NO_COLOR: '1' },
  });
  return { status, stdout };
}

const FOREIGN =
  '[11/20/2026-10:00:00] [E] Error[10]: Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[cast...gate]}.)';

beforeAll(async () => {
  const graph = new GraphBuilder('mask');
  graph.input('x', 'float32', ['n', 4]);
  graph.node('Cast', { inputs: ['x'], outputs: ['c'], name: 'cast', attributes: { to: attribute.int(1) } });
  graph.node('Exp', { inputs: ['c'], outputs: ['e'], name: 'middle' });
  graph.node('Sigmoid', { inputs: ['e'], outputs: ['y'], name: 'gate' });
  graph.output('y', 'float32', ['n', 4]);
  await writeModel(buildModel(graph, { opset: 17 }), at('mask.onnx'));
  writeFileSync(at('foreign.log'), `${FOREIGN}\n`);
  writeFileSync(at('several.log'), recorded('10.6-err_vc_no_lean') + recorded('10.6-planversion'));
  writeFileSync(at('empty.log'), '');
  writeFileSync(at('packed.log'), gzipSync(recorded('10.6-planversion')));
  mkdirSync(at('folder'));
});

describe('trtforge explain', async () => {
  test('states what is wrong, why, and the remedy', async () => {
    const { status, stdout } = await explain([join(recordedLogs, '10.6-err_mempool_mib.log')]);
    expect(status).toBe(1);
    expect(stdout).toMatch(
      /\(TensorRT 10\.6\.0\): passed\n\nerror {3}workspace-parsed-tiny line 7\n {2}The workspace/,
    );
    expect(stdout).toContain('workspace:32768');
  });

  test('gives one result by its schema', async () => {
    const { stdout } = await explain([at('several.log'), '--json']);
    const answer: unknown = JSON.parse(stdout);
    expect(explainResultSchema.safeParse(answer).error).toBeUndefined();
    expect(answer).toMatchObject({
      ok: false,
      command: 'explain',
      outcome: 'failed',
      issues: [{ id: 'lean-runtime-missing', severity: 'error' }],
    });
  });

  test('names the runs of a log that did not pass', async () => {
    const { stdout } = await explain([at('several.log')]);
    expect(stdout).toMatch(
      /: failed\nIt has 2 runs: 1 passed, 1 failed\.\n {2}line 1: failed: \.\/trtexec --onnx/,
    );
  });

  test('names what lies behind a ForeignNode, with the model', async () => {
    expect((await explain([at('foreign.log')])).stdout).not.toContain('In the model');
    const { stdout } = await explain([at('foreign.log'), '--model', at('mask.onnx')]);
    expect(stdout).toContain('In the model 3 nodes lie on the way: 1 Cast, 1 Exp, 1 Sigmoid.');
  });

  test('reads standard input', async () => {
    const { stdout, status } = piped(recorded('10.6-err_no_gpu'));
    expect(status).toBe(1);
    expect(stdout).toMatch(/^standard input \(TensorRT 10\.6\.0\): failed\n\nerror {3}no-gpu/);
  });

  test('ends with 0 only where nothing failed', async () => {
    expect((await explain([join(recordedLogs, '10.6-planversion.log')])).status).toBe(0);
    writeFileSync(at('unknown.log'), '[E] Something that nobody knows.\n');
    const { status, stdout } = await explain([at('unknown.log')]);
    expect(status).toBe(1);
    expect(stdout).toContain('1: [E] Something that nobody knows.');
  });

  test('reports that nothing is in it', async () => {
    expect((await explain([at('empty.log')])).stdout).toContain(
      'It is empty. trtexec writes errors to stderr',
    );
    expect(piped('hello\n').stdout).toContain('none is a known issue');
    expect((await explain([join(recordedLogs, '10.6-planversion.log')])).stdout).toContain(
      'Nothing in it needs explaining.',
    );
  });

  test.each<[string, readonly string[], string, RegExp]>([
    ['no log', [], 'TF_USAGE', /LOG/],
    ['a log that is not there', ['no.log'], 'TF_FILE_NOT_FOUND', /no\.log/],
    ['a folder', [at('folder')], 'TF_FILE_UNREADABLE', /regular file/],
    ['a compressed log', [at('packed.log')], 'TF_USAGE', /compressed by gzip/],
    ['a program', [process.execPath], 'TF_USAGE', /not text/],
    ['a model that is not there', [at('foreign.log'), '--model', 'no.onnx'], 'TF_FILE_NOT_FOUND', /no\.onnx/],
  ])('rejects %s', async (_what, words, code, message) => {
    const { status, stdout } = await explain([...words, '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      error: { code, message: expect.stringMatching(message) },
    });
    expect(status).toBe(2);
  });
});
