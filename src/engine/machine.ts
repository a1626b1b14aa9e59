import { loadAddon } from '../toolchain/addon.js';

/** What the driver says of the GPU that TensorRT uses: the first it shows, where none is chosen. */
export interface MachineFacts {
  readonly gpu: string | null;
  readonly gpuComputeCapability: number | null;
  readonly driver: string | null;
}

/** Asks the CUDA driver, if there is one; a machine without this GPU, driver or addon has nothing to say. */
export function machineFacts(device = 0): MachineFacts {
  try {
    const { gpus, driverVersion } = loadAddon().gpus();
    const gpu = gpus.find(({ index }) => index === device);
    return {
      gpu: gpu?.name ?? null,
      gpuComputeCapability: gpu?.computeCapability ?? null,
      driver: driverVersion,
    };
  } catch {
    return { gpu: null, gpuComputeCapability: null, driver: null };
  }
}

/** The environment of a child that is to see one GPU, and that as its first: the one this process sees as `device`. */
export const onlyGpu = (environment: NodeJS.ProcessEnv, device: number): NodeJS.ProcessEnv => ({
  ...environment,
  CUDA_VISIBLE_DEVICES: visibleEntry(environment, device),
});

/**
 * How CUDA_VISIBLE_DEVICES names the GPU: what is visible already is a list of indices or UUIDs, else indices of all count. A number beyond the list
 * names none: the driver then shows none, and the child says so.
 */
export const visibleEntry = ({ CUDA_VISIBLE_DEVICES: visible }: NodeJS.ProcessEnv, device: number): string =>
  visible === undefined ? String(device) : (visible.split(',')[device]?.trim() ?? 'none');
