import type { CacheCollection } from './cache-result.js';
import { chooseVictims, type EvictionPlan } from './eviction.js';
import type { LocalStore } from './local.js';
import type { RemoteStore } from './remote/remote-store.js';
import { evictableTimings, evictedTiming } from './timing-folder.js';

interface CollectOptions {
  readonly confirm: (identities: readonly string[]) => Promise<void>;
  readonly signal?: AbortSignal;
}

/** Which engines and timing caches go to bring a store under a limit. Throws TF_REMOTE_*. */
export const planCollection = (
  store: LocalStore | RemoteStore,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<EvictionPlan> =>
  'upload' in store ? remotePlan(store, maxBytes, signal) : store.evictionPlan(maxBytes);

/**
 * Brings a store under a limit. A folder knows when each engine was last used; a bucket does not, so there the engines built longest ago go
 * first, except those that are being built again. `confirm` gets what would go from a bucket, and stops it by throwing.
 * Throws TF_STORE_UNWRITABLE, TF_REMOTE_*.
 */
export async function collectGarbage(
  store: LocalStore | RemoteStore,
  maxBytes: number,
  { confirm, signal }: CollectOptions,
): Promise<CacheCollection> {
  const plan =
    'upload' in store ? await planCollection(store, maxBytes, signal) : await store.evict(maxBytes);
  if ('upload' in store && plan.victims.length > 0) {
    await confirm(plan.victims.map(({ identity }) => identity));
    for (const { identity } of plan.victims) {
      const timing = evictedTiming(identity);
      await (timing === undefined ? store.remove(identity, signal) : store.timing.remove(timing, signal));
    }
  }
  return {
    schema: 'trtforge.cache-gc/1',
    store: store.place,
    maxBytes,
    removed: plan.victims.map(({ identity }) => identity),
    bytesBefore: plan.bytesBefore,
    bytesAfter: plan.bytesAfter,
    excessBytes: plan.excessBytes,
  };
}

async function remotePlan(
  store: RemoteStore,
  maxBytes: number,
  signal: AbortSignal | undefined,
): Promise<EvictionPlan> {
  const held = new Set(await store.leases.names(signal));
  const engines = (await store.list(signal)).map(({ identity, bytes, builtAt }) => ({
    identity,
    bytes: bytes ?? 0,
    lastUsed: Date.parse(builtAt ?? '') || 0,
    held: held.has(identity),
  }));
  const { timings } = await evictableTimings(store.timing, signal);
  return chooseVictims([...engines, ...timings], maxBytes);
}
