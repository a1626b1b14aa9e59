import { describe, expect, test } from 'vitest';
import { builderSettings } from '../../../src/engines/builder/builder-settings.js';
import { defaultRecipe, type Recipe } from '../../../src/engines/identity/recipe.js';
import { TrtforgeError } from '../../../src/errors.js';
import type { Toolchain } from '../../../src/tensorrt/toolchain/toolchain.js';

const toolchain = (version: string, product: Toolchain['product'] = 'tensorrt'): Toolchain => ({
  product,
  version,
  libraries: { inference: '/lib/inference.so', parser: '/lib/parser.so', plugins: null },
  trtexec: null,
  foundBy: 'test',
});

const weak = { stronglyTyped: false };
const resolve = (version: string, recipe: Partial<Recipe>) =>
  builderSettings({ ...defaultRecipe, avgTimingIterations: null, ...recipe }, toolchain(version));
const calls = (version: string, recipe: Partial<Recipe>) =>
  resolve(version, recipe).settings.map(({ call, arguments: numbers }) => [call, ...numbers]);

function refusal(resolveNow: () => unknown): TrtforgeError {
  try {
    resolveNow();
  } catch (error) {
    if (error instanceof TrtforgeError) return error;
    throw error;
  }
  throw new Error('a refusal was expected');
}

describe('typing of the network', () => {
  test.each([
    ['8.6.1.6', weak, 1],
    ['10.0.1.6', {}, 2],
    ['10.16.0.72', weak, 0],
    ['11.1.0.106', {}, 0],
  ])('on %s with %j the creation flags are %i', (version, recipe, flags) => {
    expect(resolve(version, recipe).networkFlags).toBe(flags);
  });

  test.each([
    ['8.6.1.6', {}, 'TensorRT 8.6.1.6 has no strongly typed networks; TensorRT 10.x, TensorRT 11.x'],
    ['11.1.0.106', weak, 'TensorRT 11.1.0.106 has no weakly typed networks; TensorRT 8.6 to 10.x have it.'],
  ])('on %s %j is rejected', (version, recipe, text) => {
    const error = refusal(() => resolve(version, recipe));
    expect(error.code).toBe('TF_OPTION_UNSUPPORTED');
    expect(error.message).toContain(text);
  });

  test.each<[string, Partial<Recipe>, number]>([
    ['8.6.1.6', { ...weak }, 0],
    ['8.6.1.6', { ...weak, flags: ['version-compatible'] }, 1],
    ['8.6.1.6', { ...weak, hardwareCompatibility: 'ampere-plus' }, 1],
    ['10.6.0.26', { flags: ['version-compatible'] }, 0],
  ])(
    'on %s %j: parser flags %i, by which compatible engines of 8.6 hold no InstanceNormalization plug-in',
    (version, recipe, flags) => {
      expect(resolve(version, recipe).parserFlags).toBe(flags);
    },
  );

  test('in a weakly typed network the precision is a builder flag', () => {
    expect(calls('8.6.1.6', { ...weak, precision: 'fp16' })).toEqual([['setFlag', 0]]);
    expect(calls('10.3.0', { ...weak, precision: 'bf16' })).toEqual([['setFlag', 17]]);
  });

  test('in a strongly typed one a precision flag is rejected', () => {
    expect(refusal(() => resolve('10.3.0', { flags: ['fp16'] })).message).toContain('fp16 has no effect');
  });
});

