import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { modelFile } from '../engines/runtime/onnxruntime/models.js';
import { writeWheel } from '../fakes/wheel.js';
import { dryRunIn, refusedIn } from '../support/dry-run.js';
import { describeWith } from '../support/needs.js';
import { everyVerb, trtforge } from '../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-dry-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const environment = { ...process.env, TENSORRT_CACHE_DIR: at('engines'), ARTIFACTS_BUCKET: '' };

beforeAll(async () => {
  const model = await modelFile((graph) => {
    graph.input('x', 'float32', ['n', 4]);
    graph.node('Softmax', { inputs: ['x'], outputs: ['y'] });
    graph.output('y', 'float32', ['n', 4]);
  });
  cpSync(model, at('m.onnx'));
});

const dryRun = (args: readonly string[]) => dryRunIn(folder, args, environment);

describeWith('toolchain', 'a build', () => {
  const options = ['--batch', '1/2/4', '--precision', 'fp16', '--target', 'tensorrt-rtx:sm_89'];

  test('is decided: identity, profile, steps', async () => {
    const { does, resolved } = await dryRun(['build', at('m.onnx'), ...options, '-o', at('m.engine')]);
    expect(does).toEqual(['convert', 'build', 'keep', 'write']);
    expect(resolved).toMatchObject({
      target: 'tensorrt-rtx:sm_89',
      recipe: { profiles: [{ x: { min: [1, 4], opt: [2, 4], max: [4, 4] } }] },
    });
    const named = await dryRun(['build', at('m.onnx'), '--dim', 'n=1/2/4', ...options.slice(2)]);
    expect(named.resolved.identity).toBe(resolved.identity);
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

  test('of what is in the store is a step that takes it; import names engines', async () => {
    const { exitCode } = await trtforge(['build', at('m.onnx'), ...options, '--json'], environment);
    expect(exitCode).toBe(0);
    expect((await dryRun(['build', at('m.onnx'), ...options])).does).toEqual(['take']);
    const again = await dryRun(['build', at('m.onnx'), ...options, '--force-rebuild']);
    expect(again.steps.find(({ does }) => does === 'build')?.ms).toBeGreaterThan(0);
    await trtforge(['cache', 'export', at('out')], environment);
    const [found] = (await dryRun(['cache', 'import', at('out')])).steps;
    expect(existsSync(found?.what ?? '')).toBe(true);
    expect(found?.bytes).toBeGreaterThan(1000);
  });
});

test('a search states how many trials it has at most, and tries none', async () => {
  const half = [
    'convert',
    at('m.onnx'),
    '-o',
    at('m.fp16.onnx'),
    '--precision',
    'fp16',
    '--convert-ops',
    'Softmax',
  ];
  expect((await trtforge(half, environment)).exitCode).toBe(0);
  const search = [
    'bisect',
    at('m.fp16.onnx'),
    '--against',
    at('m.onnx'),
    '-o',
    at('search'),
    '--budget',
    '7',
  ];
  const { does, resolved } = await dryRun(search);
  expect(does).toEqual(['verify', 'try', 'write', 'write', 'write']);
  expect(resolved).toMatchObject({ precision: 'fp16', 'trials at most': 7 });
  expect(existsSync(at('search'))).toBe(false);
  expect(await refusedIn(folder, ['bisect', at('m.onnx'), ...search.slice(2)], environment)).toBe('TF_USAGE');
});

test('removing a toolchain states its bytes, and keeps it', async () => {
  const wheel = writeWheel(at('.'), { version: '1.9.0.1' });
  const home = { ...environment, TRTFORGE_TOOLCHAINS: at('toolchains') };
  await trtforge(['toolchain', 'install', 'tensorrt-rtx', '--wheel', wheel, '--accept-license'], home);
  const { steps } = await dryRunIn(folder, ['toolchain', 'remove', 'tensorrt-rtx-1.9.0.1'], home);
  expect(steps).toMatchObject([{ does: 'remove', what: expect.stringContaining(at('toolchains')) }]);
  expect(steps[0]?.bytes).toBeGreaterThan(0);
  expect(await refusedIn(folder, ['toolchain', 'remove', 'no-such'], home)).toBe('TF_TOOLCHAIN_NOT_FOUND');
});

describe('an installation', () => {
  test('names the release and its folder, and needs no licence', async () => {
    const args = ['toolchain', 'install', 'tensorrt-rtx', '--folder', at('toolchains')];
    const { does, steps } = await dryRun(args);
    expect(does).toEqual(['download', 'install']);
    expect(steps[0]?.bytes).toBeGreaterThan(1e6);
  });
});

test('verbs whose plan is worth reading before they run have one', async () => {
  const verbs = (await everyVerb()).filter(({ command }) => command.plan !== undefined);
  expect(verbs.map(({ path }) => path).sort()).toEqual([
    ...['bisect', 'build', 'bundle build', 'bundle forge', 'cache clear', 'cache gc', 'cache import'],
    ...[
      'deepstream size',
      'fleet rehearse',
      'fleet submit',
      'forge',
      'toolchain install',
      'toolchain remove',
    ],
  ]);
});
