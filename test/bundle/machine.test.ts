import { describe, expect, test } from 'vitest';
import { environmentOf, onDevice, refuseAbsentGpu, whyNotRun } from '../../src/bundle/machine.js';
import type { GpuList } from '../../src/toolchain/addon.js';

const gpu = (index: number, name: string, computeCapability: number) => ({
  index,
  name,
  computeCapability,
  uuid: `GPU-${index}`,
  memoryBytes: 80e9,
  multiprocessors: 132,
});
const two: GpuList = {
  gpus: [gpu(0, 'NVIDIA L4', 89), gpu(1, 'NVIDIA H200', 90)],
  cudaVersion: '12.8',
  driverVersion: '570.86',
  reason: null,
};
const none: GpuList = { gpus: [], cudaVersion: null, driverVersion: null, reason: 'There is no driver.' };

describe('the GPU of a bundle', () => {
  test('is the one that was chosen: it decides what can run, and the report speaks of it', () => {
    const chosen = onDevice(two, 1);
    expect(environmentOf(chosen, undefined)).toMatchObject({ gpu: 'NVIDIA H200', compute_capability: '9.0' });
    expect(whyNotRun(chosen, [90])).toBeNull();
    expect(whyNotRun(onDevice(two, 0), [90])).toContain('this machine has NVIDIA L4, sm_89');
  });

  test.each([
    ['no choice', none, undefined],
    ['the first, on a machine without any', none, 0],
    ['one that is there', two, 1],
  ])('%s is taken', (_, list, device) => {
    expect(() => refuseAbsentGpu(list, device)).not.toThrow();
  });

  test.each([
    [two, 2, 'GPU 2 is to build and run the bundle, and there are 0 (NVIDIA L4), 1 (NVIDIA H200).'],
    [none, 1, 'GPU 1 is to build and run the bundle, and this machine shows none (There is no driver).'],
  ])('one that is not there is an error: %#', (list, device, message) => {
    expect(() => refuseAbsentGpu(list, device)).toThrow(
      expect.objectContaining({ code: 'TF_GPU_UNAVAILABLE', message }),
    );
  });
});
