import { join } from 'node:path';
import { canonicalJson, sha256 } from '../../base/files/digest.js';
import type { MachineFacts } from '../identity/machine.js';
import type { Target } from '../identity/target.js';
import type { BuildOptions } from './build.js';

/** Whether builds for the target measure kernels: tensorrt-rtx does not ahead of time, and without a GPU rejects the cache that it wrote. */
export const measuresKernels = ({ product }: Pick<Target, 'product'>): boolean => product !== 'tensorrt-rtx';

/** Why a timing cache has no effect. */
export const NO_MEASUREMENT = 'tensorrt-rtx measures no kernels when it builds';

/** The timing cache that was named and has no effect; null where there is none. */
export const unusedTimingCache = (
  target: Target,
  timingCache: BuildOptions['timingCache'] = 'auto',
): string | null => (timingCache === 'auto' || measuresKernels(target) ? null : timingCache);

export const unusedTimingCacheText = (unused: string): string =>
  `The timing cache ${unused} is neither read nor written: ${NO_MEASUREMENT}. Remove --timing-cache.`;

/**
 * The timing cache of a target: one file per TensorRT build, compute capability, GPU model, CUDA major and driver branch. Measured times of
 * another GPU or driver lead to wrong choices, and merged caches have led to assertions inside the library.
 * null for tensorrt-rtx.
 */
export function timingCachePath(folder: string, target: Target, machine: MachineFacts | null): string | null {
  if (machine === null) return null;
  const driverBranch = machine.driver?.split('.')[0] ?? null;
  const key = sha256(canonicalJson({ target, gpu: machine.gpu, driverBranch })).slice(0, 16);
  const name = `${target.product}-${target.version}_sm_${target.computeCapabilities.join('-')}_${key}.timing`;
  return join(folder, 'timing', name);
}