describe('the same recipe in the numbers of each version', () => {
  test.each([
    ['8.6.1.6', weak, 15, 7],
    ['10.16.0.72', {}, 13, 6],
    ['11.1.0.106', {}, 12, 6],
  ])('%s: version-compatible and no-tf32', (version, more, compatible, tf32) => {
    expect(calls(version, { ...more, flags: ['no-tf32', 'version-compatible'] })).toEqual([
      ['clearFlag', tf32],
      ['setFlag', compatible],
    ]);
  });

  test('what is left to the library becomes no call', () => {
    expect(calls('11.1.0.106', {})).toEqual([]);
  });

  test.each(['8.6.1.6', '10.6.0.26', '11.1.0.106'])(
    '%s times tactics as often as trtexec allows, unless requested otherwise',
    (version) => {
      expect(calls(version, { ...defaultRecipe, stronglyTyped: version !== '8.6.1.6' })).toEqual([
        ['setAvgTimingIterations', 8],
      ]);
    },
  );

  test('pools, numbers, choices and lists', () => {
    const recipe: Partial<Recipe> = {
      memoryPools: { ...defaultRecipe.memoryPools, workspace: 2 ** 34, tacticSharedMemory: 49152 },
      optimizationLevel: 0,
      maxAuxStreams: 0,
      avgTimingIterations: 3,
      maxTactics: 10,
      l2LimitForTiling: 1024,
      tilingOptimizationLevel: 'full',
      profilingVerbosity: 'detailed',
      hardwareCompatibility: 'same-compute-capability',
      runtimePlatform: 'windows-amd64',
      engineCapability: 'dla-standalone',
      tacticSources: ['cublas', 'cudnn', 'jit-convolutions'],
      previewFeatures: ['profile-sharing-0806'],
    };
    expect(calls('10.16.0.72', recipe)).toEqual([
      ['setMemoryPoolLimit', 0, 2 ** 34],
      ['setMemoryPoolLimit', 5, 49152],
      ['setBuilderOptimizationLevel', 0],
      ['setMaxAuxStreams', 0],
      ['setAvgTimingIterations', 3],
      ['setMaxNbTactics', 10],
      ['setL2LimitForTiling', 1024],
      ['setProfilingVerbosity', 2],
      ['setHardwareCompatibilityLevel', 2],
      ['setRuntimePlatform', 1],
      ['setEngineCapability', 2],
      ['setTilingOptimizationLevel', 3],
      ['setTacticSources', 0b10101],
      ['setPreviewFeature', 0, 1],
    ]);
  });

  test('no tactic source at all is a mask of zero, not the default', () => {
    expect(calls('10.16.0.72', { tacticSources: [] })).toEqual([['setTacticSources', 0]]);
  });
});

describe('an option this version lacks is rejected with the versions that have it', () => {
  const pool = { memoryPools: { ...defaultRecipe.memoryPools, tacticSharedMemory: 1024 } };
  test.each<[string, Partial<Recipe>, string]>([
    ['8.6.1.6', { ...weak, tilingOptimizationLevel: 'fast' }, 'TensorRT 10.8.0 to 10.x, TensorRT 11.x'],
    ['8.6.1.6', { ...weak, ...pool }, 'tactic shared memory; TensorRT 10.x, TensorRT 11.x'],
    ['8.6.1.6', { ...weak, hardwareCompatibility: 'same-compute-capability' }, 'TensorRT 10.9.0 to 10.x'],
    ['10.0.1.6', { runtimePlatform: 'windows-amd64' }, 'runtime platform windows-amd64; TensorRT 10.2.0'],
    ['10.0.1.6', { maxTactics: 3 }, 'limit of tactics; TensorRT 10.4.0'],
    ['10.7.0.23', { flags: ['editable-timing-cache'] }, 'TensorRT 10.8.0 to 10.x'],
    ['11.1.0.106', { tacticSources: ['cudnn'] }, 'TensorRT 8.6, TensorRT 10.x'],
    ['11.1.0.106', { flags: ['int8'], ...weak }, 'weakly typed networks'],
    ['10.16.0.72', { flags: ['quantum'] }, 'no version of TensorRT has it'],
  ])('%s: %j', (version, recipe, text) => {
    const error = refusal(() => resolve(version, recipe));
    expect(error.code).toBe('TF_OPTION_UNSUPPORTED');
    expect(error.message).toContain(text);
  });

  test('a flag that no version has may be another one written wrongly', () => {
    const remedy = (flag: string) => refusal(() => resolve('10.16.0.72', { flags: [flag] })).remedy;
    expect(remedy('sparse-weigths')).toBe('Did you mean "sparse-weights"?');
    expect(remedy('quantum')).toBe('Leave the option out, or use a version that has it.');
  });

  test('a version without a table is TF_LIBRARY_UNSUPPORTED', () => {
    expect(refusal(() => resolve('9.3.0', {})).code).toBe('TF_LIBRARY_UNSUPPORTED');
  });
});
