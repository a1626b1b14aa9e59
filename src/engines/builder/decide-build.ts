import { isRefittable } from '../plan/refit.js';
import { whyCache } from '../store/cache.js';
import { type EngineStores, openStores } from '../store/open-stores.js';
import type { CacheWhy } from '../store/result.js';
import type { BuildContext, ResolvedBuild } from './options.js';

/** A build as it was decided, and whether it would find its engine. */
export interface DecidedBuild {
  readonly build: ResolvedBuild;
  readonly why: CacheWhy;
  /** The stores that would keep what is built; null for none. */
  readonly places: { readonly local: string | null; readonly remote: string | null };
}

/** Searches the stores for the engine of a build; builds and fetches nothing. Throws what `openStores` throws. */
export async function decideBuild(
  build: ResolvedBuild,
  requested: Parameters<typeof openStores>[0],
  context: Pick<BuildContext, 'environment' | 'signal'>,
): Promise<DecidedBuild> {
  const { environment, signal } = context;
  const { close, ...stores } = await openStores(requested, environment);
  try {
    const found = await whyCache(stores, build.identity, build.model, signal);
    const why = { ...found, refits: found.engine === null ? await refitsOf(stores, build, context) : null };
    const { store, remote } = stores;
    return { build, why, places: { local: store?.place ?? null, remote: remote?.place ?? null } };
  } finally {
    close();
  }
}

/** Loads what compares graphs only for a build that may refit. */
async function refitsOf(
  stores: EngineStores,
  build: ResolvedBuild,
  context: Pick<BuildContext, 'environment' | 'signal'>,
): Promise<CacheWhy['refits']> {
  if (!isRefittable(build.identity.recipe)) return null;
  const { expectedRefit } = await import('./refit-candidates.js');
  return expectedRefit(stores, build, context);
}
