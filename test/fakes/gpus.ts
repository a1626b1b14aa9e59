import type { Gpu, GpuList } from '../../src/addon/addon.js';

const gpu = (index: number, name: string, computeCapability: number): Gpu => ({
  index,
  name,
  computeCapability,
  uuid: `GPU-${index}`,
  memoryBytes: 80e9,
  multiprocessors: 132,
});

/** A machine with two unlike GPUs. */
export const twoGpus: GpuList = {
  gpus: [gpu(0, 'NVIDIA L4', 89), gpu(1, 'NVIDIA H200', 90)],
  cudaVersion: '12.8',
  driverVersion: '570.86',
  reason: null,
};

/** A machine without any. */
export const noGpus: GpuList = {
  gpus: [],
  cudaVersion: null,
  driverVersion: null,
  reason: 'There is no driver.',
};

/** What JavaScript may pass for the number of a GPU, and is none. */
export const noDevices = [-1, 1.5, Number.NaN, '1', null] as unknown as readonly number[];
