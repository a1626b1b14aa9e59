import { describe, expect, test } from 'vitest';
import { describeComputeCapability } from '../../../src/behaviour/gpus.js';
import {
  type BuildMachine,
  isOfProduct,
  parseGpu,
  parseTarget,
  resolveTarget,
  targetText,
} from '../../../src/engines/identity/target.js';
import { refusal } from '../../support/refusal.js';

describe('a target', () => {
  test.each([
    ['tensorrt-rtx', 'tensorrt-rtx', null],
    ['tensorrt-rtx:sm_89', 'tensorrt-rtx', [89]],
    ['tensorrt-rtx:sm_120,sm_89,sm_89', 'tensorrt-rtx', [89, 120]],
    ['tensorrt-rtx:8.9,12.0', 'tensorrt-rtx', [89, 120]],
    ['tensorrt-rtx:sm75', 'tensorrt-rtx', [75]],
    ['tensorrt', 'tensorrt', null],
    ['tensorrt:sm_90', 'tensorrt', [90]],
    [' tensorrt:90 ', 'tensorrt', [90]],
  ])('%s is read', (text, product, computeCapabilities) => {
    expect(parseTarget(text)).toEqual({ product, computeCapabilities });
  });

  test.each([
    ['tensorrt@10.13.3.9:sm_90', 'tensorrt', '10.13.3.9', null],
    ['tensorrt@10.13.3.9+cuda12.9:sm_90', 'tensorrt', '10.13.3.9', 12],
    ['tensorrt-rtx@1.7.1.116:sm_89', 'tensorrt-rtx', '1.7.1.116', null],
  ])('%s is that of another machine', (text, product, version, cudaMajor) => {
    expect(parseTarget(text)).toMatchObject({ product, named: { version, cudaMajor } });
  });

  test.each([
    '',
    'tensorrt@10.13:sm_90',
    'tensorrt@latest:sm_90',
    'tensorrt:sm_90@10.13.3.9',
    'rtx',
    'tensorrt-rtx:',
    'tensorrt-rtx:ada',
    'tensorrt:sm_',
    'tensorrt:sm_9',
    'TensorRT',
    'tensorrt:sm_90,',
  ])('"%s" is no target', (text) => {
    expect(refusal(() => parseTarget(text))).toMatchObject({ code: 'TF_USAGE' });
  });

  test.each([
    ['rtx4090', 'tensorrt-rtx:sm_89'],
    ['tensort', 'tensorrt'],
    ['tensorrtrtx:sm_120', 'tensorrt-rtx:sm_120'],
  ])('%s: the remedy has the target that is meant, %s', (text, meant) => {
    const { remedy } = refusal(() => parseTarget(text));
    const [, named = ''] = /"(.*?)"/.exec(remedy) ?? [];
    expect(named).toBe(meant);
    expect(targetText(parseTarget(named))).toBe(meant);
  });

  test('of TensorRT has one GPU', () => {
    const error = refusal(() => parseTarget('tensorrt:sm_86,sm_89'));
    expect(error.code).toBe('TF_TARGET_UNSUPPORTED');
  });

  test.each([
    ['tensorrt:sm_130', [130]],
    ['tensorrt-rtx:RTX 4090,A10G', [86, 89]],
    ['tensorrt@10.3.0.30:Jetson AGX Orin', [87]],
    ['tensorrt:NVIDIA GB10', [121]],
    ['tensorrt:NVIDIA Thor', [110]],
  ])('%s has its GPUs by number or name', (text, computeCapabilities) => {
    expect(parseTarget(text)).toMatchObject({ computeCapabilities });
  });

  test('is written as it is read', () => {
    for (const text of ['tensorrt-rtx:sm_89,sm_120', 'tensorrt:sm_90', 'tensorrt-rtx']) {
      expect(targetText(parseTarget(text))).toBe(text);
    }
  });

  test('an unknown architecture is named by its number', () => {
    expect(describeComputeCapability(990)).toBe('sm_990');
  });
});

describe('a target made whole', () => {
  const rtx = { product: 'tensorrt-rtx', version: '1.7.1.116', cudaMajor: 13 } as const;
  const trt = { product: 'tensorrt', version: '10.6.0.26', cudaMajor: 12 } as const;
  const machine = (gpuComputeCapability: number | null): BuildMachine => ({
    platform: 'linux',
    arch: 'x64',
    gpuComputeCapability,
  });

  test('tensorrt-rtx without capabilities is for every RTX generation since Ampere, whatever GPU is here', () => {
    const target = resolveTarget(parseTarget('tensorrt-rtx'), rtx, machine(90));
    expect(target).toEqual({
      product: 'tensorrt-rtx',
      version: '1.7.1.116',
      cudaMajor: null,
      computeCapabilities: [80, 86, 89, 120],
      os: 'linux',
      arch: 'x86_64',
    });
  });

  test('TensorRT without a capability takes that of the GPU, and CUDA is part of it', () => {
    expect(resolveTarget(parseTarget('tensorrt'), trt, machine(90))).toMatchObject({
      computeCapabilities: [90],
      cudaMajor: 12,
    });
  });

  test('an engine for another GPU may be looked for on a machine without a GPU', () => {
    expect(resolveTarget(parseTarget('tensorrt:sm_86'), trt, machine(null)).computeCapabilities).toEqual([
      86,
    ]);
  });

  test.each([
    ['tensorrt', null, /this machine shows none/],
    ['tensorrt:sm_86', 90, /sm_86 .* but the GPU it would be built on is sm_90/],
  ])('%s with a GPU of %s is rejected', (text, gpu, message) => {
    const error = refusal(() => resolveTarget(parseTarget(text), trt, machine(gpu)));
    expect(error.code).toBe('TF_TARGET_UNAVAILABLE');
    expect(error.message).toMatch(message);
  });
});

describe('a GPU', () => {
  test.each([
    ['sm_89', { capability: 89 }],
    ['8.9', { capability: 89 }],
    ['L40S', { capability: 89, product: 'L40S' }],
    ['rtx4090', { capability: 89, product: 'RTX 4090' }],
    ['NVIDIA A100-SXM4-40GB', { capability: 80, product: 'A100' }],
    ['Tesla T4', { capability: 75, product: 'T4' }],
    ['NVIDIA GB10', { capability: 121, product: 'GB10' }],
    ['Jetson AGX Orin', { capability: 87, product: 'Jetson Orin' }],
    ['Orin (nvgpu)', { capability: 87, product: 'Jetson Orin' }],
    ['NVIDIA Thor', { capability: 110, product: 'Jetson Thor' }],
    ['NVIDIA A10G', { capability: 86, product: 'A10G' }],
    ['NVIDIA GH200 480GB', { capability: 90, product: 'GH200' }],
  ])('%s is known', (text, gpu) => {
    expect(parseGpu(text)).toEqual(gpu);
  });

  test.each(['fast', '', 'A1000'])('"%s" is not', (text) => {
    expect(refusal(() => parseGpu(text))).toMatchObject({ code: 'TF_USAGE' });
  });

  test('of a product has its whole name', () => {
    expect(isOfProduct('NVIDIA L4', 'L4')).toBe(true);
    expect(isOfProduct('NVIDIA L40S', 'L4')).toBe(false);
  });
});
