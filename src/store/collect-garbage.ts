import type { CacheCollection } from './cache-result.js';
import { chooseVictims, type EvictionPlan } from './eviction.js';
import type { LocalStore } from './local.js';
import type { RemoteStore } from './remote/remote-store.js';

/**
 * Brings a store under a limit. A folder knows when each engine was last used; a bucket does not, so there the engines built longest ago go
 * first, except those that are being built again. Throws TF_STORE_UNWRITABLE, TF_REMOTE_*.
 */
export async function collectGarbage(
  store: LocalStore | RemoteStore,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<CacheCollection> {
  const plan = 'find' in store ? await evictRemote(store, maxBytes, signal) : await store.evict(maxBytes);
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

async function evictRemote(
  store: RemoteStore,
  maxBytes: number,
  signal: AbortSignal | undefined,
): Promise<EvictionPlan> {
  const held = new Set(await store.leases.names(signal));
  const plan = chooseVictims(
    (await store.list(signal)).map(({ identity, bytes, builtAt }) => ({
      identity,
      bytes: bytes ?? 0,
      lastUsed: Date.parse(builtAt ?? '') || 0,
      held: held.has(identity),
    })),
    maxBytes,
  );
  for (const { identity } of plan.victims) await store.remove(identity, signal);
  return plan;
}
