import { dirname, join } from 'node:path';
import { TrtforgeError } from '../../errors.js';
import type { MachineFacts, Target } from '../identity/target.js';
import type { TimingCaches, TimingScope } from '../store/timing-caches.js';
import type { BuildOptions, PlanBuilder, ResolvedBuild } from './options.js';

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

/** What the kernel times of a build on this machine hold for. */
export const timingScope = (target: Target, { gpu, driver }: MachineFacts): TimingScope => ({
  target,
  gpu,
  driverBranch: driver?.split('.')[0] ?? null,
});

/** The timing caches that a builder reads, as far as they exist. */
export const cachesRead = ({
  timingCache,
  timingCachesRead = [],
}: Pick<ResolvedBuild, 'timingCache' | 'timingCachesRead'>): readonly string[] =>
  timingCache === null ? [] : [timingCache, ...timingCachesRead];

/** Signals that come from outside: no cache is the cause. 137: SIGKILL in a shell. */
const FROM_OUTSIDE: readonly unknown[] = ['SIGKILL', 'SIGTERM', 137];

/** The builder, which starts with the timing caches of the stores, and leaves them what it measures. One that it dies with, or that the library rejects, is used by no build again. */
export const sharingTimingCaches =
  (builder: PlanBuilder, caches: TimingCaches): PlanBuilder =>
  async (build, files, context) => {
    const timingCachesRead = await caches.take();
    const timingCache = join(dirname(files.planPath), 'timing.cache');
    try {
      const outcome = await builder({ ...build, timingCache, timingCachesRead }, files, context);
      const { timingCachesMerged = [], timingCachesRejected = [] } = outcome;
      await caches.reject(timingCachesRejected);
      await caches.keep(timingCache, timingCachesMerged);
      return outcome;
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code !== 'TF_CHILD_DIED') throw error;
      const { signal, exitCode } = error.details ?? {};
      if (timingCachesRead.length === 0 || FROM_OUTSIDE.includes(signal ?? exitCode)) throw error;
      await caches.reject(timingCachesRead);
      throw new TrtforgeError(error.code, error.message, {
        remedy: `The build started with timing caches, which may be the cause. They are removed: run the same line again. ${error.remedy}`,
        details: error.details,
        cause: error,
      });
    }
  };
