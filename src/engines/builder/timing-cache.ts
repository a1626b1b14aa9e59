import { join } from 'node:path';
import { sha256 } from '../../base/files/digest.js';
import { canonicalJson } from '../identity/canonical-json.js';
import type { Target } from '../identity/target.js';

/** What of the machine decides whether measured tactic times may be used again. */
export interface TimingMachine {
  readonly gpu: string | null;
  readonly driver: string | null;
}

/**
 * The timing cache for a target: one file per TensorRT build, compute capability, GPU model, CUDA major and driver branch. Measured times of
 * another GPU or driver lead to wrong choices, and merged caches have led to assertions inside the library.
 * null for tensorrt-rtx: it measures nothing when it builds ahead of time, and without a GPU it refuses the very cache it wrote.
 */
export function timingCachePath(cacheFolder: string, target: Target, machine: TimingMachine): string | null {
  if (target.product === 'tensorrt-rtx') return null;
  const driverBranch = machine.driver?.split('.')[0] ?? null;
  const key = sha256(canonicalJson({ target, gpu: machine.gpu, driverBranch })).slice(0, 16);
  const name = `${target.product}-${target.version}_sm_${target.computeCapabilities.join('-')}_${key}.timing`;
  return join(cacheFolder, 'timing', name);
}
