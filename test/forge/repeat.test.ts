import { describe, expect, test } from 'vitest';
import { forgeOptions } from '../../src/cli/commands/forge.js';
import { defaultRecipe } from '../../src/engines/identity/recipe.js';
import { observeOnOrt } from '../../src/engines/runtime/onnxruntime/calibrate.js';
import type { ForgeOptions } from '../../src/forge/options.js';
import { repeatCommands } from '../../src/forge/repeat.js';
import { runRootAt } from '../../src/forge/run-root.js';
import { bundleOptions } from '../../src/products/bundle/commands/options.js';
import { readBack, readWords } from './read-back.js';

const none = { verify: null, verifyEngine: null };

const commandOf = (options: ForgeOptions, step: RegExp): string =>
  repeatCommands(options, runRootAt('runs/it is here'), none).find((each) => step.test(each.step))!.command;

describe('the commands that repeat a run', () => {
  test('a plain run is a plain command', () => {
    const options = { model: 'm.onnx', precision: 'fp16', target: 'tensorrt-rtx:sm_89' } as const;
    expect(commandOf(options, /whole way/)).toBe(
      "trtforge forge m.onnx --precision fp16 --target tensorrt-rtx:sm_89 --run-root 'runs/it is here'",
    );
    expect(commandOf(options, /Convert/)).toBe(
      "trtforge convert m.onnx --precision fp16 -o 'runs/it is here/model/m.fp16.onnx'",
    );
  });

  test('everything that decides the engine comes back the same through a shell and the option table', async () => {
    const options: ForgeOptions = {
      model: "models/it's «odd» $(rm) `x`.onnx",
      precision: 'bf16',
      target: { product: 'tensorrt-rtx', computeCapabilities: [89, 120] },
      toolchain: 'tensorrt-rtx-1.7.1.116',
      device: 1,
      weaklyTyped: true,
      conversion: {
        keepNodes: [/^\/head\/'a b'$/u, /x|y/u],
        keepOps: new Set(['Softmax', 'com.microsoft::Gelu']),
        convertOps: new Set(['Exp']),
        ioTypes: 'convert',
        initMax: 30_000.5,
        dataMax: 512,
        maxReductionDepth: 4096,
        calibration: { samples: ['a sample.npz', "another's.npz"], observe: observeOnOrt },
      },
      profiles: [
        new Map([
          ['x', { min: [1, 3], opt: [2, 3], max: [4, 3], values: false }],
          ['odd, name', { min: [], opt: [], max: [], values: false }],
          ['shape', { min: [1], opt: [2], max: [3], values: true }],
        ]),
        new Map([['x', { min: [8, 3], opt: [8, 3], max: [8, 3], values: false }]]),
      ],
      settings: {
        memoryPools: { ...defaultRecipe.memoryPools, workspace: 4 * 2 ** 30, dlaLocalDram: 12345 },
        optimizationLevel: 5,
        maxAuxStreams: 0,
        avgTimingIterations: 4,
        tilingOptimizationLevel: 'moderate',
        maxTactics: 7,
        l2LimitForTiling: 1_000_001,
        profilingVerbosity: 'detailed',
        hardwareCompatibility: 'ampere-plus',
        runtimePlatform: 'windows-amd64',
        flags: ['refit', 'no-tf32'],
        tacticSources: ['cublas'],
        previewFeatures: ['some-feature'],
      },
      plugins: ['lib/my plugin.so'],
      allowHostCode: true,
      weightBudget: 4096,
      modelName: 'odd name',
      modelVersion: 'v1',
      store: '/some/where else',
      builder: 'trtexec',
      forceRebuild: true,
      timingCache: null,
      layers: ['/read only', 'another'],
      remote: 's3://bucket/pre fix',
      maxBytes: 12_345,
      requireSignature: true,
      trustKeys: ["it's.pem"],
      signKey: 'mine.pem',
      runRoot: 'runs/it is here',
      skip: ['bench'],
      verify: {
        seed: 7,
        samples: 2,
        ranges: [
          { name: null, low: -1, high: 1 },
          { name: 'odd, name', low: 0, high: 255 },
        ],
        files: [{ name: 'x', path: 'a b.npy' }],
        atol: [{ name: 'odd: out', value: 1e-7 }],
        rtol: [{ name: null, value: 0.01 }],
        threads: 2,
      },
    };
    const ofForge = {
      verify: expect.anything(),
      runRoot: undefined,
      skip: [],
      allowHostCode: false,
      weightBudget: undefined,
    };
    expect(await readBack(commandOf(options, /Build/))).toEqual({ ...options, ...ofForge });
    expect(await readBack(commandOf(options, /whole way/))).toEqual(options);
  });

  test('a run without a store says so', async () => {
    expect(await readBack(commandOf({ model: 'm.onnx', store: false }, /Build/))).toMatchObject({
      store: false,
    });
  });

  test('what was left out is not repeated as a step', () => {
    const steps = repeatCommands({ model: 'm.onnx', skip: ['build'] }, runRootAt('r'), none).map(
      ({ step }) => step,
    );
    expect(steps.some((step) => /Build|Convert/.test(step))).toBe(false);
    expect(commandOf({ model: 'm.onnx', skip: ['build'] }, /whole way/)).toContain('--skip build');
  });
});

