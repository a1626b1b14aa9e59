import { TrtforgeError } from '../errors.js';
import type { Gpu, GpuList } from './addon.js';

/**
 * The GPU of this number among those that the driver shows. Throws TF_GPU_UNAVAILABLE, whose sentence begins with what the GPU is needed for: «Running an
 * engine needs an NVIDIA GPU».
 */
export function chosenGpu(
  { gpus, reason }: Pick<GpuList, 'gpus' | 'reason'>,
  device: number,
  need: string,
  remedy?: string,
): Gpu {
  const gpu = gpus.find(({ index }) => index === device);
  if (gpu !== undefined) return gpu;
  const why =
    gpus.length === 0
      ? `this machine shows none${reason === null ? '' : `: ${reason.replace(/\.$/, '')}`}`
      : `there is no GPU ${device} here: ${gpus.map(({ index, name }) => `${index} is ${name}`).join(', ')}`;
  throw new TrtforgeError('TF_GPU_UNAVAILABLE', `${need}, and ${why}.`, {
    details: { device, gpus: gpus.length, reason },
    ...(remedy === undefined ? {} : { remedy }),
  });
}
