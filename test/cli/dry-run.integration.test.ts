import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { visibleGpus } from '../../src/addon/chosen-gpu.js';
import { writeNpy } from '../../src/formats/tensor/npy.js';
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
    expect((await dryRun(['cache', 'verify'])).does).toEqual(['read']);
    await trtforge(['cache', 'keygen', '-o', at('key.pem')]);
    const sign = ['cache', 'sign', '--sign-key', at('key.pem')];
    expect(await dryRun(sign)).toMatchObject({ does: ['sign'], resolved: { store: at('engines') } });
    expect(await refusedIn(folder, [...sign, 'no-such-engine'], environment)).toBe('TF_USAGE');
    expect(await refusedIn(folder, ['cache', 'sign'], environment)).toBe('TF_USAGE');
  });
});

describe('a verification', () => {
  test('opens both sides, plans the inputs, and runs nothing', async () => {
    const { does, steps, resolved } = await dryRun(['verify', at('m.onnx'), '--against', at('m.onnx')]);
    expect(does).toEqual(['input', 'run', 'run']);
    expect(steps[0]).toMatchObject({ what: 'x', detail: expect.stringMatching(/^float32 \[\d+, 4\], /) });
    expect(resolved).toMatchObject({ precision: 'fp32', samples: 7 });
  });

  test.each([
    ['a tolerance of no output', ['--atol', 'z:1'], 'TF_USAGE'],
    ['an input that is not there', ['--inputs', 'x=@absent.npy'], 'TF_FILE_NOT_FOUND'],
    ['shapes that do not fit', ['--shapes', 'x:1x5'], 'TF_SHAPE_INVALID'],
    ['an option of engines', ['--weight-budget', '1G'], 'TF_USAGE'],
    ['a model that is not there', ['--against', 'absent.onnx'], 'TF_FILE_NOT_FOUND'],
  ])('rejects %s as a run does', async (_, args, code) => {
    const line = ['verify', at('m.onnx'), '--against', at('m.onnx'), ...args];
    expect(await refusedIn(folder, line, environment)).toBe(code);
  });
});

describe('a search for what fails', () => {
  beforeAll(async () => {
    await trtforge(['convert', at('m.onnx'), '--precision', 'fp16', '-o', at('m.fp16.onnx')]);
  });
  const line = [
    'bisect',
    at('m.fp16.onnx'),
    '--against',
    at('m.onnx'),
    '-o',
    at('search'),
    '--precision',
    'fp16',
  ];

  test('states how many candidates it may try, and how many count already', async () => {
    const before = await dryRun([...line, '--budget', '5']);
    expect(before.does).toEqual(['input', 'run', 'run', 'try', 'write']);
    expect(before.resolved).toMatchObject({ precision: 'fp16', judge: 'model', budget: 5, tried: 0 });
    const check = ['--check-command', 'false {}'];
    expect((await dryRun([...line, ...check])).does).toEqual(['try', 'write']);
    await trtforge([...line, ...check, '--budget', '3', '--json'], environment);
    const { tried } = (await dryRun([...line, ...check])).resolved;
    expect(tried).toBeGreaterThan(0);
    expect((await dryRun([...line, '--seed', '7'])).resolved.tried).toBe(0);
  });

  test.each([
    ['a candidate in FP32', ['bisect', at('m.onnx'), '--against', at('m.onnx'), '-o', at('x')], 'TF_USAGE'],
    ['a check without a place for the candidate', [...line, '--check-command', 'true'], 'TF_USAGE'],
    ['a recording that is not there', [...line, '--recording', at('absent.npz')], 'TF_FILE_NOT_FOUND'],
    ['a profile without a target', [...line, '--profile', 'x:1x4'], 'TF_USAGE'],
  ])('rejects %s as a run does', async (_, args, code) => {
    expect(await refusedIn(folder, args, environment)).toBe(code);
  });

  describeWith('toolchain', 'of engines', () => {
    test('is decided with the engine of the candidate', async () => {
      const engines = ['--target', 'tensorrt-rtx:sm_89', '--batch', '2', '--check-command', 'true {}'];
      const { does } = await dryRun([...line, ...engines]);
      expect(does).toEqual(['build', 'keep', 'try', 'write']);
    });

    test.skipIf(visibleGpus().gpus.length > 0)('needs a GPU that runs them before one is built', async () => {
      const engines = ['--target', 'tensorrt-rtx:sm_89', '--batch', '2'];
      expect(await refusedIn(folder, [...line, ...engines], environment)).toBe('TF_GPU_UNAVAILABLE');
    });
  });
});

describe('a comparison inside of models', () => {
  test('counts what is compared', async () => {
    const layers = ['compare', 'layers', at('m.onnx'), '--against', at('m.onnx')];
    const { does, resolved } = await dryRun([...layers, '--report', at('layers.html')]);
    expect(does).toEqual(['input', 'run', 'run', 'compare', 'write']);
    expect(resolved).toMatchObject({ precision: 'fp32', tensors: 1 });
    expect(await refusedIn(folder, [...layers, '--atol', 'no-tensor:1'], environment)).toBe('TF_USAGE');
  });

  test('of a quantized model reads the samples', async () => {
    const line = ['compare', 'quantized', at('m.onnx'), '--against', at('m.onnx'), '-o', at('quantized')];
    const bytes = new Uint8Array(Float32Array.from({ length: 24 }, (_, i) => i).buffer);
    writeNpy(at('x.npy'), { dtype: 'float32', shape: [6, 4], bytes });
    const { does, resolved } = await dryRun([...line, '--calibration', at('x.npy')]);
    expect(does).toEqual(['read', 'run', 'run', 'write']);
    expect(resolved).toMatchObject({ outputs: 'y' });
    const absent = [...line, '--calibration', at('absent.npy')];
    expect(await refusedIn(folder, absent, environment)).toBe('TF_FILE_NOT_FOUND');
  });
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

test('a report of a failure runs the line twice, and writes the archive', async () => {
  const line = ['report-bug', '-o', at('bug.tar.gz')];
  const build = ['--', 'build', at('absent.onnx')];
  expect((await dryRun([...line, ...build])).does).toEqual(['run', 'run', 'write']);
  expect((await dryRun([...line, '--with-weights', ...build])).does).toEqual(['run', 'write']);
});

test('every other verb takes seconds and writes at most small files', async () => {
  const verbs = (await everyVerb()).filter(({ command }) => command.plan === undefined);
  expect(verbs.map(({ path }) => path).sort()).toEqual(
    [
      ...['inspect', 'engine inspect', 'engine layers', 'engine diff', 'engine strip-header'],
      ...['compare', 'compare models', 'gate', 'gate init', 'report', 'explain', 'completion', 'migrate'],
      ...['doctor', 'cache ls', 'cache why', 'cache keygen', 'toolchain list', 'toolchain env'],
      ...['stream check', 'stream convert', 'stream draft', 'deepstream repair', 'deepstream summary'],
      ...['eval coco', 'eval wer', 'compare-backends repair'],
      // Seconds by default; how long they take is what their options ask for.
      ...['run', 'bench', 'bench compare', 'bench model'],
    ].sort(),
  );
});

describe('an installation', () => {
  test('names the release and its folder, and needs no licence', async () => {
    const args = ['toolchain', 'install', 'tensorrt-rtx', '--folder', at('toolchains')];
    const { does, steps } = await dryRun(args);
    expect(does).toEqual(['download', 'install']);
    expect(steps[0]?.bytes).toBeGreaterThan(1e6);
  });
});
