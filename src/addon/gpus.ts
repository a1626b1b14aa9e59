import { TrtforgeError } from '../errors.js';
import { type Gpu, type GpuList, loadAddon } from './addon.js';

/** GPUs that the driver shows; without the addon none can be used, and that is the reason given. */
export function visibleGpus(): GpuList {
  try {
    return loadAddon().gpus();
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    return { gpus: [], cudaVersion: null, driverVersion: null, reason: error.message };
  }
}

/** Throws TF_USAGE for what numbers no GPU: the command line checks its own, JavaScript may pass anything. */
export function checkDevice(device: number | undefined): void {
  if (device === undefined || (Number.isSafeInteger(device) && device >= 0)) return;
  throw new TrtforgeError('TF_USAGE', `device is ${device}, and must be a whole number from 0.`, {
    remedy: 'Pass the number of a visible GPU, 0 for the first; `trtforge doctor` lists them.',
  });
}

/** The list with nothing but one of its GPUs; without that one it is empty, and `reason` states why. Throws TF_USAGE. */
export function onDevice(list: GpuList, device: number): GpuList {
  checkDevice(device);
  const gpus = list.gpus.filter(({ index }) => index === device);
  return { ...list, gpus, reason: gpus.length > 0 ? null : whyAbsent(list, device) };
}

const whyAbsent = ({ gpus, reason }: GpuList, device: number): string | null =>
  gpus.length === 0
    ? reason
    : `there is no GPU ${device} here: ${gpus.map(({ index, name }) => `${index} is ${name}`).join(', ')}`;

/**
 * The GPU of this number among those that the driver shows. Throws TF_GPU_UNAVAILABLE, whose sentence begins with what the GPU is needed for: "Running an
 * engine needs an NVIDIA GPU", and TF_USAGE for what is not a number of one.
 */
export function chosenGpu(list: GpuList, device: number, need: string, remedy?: string): Gpu {
  const { gpus, reason } = onDevice(list, device);
  const [gpu] = gpus;
  if (gpu !== undefined) return gpu;
  const detail = reason === null ? '' : `: ${reason.replace(/\.$/, '')}`;
  const why = list.gpus.length === 0 ? `this machine shows none${detail}` : reason;
  throw new TrtforgeError('TF_GPU_UNAVAILABLE', `${need}, and ${why}.`, {
    remedy,
    details: { device, gpus: list.gpus.length, reason },
  });
}

/**
 * For work that uses a GPU where there is one and does without elsewhere: throws TF_GPU_UNAVAILABLE for one that was chosen and is not there. 0 is
 * everybody's default, so on a machine without any it chooses nothing.
 */
export function assertGpuPresent(list: GpuList, device: number | undefined, need: string): void {
  checkDevice(device);
  if (device === undefined || (device === 0 && list.gpus.length === 0)) return;
  chosenGpu(list, device, need);
}

/** Why there is no GPU, completing "none (…)": the driver's own message up to the details. */
export const whyNoGpu = ({ reason }: Pick<GpuList, 'reason'>): string =>
  (reason ?? 'none is visible').split(/: |\.$/)[0] ?? '';

/** Memory in use on a GPU, everybody's, bytes; null without such a GPU, and where NVML does not answer. */
export const gpuBytesInUse = (device = 0): number | null => stateOf(device)?.memoryUsedBytes ?? null;

/** Memory that nobody uses, likewise. */
export function gpuBytesFree(device = 0): number | null {
  const { memoryUsedBytes = null, memoryTotalBytes = null } = stateOf(device) ?? {};
  return memoryUsedBytes === null || memoryTotalBytes === null ? null : memoryTotalBytes - memoryUsedBytes;
}

function stateOf(device: number) {
  const [gpu] = onDevice(visibleGpus(), device).gpus;
  return gpu === undefined ? null : loadAddon().gpuState(gpu.uuid);
}