/** Options of `forge` with a value that is not their default, alone with what they need beside them. A new option has no entry here, and does not compile. */
const given: Readonly<Record<RepeatedOption, readonly string[]>> = {
  target: ['--target', 'tensorrt-rtx:sm_89'],
  toolchain: ['--toolchain', 'tensorrt-10.6.0.26'],
  device: ['--device', '1'],
  precision: ['--precision', 'bf16'],
  weaklyTyped: ['--weakly-typed'],
  keepNodes: ['--keep-nodes', '^a/(b|c)$'],
  keepOps: ['--keep-ops', 'Softmax,Exp'],
  convertOps: ['--convert-ops', 'Pow'],
  initMax: ['--init-max', '1000', '--precision', 'fp16'],
  calibration: ['--calibration', 'one.npz', '--calibration', 'two.npz', '--precision', 'fp16'],
  dataMax: ['--data-max', '5.5', '--calibration', 'one.npz', '--precision', 'fp16'],
  maxReductionDepth: ['--max-reduction-depth', '99', '--precision', 'fp16'],
  ioTypes: ['--io-types', 'convert'],
  profile: ['--profile', 'x:1x3/2x3/4x3', '--profile', 'x:8x3/8x3/8x3,s=1/2/3'],
  shapes: ['--shapes', 'x:1x3,ids:scalar'],
  minShapes: ['--min-shapes', 'x:1', '--opt-shapes', 'x:2', '--max-shapes', 'x:4'],
  optShapes: ['--min-shapes', 'x:1', '--opt-shapes', 'x:3', '--max-shapes', 'x:4'],
  maxShapes: ['--min-shapes', 'x:1', '--opt-shapes', 'x:2', '--max-shapes', 'x:5'],
  workspace: ['--workspace', '4G'],
  memoryPool: ['--memory-pool', 'dla-local-dram:64M,workspace:1G'],
  optimizationLevel: ['--optimization-level', '4'],
  builderFlag: ['--builder-flag', 'refit', '--builder-flag', 'no-tf32'],
  profilingVerbosity: ['--profiling-verbosity', 'detailed'],
  hardwareCompatibility: ['--hardware-compatibility', 'ampere-plus'],
  runtimePlatform: ['--runtime-platform', 'windows-amd64'],
  maxAuxStreams: ['--max-aux-streams', '0'],
  avgTiming: ['--avg-timing', '3'],
  tilingOptimizationLevel: ['--tiling-optimization-level', 'full'],
  maxTactics: ['--max-tactics', '8'],
  l2LimitForTiling: ['--l2-limit-for-tiling', '7M'],
  tacticSource: ['--tactic-source', 'cublas'],
  previewFeature: ['--preview-feature', 'some-feature'],
  plugin: ['--plugin', 'a b.so'],
  name: ['--name', 'other'],
  modelVersion: ['--model-version', 'v9'],
  cacheDir: ['--cache-dir', 'store here'],
  cacheFrom: ['--cache-from', '/one', '--cache-from', '/two'],
  remote: ['--remote', 'none'],
  maxSize: ['--max-size', '50G'],
  requireSignature: ['--require-signature'],
  trustKey: ['--trust-key', 'a.pem', '--trust-key', 'b.pem'],
  signKey: ['--sign-key', 'mine.pem'],
  noCache: ['--no-cache'],
  forceRebuild: ['--force-rebuild'],
  timingCache: ['--timing-cache', 'kernel times.cache'],
  builder: ['--builder', 'trtexec'],
  seed: ['--seed', '41'],
  samples: ['--samples', '9'],
  valRange: ['--val-range', '[-1,1]', '--val-range', 'x:[0,255]'],
  inputs: ['--inputs', 'x=@x y.npy'],
  atol: ['--atol', '1e-3', '--atol', 'y:1e-5'],
  rtol: ['--rtol', 'y:0.5'],
  threads: ['--threads', '3'],
  skip: ['--skip', 'verify,bench'],
  allowHostCode: ['--allow-host-code'],
  weightBudget: ['--weight-budget', '0'],
};

/** Options that no line of a run's report repeats, and why. */
const notRepeated = {
  timeout: 'a limit of patience, which decides nothing of the result',
  runRoot: 'the line names the folder that was chosen, wherever the option or the default put it',
  ...bundleOnly(
    'it belongs to --meta, and the report of a bundle says for each component what builds it by itself',
  ),
} as const;

type RepeatedOption = Exclude<keyof typeof forgeOptions, keyof typeof bundleOptions | 'runRoot' | 'timeout'>;

function bundleOnly(why: string): Readonly<Record<keyof typeof bundleOptions, string>> {
  return Object.fromEntries(Object.keys(bundleOptions).map((name) => [name, why])) as Record<
    keyof typeof bundleOptions,
    string
  >;
}

describe('every option of forge', () => {
  test('is repeated, or is named with the reason why not', () => {
    const named = [...Object.keys(given), ...Object.keys(notRepeated)];
    expect(named.toSorted()).toEqual(Object.keys(forgeOptions).toSorted());
    expect(Object.values(notRepeated).every((why) => why.length > 20)).toBe(true);
  });

  test.each(Object.entries(given))('%s comes back the same', async (_name, words) => {
    const plain = await readWords(['forge', 'm.onnx']);
    const wished = await readWords(['forge', 'm.onnx', ...words]);
    expect(wished).not.toEqual(plain);
    const again = await readBack(commandOf(wished, /whole way/));
    expect({ ...again, runRoot: undefined }).toEqual(wished);
  });
});
