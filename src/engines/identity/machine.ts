import type { GpuList } from '../../addon/addon.js';
import { onDevice, visibleGpus, whyNoGpu } from '../../addon/gpus.js';

/** The driver's report on the GPU that TensorRT uses: the first it shows, where none is chosen. */
export interface MachineFacts {
  readonly gpu: string | null;
  readonly gpuComputeCapability: number | null;
  readonly driver: string | null;
}

/** Asks the CUDA driver, if there is one; null on a machine without this GPU, driver or addon. Throws TF_USAGE for a device that is not an ordinal. */
export function machineFacts(device = 0): MachineFacts {
  const { gpus, driverVersion } = onDevice(visibleGpus(), device);
  const [gpu] = gpus;
  return {
    gpu: gpu?.name ?? null,
    gpuComputeCapability: gpu?.computeCapability ?? null,
    driver: driverVersion,
  };
}

/** Why engines for these compute capabilities cannot run on the GPU of a list of one, completing "because …"; null when they can. */
export function whyNotRun(list: GpuList, computeCapabilities: readonly number[]): string | null {
  const [gpu] = list.gpus;
  if (gpu === undefined) return `this machine has no usable NVIDIA GPU (${whyNoGpu(list)})`;
  if (computeCapabilities.includes(gpu.computeCapability)) return null;
  const served = computeCapabilities.map((sm) => `sm_${sm}`).join(', ');
  return `the engine serves ${served} and GPU ${gpu.index} is ${gpu.name}, sm_${gpu.computeCapability}`;
}

/** The environment of a child that is to see one GPU, and that as its first: the one this process sees as `device`. */
export const onlyGpu = (environment: NodeJS.ProcessEnv, device: number): NodeJS.ProcessEnv => ({
  ...environment,
  CUDA_VISIBLE_DEVICES: visibleEntry(environment, device),
});

/**
 * The GPU's name in CUDA_VISIBLE_DEVICES: where that is set, it is a list of indices or UUIDs; else indices of all GPUs count. A number beyond the
 * list names no GPU: the driver then shows none, and the child reports it.
 */
export const visibleEntry = ({ CUDA_VISIBLE_DEVICES: visible }: NodeJS.ProcessEnv, device: number): string =>
  visible === undefined ? String(device) : (visible.split(',')[device]?.trim() ?? 'none');
