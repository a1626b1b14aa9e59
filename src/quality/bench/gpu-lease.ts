import { join } from 'node:path';
import { cacheFolder } from '../../base/files/folders.js';
import { sleep } from '../../base/process/cancel.js';
import { type Lease, LeaseFolder } from '../../engines/store/claims/lease.js';
import type { BenchContext } from './options.js';

const LOOK_MS = 500;

export interface GpuLease {
  /** A sentence when another bench measures on the GPU and nobody waited. */
  readonly warning: string | null;
  release(): void;
}

/** Benches on one GPU take turns when asked to; the lease keeps no one from using the GPU. `uuid` names it whatever its ordinal. */
export async function leaseGpu(uuid: string, wait: boolean, context: BenchContext): Promise<GpuLease> {
  const { emit, signal, environment } = context;
  const folder = new LeaseFolder(join(cacheFolder(environment), 'gpu-leases'));
  const name = uuid.replace(/[^\w-]/g, '_');
  for (let isReported = false; ; ) {
    const attempt = folder.tryAcquire(name);
    if (attempt.lease !== null) return held(attempt.lease);
    if (!wait) {
      const warning = `Another bench measures on this GPU (${attempt.holder}), so neither has it alone: --wait takes turns.`;
      return { warning, release: () => {} };
    }
    if (!isReported) emit({ type: 'phase-start', phase: 'wait for the GPU', detail: attempt.holder });
    isReported = true;
    await sleep(LOOK_MS, signal, 'waiting for another bench on the GPU');
  }
}

const held = (lease: Lease): GpuLease => ({ warning: null, release: () => lease.release() });
