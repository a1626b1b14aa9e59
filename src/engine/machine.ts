import { loadAddon } from '../toolchain/addon.js';

/** What the driver says of the GPU that TensorRT would use: the first it shows. */
export interface MachineFacts {
  readonly gpu: string | null;
  readonly gpuComputeCapability: number | null;
  readonly driver: string | null;
}

/** Asks the CUDA driver, if there is one; a machine without GPU, driver or addon has nothing to say. */
export function machineFacts(): MachineFacts {
  try {
    const { gpus, driverVersion } = loadAddon().gpus();
    const [first] = gpus;
    return {
      gpu: first?.name ?? null,
      gpuComputeCapability: first?.computeCapability ?? null,
      driver: driverVersion,
    };
  } catch {
    return { gpu: null, gpuComputeCapability: null, driver: null };
  }
}
