import { describe, expect, test } from 'vitest';
import { onDevice } from '../../../src/addon/gpus.js';
import { onlyGpu, runsOn, whyNotRun } from '../../../src/engines/identity/target.js';
import { noGpus, twoGpus } from '../../fakes/gpus.js';

describe('the environment of a child that sees one GPU', () => {
  test.each([
    [{}, 2, '2'],
    [{ CUDA_VISIBLE_DEVICES: '3,5' }, 0, '3'],
    [{ CUDA_VISIBLE_DEVICES: '3,5' }, 1, '5'],
    [{ CUDA_VISIBLE_DEVICES: 'GPU-aaaa, GPU-bbbb' }, 1, 'GPU-bbbb'],
    [{ CUDA_VISIBLE_DEVICES: '3' }, 1, 'none'],
    [{ CUDA_VISIBLE_DEVICES: '' }, 0, ''],
  ])('%j, GPU %i: %s', (environment, device, visible) => {
    expect(onlyGpu({ ...environment, HOME: '/h' }, device)).toEqual({
      CUDA_VISIBLE_DEVICES: visible,
      HOME: '/h',
    });
  });
});

const engine = (computeCapabilities: readonly number[], hardwareCompatibility: string) => ({
  target: { computeCapabilities },
  recipe: { hardwareCompatibility },
});

describe('whether an engine runs here', () => {
  test.each([
    [twoGpus, 1, null],
    [twoGpus, 0, 'the engine serves sm_75, sm_90 and GPU 0 is NVIDIA L4, sm_89'],
    [noGpus, 0, 'this machine has no usable NVIDIA GPU (There is no driver)'],
  ])('is decided by the GPU of the run: %#', (list, device, why) => {
    expect(whyNotRun(onDevice(list, device), engine([75, 90], 'none'))).toBe(why);
  });

  test.each([
    [80, engine([80], 'none'), true],
    [89, engine([80], 'none'), false],
    [89, engine([80], 'ampere-plus'), true],
    [75, engine([80], 'ampere-plus'), false],
    // Jetson's Orin is no GPU that such an engine is for.
    [87, engine([80], 'ampere-plus'), false],
    [75, engine([], 'none'), true],
  ])('on sm_%i: %j, %j', (sm, built, runs) => {
    expect(runsOn(sm, built)).toBe(runs);
  });
});
