import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { buildPlan } from '../../../src/engines/builder/build-supervised.js';
import type { BuildContext } from '../../../src/engines/builder/options.js';
import { passportSchema } from '../../../src/engines/identity/passport.js';
import { defaultRecipe, type ProfileRange, type Recipe } from '../../../src/engines/identity/recipe.js';
import { TrtforgeError } from '../../../src/errors.js';
import { ignoreEvents, type WorkEvent } from '../../../src/events.js';
import { rtxToolchain } from '../../native/rtx-toolchain.js';
import {
  deepModel,
  dynamicModel,
  elementwiseModel,
  shapeTensorModel,
  staticModel,
  unknownOpModel,
} from '../../native/tiny-models.js';
import { describeWith } from '../../support/needs.js';
import { type BuildChanges, resolvedBuild } from '../../support/sample-engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-build-plan-'));
const planPath = join(folder, 'pending.plan');

beforeAll(async () => {
  await buildAddon({ say: () => {} });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const range = (min: number[], opt: number[], max: number[], values = false): ProfileRange => ({
  min,
  opt,
  max,
  values,
});
const batch = (min: number, opt: number, max: number, columns = 64) => ({
  x: range([min, columns], [opt, columns], [max, columns]),
});

/** The plan's product and version, as its header says. */
const header = (path: string) => {
  const bytes = readFileSync(path);
  return {
    tag: bytes.toString('latin1', 0, 4),
    version: [...bytes.subarray(24, 28)].join('.'),
    size: bytes.length,
  };
};

describeWith('toolchain', 'buildPlan over tensorrt-rtx', (libraries) => {
  const build = (
    modelPath: string,
    recipe: Partial<Recipe> = {},
    more: BuildChanges = {},
    context: Partial<BuildContext> = {},
    plan = planPath,
  ) =>
    buildPlan(
      resolvedBuild(modelPath, { toolchain: rtxToolchain(libraries), recipe, ...more }),
      { modelPath, planPath: plan },
      { emit: ignoreEvents, ...context },
    );

  const refusal = async (attempt: Promise<unknown>): Promise<TrtforgeError> => {
    const error = await attempt.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (!(error instanceof TrtforgeError))
      throw new Error(`a TrtforgeError was expected, not ${String(error)}`);
    return error;
  };

  test('a static model becomes a real plan and an outcome that fits its schema', async () => {
    const outcome = await build(staticModel(folder));
    const { inputs, outputs } = passportSchema.shape.plan.parse({ ...outcome, sha256: 'a'.repeat(64) });
    expect({ inputs, outputs }).toEqual({ inputs: outcome.inputs, outputs: outcome.outputs });
    expect(outcome).toMatchObject({
      libraryVersion: '1.7.1.116',
      timingCache: 'none',
      inputs: [{ name: 'x', dtype: 'float32', shape: [4, 64] }],
      outputs: [{ name: 'y', dtype: 'float32', shape: [4, 32] }],
    });
    expect(header(planPath)).toEqual({ tag: 'vtrt', version: '1.7.1.116', size: outcome.bytes });
    expect(outcome.buildMs).toBeGreaterThan(0);
    expect(outcome.layers).toBeGreaterThan(0);
    expect(outcome.peakMemoryBytes).toBeGreaterThan(50 << 20);
  });

  test('open dimensions are null in the outcome and ranges come from the profiles', async () => {
    const outcome = await build(dynamicModel(folder), { profiles: [batch(1, 8, 32), batch(64, 64, 128)] });
    expect(outcome.inputs).toEqual([{ name: 'x', dtype: 'float32', shape: [null, 64] }]);
  });

  test('a shape tensor takes its range by values', async () => {
    const profile = { x: range([1, 16], [4, 16], [8, 16]), s: range([1, 1], [16, 4], [128, 128], true) };
    const outcome = await build(shapeTensorModel(folder), { profiles: [profile] });
    expect(outcome.inputs.map(({ name }) => name)).toEqual(['x', 's']);
  });

  test.each([[[75]], [[80]], [[86]], [[89]], [[120]], [[121]], [[75, 80, 86, 89, 120]]])(
    'builds for sm_%s',
    async (computeCapabilities) => {
      const outcome = await build(
        elementwiseModel(folder),
        { profiles: [batch(1, 2, 4, 16)] },
        { computeCapabilities },
      );
      expect(outcome.bytes).toBeGreaterThan(1000);
    },
  );

  test('a capability that the library does not build for is rejected by name', async () => {
    const error = await refusal(build(staticModel(folder), {}, { computeCapabilities: [89, 90] }));
    expect(error.code).toBe('TF_TARGET_UNSUPPORTED');
    expect(error.message).toContain('sm_90');
  });

  test('the library emits phases with progress, log lines with severity', async () => {
    const events: WorkEvent[] = [];
    await build(staticModel(folder), {}, {}, { emit: (event) => events.push(event) });
    const kinds = new Set(events.map(({ type }) => type));
    expect(kinds).toEqual(new Set(['log', 'phase-start', 'progress', 'phase-end']));
    const progress = events.filter((event) => event.type === 'progress');
    expect(progress.every(({ done, total }) => total !== undefined && done <= total)).toBe(true);
    expect(events.find((event) => event.type === 'log')).toMatchObject({ source: 'tensorrt-rtx' });
    expect(events.some((event) => event.type === 'log' && event.severity === 'verbose')).toBe(false);
  });

  test('verbose lines come when they are asked for', async () => {
    const events: WorkEvent[] = [];
    await build(staticModel(folder), {}, { verbose: true }, { emit: (event) => events.push(event) });
    expect(events.some((event) => event.type === 'log' && event.severity === 'verbose')).toBe(true);
  });

  test('all numbers and choices of a recipe that tensorrt-rtx has are taken', async () => {
    const outcome = await build(staticModel(folder), {
      memoryPools: { ...defaultRecipe.memoryPools, workspace: 1 << 30, tacticSharedMemory: 48 << 10 },
      optimizationLevel: 2,
      maxAuxStreams: 1,
      avgTimingIterations: 2,
      tilingOptimizationLevel: 'fast',
      maxTactics: 4,
      l2LimitForTiling: 1 << 20,
      profilingVerbosity: 'detailed',
      flags: ['no-tf32', 'sparse-weights'],
      tacticSources: ['edge-mask-convolutions', 'jit-convolutions'],
      previewFeatures: ['aliased-plugin-io-10-03'],
    });
    expect(outcome.bytes).toBeGreaterThan(1000);
  });

  test.each<[string, Partial<Recipe>, string]>([
    ['weak typing', { stronglyTyped: false }, 'TensorRT 8.6 to 10.x'],
    ['a removed precision flag', { stronglyTyped: true, flags: ['fp16'] }, 'strongly typed'],
    ['a tactic source of 8.6', { tacticSources: ['cudnn'] }, 'TensorRT 8.6, TensorRT 10.x'],
    ['an unknown flag', { flags: ['frobnicate'] }, 'no version of TensorRT has it'],
    ['a value the library passes over', { hardwareCompatibility: 'ampere-plus' }, 'hardware compatibility'],
    ['a platform it cannot build for', { runtimePlatform: 'windows-amd64' }, 'runtime platform'],
  ])('%s is rejected with the versions that have it or the library’s words', async (_, recipe, text) => {
    const error = await refusal(build(staticModel(folder), recipe));
    expect(error.code).toBe('TF_OPTION_UNSUPPORTED');
    expect(error.message).toContain(text);
  });

  test.each<[string, Recipe['profiles'], string]>([
    ['no profile for an open dimension', [], 'Input x has open dimensions'],
    [
      'an input the model lacks',
      [{ ...batch(1, 2, 4), z: range([1], [1], [1]) }],
      'no input z; it has x ?x64',
    ],
    ['another rank', [{ x: range([1], [2], [4]) }], 'has 1 dimensions here (2) and 2 in the model'],
    ['min above opt', [batch(8, 4, 16)], 'min 8x64 of x is above opt 4x64'],
    ['opt above max', [batch(1, 32, 16)], 'opt 32x64 of x is above max 16x64'],
    ['a fixed dimension moved', [{ x: range([1, 32], [2, 64], [4, 64]) }], 'dimension 1 of x is fixed at 64'],
    ['ranks that differ', [{ x: range([1, 64], [2], [4, 64]) }], 'differ in rank'],
    ['values for no shape tensor', [{ x: range([1, 1], [2, 2], [4, 4], true) }], 'not a shape tensor'],
    ['a second profile without the input', [batch(1, 2, 4), {}], 'Profile 1: input x'],
  ])('a profile with %s is rejected before the build', async (_, profiles, text) => {
    const error = await refusal(build(dynamicModel(folder), { profiles }));
    expect(error.code).toBe('TF_PROFILE_INVALID');
    expect(error.message).toContain(text);
  });

  test('the parser’s refusal names node, operator and reason', async () => {
    const error = await refusal(build(unknownOpModel(folder)));
    expect(error.code).toBe('TF_MODEL_REJECTED');
    expect(error.message).toContain('the_odd_one (Frobnicate)');
    expect(error.details?.nodes).toMatchObject([{ name: 'the_odd_one', operator: 'Frobnicate', node: 0 }]);
  });

  test.each([
    ['empty', ''],
    ['text', 'this is no model\n'],
    ['a Git LFS pointer', 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n'],
  ])('a model file that is %s is rejected', async (_, content) => {
    const path = join(folder, 'not-a-model.onnx');
    writeFileSync(path, content);
    expect((await refusal(build(path))).code).toBe('TF_MODEL_REJECTED');
  });

  test('a model file that is not there is rejected before any process starts', async () => {
    expect((await refusal(build(join(folder, 'nowhere.onnx')))).code).toBe('TF_FILE_NOT_FOUND');
  });

  test('what the builder cannot do ends with the library’s own lines', async () => {
    const small = { memoryPools: { ...defaultRecipe.memoryPools, workspace: 1024 } };
    const error = await refusal(build(dynamicModel(folder), { ...small, profiles: [batch(1, 8, 32)] }));
    expect(error.code).toBe('TF_BUILD_FAILED');
    expect(error.message).toContain('workspace');
  });

  test('a plan that cannot be written is TF_WRITE_FAILED with the path', async () => {
    const nowhere = join(folder, 'no-such-folder', 'x.plan');
    const error = await refusal(build(staticModel(folder), {}, {}, {}, nowhere));
    expect(error.code).toBe('TF_WRITE_FAILED');
    expect(error.message).toContain(nowhere);
  });

  test('a timing cache is written whole, and one that the library rejects is reported', async () => {
    const timingCache = join(folder, 'timing.cache');
    const first = await build(staticModel(folder), {}, { timingCache });
    expect(first.timingCache).toBe('new');
    expect(readFileSync(timingCache).length).toBeGreaterThan(0);
    writeFileSync(timingCache, 'not a timing cache');
    const second = await build(staticModel(folder), {}, { timingCache });
    expect(second.timingCache).toBe('rejected');
    expect(second.warnings.join('\n')).toContain('timing cache');
    expect(readFileSync(timingCache).toString('latin1')).not.toContain('not a timing cache');
    expect(readdirSync(folder).filter((name) => name.endsWith('.unpublished'))).toEqual([]);
  });

  test('a build that fails leaves the timing cache as it was', async () => {
    const timingCache = join(folder, 'kept.cache');
    writeFileSync(timingCache, 'kept');
    await refusal(build(unknownOpModel(folder), {}, { timingCache }));
    expect(readFileSync(timingCache, 'utf8')).toBe('kept');
    expect(readdirSync(folder).filter((name) => name.endsWith('.unpublished'))).toEqual([]);
  });

  describe('while a long build runs', () => {
    const model = deepModel(folder);
    const profiles = [{ h0: range([1, 256], [64, 256], [512, 256]) }];
    const longBuild = (options: Partial<BuildContext>) => build(model, { profiles }, {}, options);

    test('cancelling stops it through the progress monitor, well before it would be done', async () => {
      const stepsOf = async (stopping?: AbortController) => {
        rmSync(planPath, { force: true });
        let steps = 0;
        const ended = longBuild({
          signal: stopping?.signal,
          graceMs: 2 ** 31 - 1,
          emit: (event) => {
            if (event.type !== 'phase-start' && event.type !== 'progress') return;
            steps++;
            stopping?.abort();
          },
        });
        const outcome = await (stopping === undefined ? ended.then(() => 'built') : refusal(ended));
        return { steps, outcome };
      };
      const whole = await stepsOf();
      const cancelled = await stepsOf(new AbortController());
      expect(cancelled.outcome).toMatchObject({ code: 'TF_CANCELLED' });
      expect(cancelled.steps).toBeLessThan(whole.steps);
      expect(existsSync(planPath)).toBe(false);
    });

    test('a killed child is TF_CHILD_DIED with the signal and the last lines', async () => {
      let killed = false;
      const error = await refusal(
        longBuild({
          emit: (event) => {
            if (event.type !== 'phase-start' || killed) return;
            killed = true;
            process.kill(childOfThisProcess(), 'SIGKILL');
          },
        }),
      );
      expect(error.code).toBe('TF_CHILD_DIED');
      expect(error.details).toMatchObject({ signal: 'SIGKILL' });
      expect(error.details?.lastLines).not.toEqual([]);
    });

    test('work that is cancelled before it starts starts nothing', async () => {
      expect((await refusal(longBuild({ signal: AbortSignal.abort() }))).code).toBe('TF_CANCELLED');
    });
  });

  test('a library file that is not a library is TF_LIBRARY_LOAD_FAILED with the loader’s text', async () => {
    const broken = join(folder, 'libtensorrt_rtx.so.1');
    copyFileSync(staticModel(folder), broken);
    const toolchain = rtxToolchain(folder);
    const error = await refusal(build(staticModel(folder), {}, { toolchain }));
    expect(error.code).toBe('TF_LIBRARY_LOAD_FAILED');
    expect(error.message).toContain(broken);
  });
});

/** The build's process: the one child of this process that runs build-child.js. */
function childOfThisProcess(): number {
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const parent = Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${entry}/status`, 'utf8'))?.[1]);
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8');
      if (parent === process.pid && command.includes('build-child.js')) return Number(entry);
    } catch {
      // The process ended between the listing and the look at it.
    }
  }
  throw new Error('no build child runs');
}
