import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { modelFile } from '../engines/runtime/onnxruntime/models.js';
import { dryRunIn } from '../support/dry-run.js';
import { describeWith } from '../support/needs.js';
import { trtforge } from '../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-dry-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const environment = { ...process.env, TENSORRT_CACHE_DIR: at('engines'), ARTIFACTS_BUCKET: '' };

beforeAll(async () => {
  const model = await modelFile((graph) => {
    graph.input('x', 'float32', ['n', 4]);
    graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
    graph.output('y', 'float32', ['n', 4]);
  });
  cpSync(model, at('m.onnx'));
});

const dryRun = (args: readonly string[]) => dryRunIn(folder, args, environment);

test('convert states what it would convert, and rejects what a run would reject', async () => {
  const args = ['convert', at('m.onnx'), '--precision', 'bf16'];
  expect(await dryRun([...args, '-o', at('m.bf16.onnx')])).toMatchObject({
    does: ['convert', 'write'],
    resolved: { precision: 'bf16' },
  });
  const { exitCode, json } = await trtforge(
    [...args, '-o', at('m.onnx'), '--dry-run', '--json'],
    environment,
  );
  expect([exitCode, json().error?.code]).toEqual([2, 'TF_OUTPUT_IS_INPUT']);
});

describeWith('toolchain', 'a build', () => {
  const options = ['--batch', '1/2/4', '--precision', 'fp16', '--target', 'tensorrt-rtx:sm_89'];

  test('is decided: identity, profile, steps', async () => {
    const { does, resolved } = await dryRun(['build', at('m.onnx'), ...options, '-o', at('m.engine')]);
    expect(does).toEqual(['convert', 'build', 'keep', 'write']);
    expect(resolved).toMatchObject({
      target: 'tensorrt-rtx:sm_89',
      recipe: { profiles: [{ x: { min: [1, 4], opt: [2, 4], max: [4, 4] } }] },
    });
    const { json } = await trtforge(['cache', 'why', at('m.onnx'), ...options, '--json'], environment);
    expect(resolved.identity).toBe(json().identity);
  });

  test('forge has the phases, with the reasons of those left out', async () => {
    const { does, resolved } = await dryRun([
      'forge',
      at('m.onnx'),
      ...options,
      '--run-root',
      at('root'),
      '--skip',
      'verify,bench',
    ]);
    expect(does).toEqual(['convert', 'build', 'keep', '(verify)', '(verify engine)', '(bench)', 'report']);
    expect(resolved.runRoot).toBe(at('root'));
  });

  test('of what is in the store is a step that takes it; export and import name engines', async () => {
    const { exitCode } = await trtforge(['build', at('m.onnx'), ...options, '--json'], environment);
    expect(exitCode).toBe(0);
    expect((await dryRun(['build', at('m.onnx'), ...options])).does).toEqual(['take']);
    const again = await dryRun(['build', at('m.onnx'), ...options, '--force-rebuild']);
    expect(again.steps.find(({ does }) => does === 'build')?.ms).toBeGreaterThan(0);
    expect(await dryRun(['cache', 'export', at('out')])).toMatchObject({ does: ['export'] });
    await trtforge(['cache', 'export', at('out')], environment);
    const [found] = (await dryRun(['cache', 'import', at('out')])).steps;
    expect(existsSync(found?.what ?? '')).toBe(true);
    expect(found?.bytes).toBeGreaterThan(1000);
  });
});

describe('an installation', () => {
  test('names the release and its folder, and needs no licence', async () => {
    const args = ['toolchain', 'install', 'tensorrt-rtx', '--folder', at('toolchains')];
    const { does, steps } = await dryRun(args);
    expect(does).toEqual(['download', 'install']);
    expect(steps[0]?.bytes).toBeGreaterThan(1e6);
  });
});
