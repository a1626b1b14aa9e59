import { statIfThere } from '../../base/files/files.js';
import type { CacheEntry, CacheList } from './cache-result.js';
import type { LocalStore } from './local.js';
import { isCalled } from './lookup.js';
import type { RemoteStore } from './remote/remote-store.js';
import type { EngineSummary } from './store.js';
import { evictableTimings } from './timing-folder.js';

/** Lists a store, newest first, comparing sizes of plans here; `cache verify` reads them. `names`: parts of names or identity starts; none: all. */
export async function listCache(
  store: LocalStore | RemoteStore,
  names: readonly string[] = [],
  signal?: AbortSignal,
): Promise<CacheList> {
  const engines = (await entriesOf(store, signal))
    .filter(
      ({ identity, name }) =>
        names.length === 0 || names.some((wanted) => isCalled(wanted, identity, name ?? '')),
    )
    .map((entry) => ({ ...entry, problem: 'upload' in store ? entry.problem : problemOf(entry) }));
  const bytes = engines.reduce((sum, { bytes: size }) => sum + (size ?? 0), 0);
  const { timings, fault } = await evictableTimings(store.timing, signal);
  const timingCaches = {
    count: timings.length,
    bytes: timings.reduce((sum, each) => sum + each.bytes, 0),
    problem: fault === null ? null : { code: fault.code, reason: fault.message },
  };
  const exitCode = [...engines, timingCaches].some(({ problem }) => problem !== null) ? 1 : 0;
  return { schema: 'trtforge.cache-ls/1', store: store.place, engines, bytes, timingCaches, exitCode };
}

function problemOf({ problem, engine, bytes }: CacheEntry): CacheEntry['problem'] {
  if (problem !== null || engine === null || bytes === null) return problem;
  const stats = statIfThere(engine);
  if (stats?.isFile() !== true)
    return { code: 'TF_FILE_NOT_FOUND', reason: `${engine} is not a file that is there.` };
  if (stats.size === bytes) return null;
  const reason = `${engine} has ${stats.size} bytes, its passport states ${bytes}.`;
  return { code: 'TF_ENGINE_SIZE_MISMATCH', reason };
}

export async function entriesOf(
  store: LocalStore | RemoteStore,
  signal?: AbortSignal,
): Promise<CacheEntry[]> {
  const engines =
    'upload' in store
      ? (await store.list(signal)).map((engine) => entryOf(engine, engine.key))
      : (await store.list()).map((engine) => entryOf(engine, store.planPath(engine.identity)));
  return engines.sort((a, b) => ((a.builtAt ?? '') < (b.builtAt ?? '') ? 1 : -1));
}

function entryOf(summary: EngineSummary, engine: string | null): CacheEntry {
  const { identity, name, target, precision, bytes, builtAt, buildMs, signedBy, problem } = summary;
  return { identity, engine, name, target, precision, bytes, builtAt, buildMs, signedBy, problem };
}
