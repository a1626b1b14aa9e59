import { describe, expect, it, test } from 'vitest';
import {
  builtEngine,
  type EngineState,
  effectiveMode,
  type NvinferPlan,
  type NvinferTarget,
  predict,
} from '../../../../src/products/deepstream/config/predict.js';

const written = '/m/net.onnx_b4_gpu0_fp16.engine';
const source = { path: '/m/net.onnx', isThere: true, isFolderWritable: true, inputs: [[null, 3, 64, 64]] };
const plan: NvinferPlan = {
  engineFile: '/m/net.engine',
  batchSize: 4,
  dims: [3, 64, 64],
  mode: 2,
  device: 'gpu0',
  source,
};
const passport = {
  flags: [] as string[],
  capabilities: [89],
  hardwareCompatibility: 'none',
  profile: { min: [1, 3, 64, 64], max: [8, 3, 64, 64] },
};
const engine = {
  state: 'plan',
  product: 'tensorrt',
  version: '10.14.1.48',
  passport,
} as const satisfies EngineState;
const target: NvinferTarget = { tensorrt: '10.14', capability: 89 };
const missing: EngineState = { state: 'missing' };
const other = { ...target, tensorrt: '10.6' };
const small = { ...engine, passport: { ...passport, profile: { min: [1, 3, 64, 64], max: [2, 3, 64, 64] } } };

describe('what nvinfer does at its start', () => {
  const cases: readonly [
    string,
    Partial<NvinferPlan>,
    EngineState | null,
    NvinferTarget,
    readonly [string, string, string | null],
  ][] = [
    ['the engine fits', {}, engine, target, ['loads', 'engine-fits', null]],
    ['no engine, a model', { engineFile: null }, null, target, ['builds', 'engine-not-named', written]],
    ['neither', { engineFile: null, source: null }, null, target, ['fails', 'model-not-named', null]],
    ['missing, other name', {}, missing, target, ['rebuilds', 'engine-missing', written]],
    ['missing, its name', { engineFile: written }, missing, target, ['builds', 'engine-missing', written]],
    ['missing, no model', { source: null }, missing, target, ['fails', 'engine-missing', null]],
    ['other TensorRT', {}, engine, other, ['rebuilds', 'engine-other-tensorrt', written]],
    ['the same, no model', { source: null }, engine, other, ['fails', 'engine-other-tensorrt', null]],
    ['other GPU', {}, engine, { ...target, capability: 80 }, ['rebuilds', 'engine-other-gpu', written]],
    ['batch', {}, small, target, ['rebuilds', 'engine-batch', written]],
    ['batch, no model', { source: null }, small, target, ['fails', 'engine-batch', null]],
    ['dims', { dims: [3, 32, 32], source: null }, engine, target, ['fails', 'engine-dims', null]],
    ['dims, model of others', { dims: [3, 32, 32] }, engine, target, ['fails', 'model-dims', null]],
    ['dims not set', { dims: null }, engine, target, ['loads', 'engine-fits', null]],
    [
      'invalid, its name',
      { engineFile: written },
      { state: 'invalid', why: '' },
      target,
      ['rebuilds', 'engine-invalid', written],
    ],
    [
      'an engine of RTX',
      {},
      { ...engine, product: 'tensorrt-rtx' },
      target,
      ['rebuilds', 'engine-rtx', written],
    ],
    [
      'model missing',
      { source: { ...source, isThere: false } },
      missing,
      target,
      ['fails', 'model-missing', null],
    ],
    [
      'read-only folder',
      { engineFile: written, source: { ...source, isFolderWritable: false } },
      missing,
      target,
      ['rebuilds', 'folder-read-only', null],
    ],
    [
      'open dimensions that nothing sets',
      { dims: null, source: { ...source, inputs: [[null, 3, null, null]] } },
      missing,
      target,
      ['fails', 'model-dims', null],
    ],
    [
      'a custom library builds',
      { source: { ...source, path: null, inputs: [] } },
      missing,
      target,
      ['rebuilds', 'engine-missing', null],
    ],
  ];
  it.each(cases)('%s', (_, changes, state, where, [outcome, reason, writes]) => {
    expect(predict({ ...plan, ...changes }, state, where)).toMatchObject({ outcome, reason, writes });
  });

  test('what is not known is not compared', () => {
    const nowhere = { tensorrt: null, capability: null };
    expect(predict(plan, { ...engine, version: '8.6.1.6' }, nowhere).outcome).toBe('loads');
    expect(predict(plan, { ...engine, passport: null }, { ...target, capability: 80 }).outcome).toBe('loads');
    expect(predict({ ...plan, batchSize: 64 }, { ...engine, passport: null }, target).outcome).toBe('loads');
  });

  test('a version-compatible engine needs code that nvinfer does not allow', () => {
    const compatible = { ...engine, passport: { ...passport, flags: ['version-compatible'] } };
    const newer = { ...target, tensorrt: '10.16' };
    expect(predict(plan, compatible, newer).reason).toBe('engine-other-tensorrt');
  });

  test('an engine for Ampere and later runs on later desktop GPUs alone', () => {
    const plus = { ...engine, passport: { ...passport, hardwareCompatibility: 'ampere-plus' } };
    const reasonOn = (capability: number) => predict(plan, plus, { ...target, capability }).reason;
    expect([120, 75, 87].map(reasonOn)).toEqual(['engine-fits', 'engine-other-gpu', 'engine-other-gpu']);
  });
});

test('the name of what is built has the mode that it has in the end', () => {
  expect([0, 1, 2, 3].map((mode) => effectiveMode(mode, false))).toEqual([0, 2, 2, 2]);
  expect([0, 1, 2, 3].map((mode) => effectiveMode(mode, true))).toEqual([0, 1, 2, 3]);
  expect(builtEngine('/m/a.onnx', 2, 'dla1', 1)).toBe('/m/a.onnx_b2_dla1_int8.engine');
});
