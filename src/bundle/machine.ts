import { TrtforgeError } from '../errors.js';
import { type GpuList, loadAddon } from '../toolchain/addon.js';
import type { BundleEnvironment } from './report-schema.js';

/** GPUs that the driver shows; without the addon none can be used, and that is the reason given. */
export function visibleGpus(): GpuList {
  try {
    return loadAddon().gpus();
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    return { gpus: [], cudaVersion: null, driverVersion: null, reason: error.message };
  }
}

/** Of the GPUs that the driver shows, the one that a bundle uses. */
export const onDevice = ({ gpus, ...driver }: GpuList, device: number): GpuList => ({
  ...driver,
  gpus: gpus.filter(({ index }) => index === device),
});

/** Throws TF_GPU_UNAVAILABLE for a GPU that was chosen and is not there; without a choice a machine may have none. */
export function refuseAbsentGpu({ gpus, reason }: GpuList, device: number | undefined): void {
  if (device === undefined || device === 0 || gpus.some(({ index }) => index === device)) return;
  const there =
    gpus.length === 0
      ? `this machine shows none (${inShort(reason ?? 'none is visible')})`
      : `there are ${gpus.map(({ index, name }) => `${index} (${name})`).join(', ')}`;
  throw new TrtforgeError(
    'TF_GPU_UNAVAILABLE',
    `GPU ${device} is to build and run the bundle, and ${there}.`,
    {
      details: { device, gpus: gpus.length },
    },
  );
}

/** Why engines for these compute capabilities cannot run here, completing «because …»; null when the GPU is one of them. */
export function whyNotRun({ gpus, reason }: GpuList, computeCapabilities: readonly number[]): string | null {
  const [gpu] = gpus;
  if (gpu === undefined)
    return `this machine has no usable NVIDIA GPU (${inShort(reason ?? 'none is visible')})`;
  if (computeCapabilities.includes(gpu.computeCapability)) return null;
  return `the engine serves ${computeCapabilities.map((sm) => `sm_${sm}`).join(', ')} and this machine has ${gpu.name}, sm_${gpu.computeCapability}`;
}

/** The driver's own words up to the details. */
const inShort = (reason: string): string => reason.split(/: |\.$/)[0] ?? '';

/** What the report says of the machine and the library. */
export function environmentOf(
  { gpus, cudaVersion, driverVersion }: GpuList,
  toolchain: { readonly product: string; readonly version: string; readonly foundBy: string } | undefined,
): BundleEnvironment {
  const [gpu] = gpus;
  return {
    tensorrt_version: toolchain?.version ?? null,
    cuda_version: cudaVersion,
    gpu: gpu?.name ?? null,
    driver: driverVersion,
    compute_capability: gpu === undefined ? null : (gpu.computeCapability / 10).toFixed(1),
    product: toolchain?.product ?? null,
    toolchain: toolchain?.foundBy ?? null,
    platform: `${process.platform} ${process.arch}`,
  };
}
