import { join } from 'node:path';
import { removeIfAllowed, statIfThere } from '../../base/files/files.js';
import { makeScratch } from '../../base/files/folders.js';
import { ExitCode, TrtforgeError } from '../../errors.js';
import { ignoreEvents, type WorkContext } from '../../events.js';
import { engineNameOf, formatEngineName, isCalled } from '../identity/engine-name.js';
import { type IdentityDocument, identityDigest } from '../identity/identity.js';
import type { Passport } from '../identity/passport.js';
import { mayServe } from './compatibility.js';
import type { LocalStore } from './local.js';
import { lookUp, lookUpLocally } from './lookup.js';
import type { EngineStores } from './open-stores.js';
import type { RemoteEngine, RemoteStore } from './remote/remote-store.js';
import type { CacheCollection, CacheEntry, CacheList, CacheVerification, CacheWhy } from './result.js';
import type { EngineSummary } from './store.js';
import { evictableTimings, evictedTiming } from './timing-folder.js';
import { noTrust, type Trust, verifyTrusted } from './trust.js';
import { type Miss, plainMiss, withNearest } from './why.js';

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

async function entriesOf(store: LocalStore | RemoteStore, signal?: AbortSignal): Promise<CacheEntry[]> {
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

interface CollectOptions {
  readonly confirm: (identities: readonly string[]) => Promise<void>;
  readonly signal?: AbortSignal;
}

/**
 * Brings a store under a limit. `confirm` gets what would go from a bucket, and stops it by throwing.
 * Throws TF_STORE_UNWRITABLE, TF_REMOTE_*.
 */
export async function collectGarbage(
  store: LocalStore | RemoteStore,
  maxBytes: number,
  { confirm, signal }: CollectOptions,
): Promise<CacheCollection> {
  const plan = 'upload' in store ? await store.evictionPlan(maxBytes, signal) : await store.evict(maxBytes);
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

interface VerifyOptions extends WorkContext {
  readonly trust?: Trust;
}

/**
 * Reads every plan of a store and checks it against its passport and what is trusted; those of a bucket are fetched for it.
 * `exitCode` is 1 when one does not agree, 4 when there is none.
 */
export async function verifyCache(
  store: LocalStore | RemoteStore,
  { trust = noTrust, ...work }: VerifyOptions = {},
): Promise<CacheVerification> {
  const engines: CacheEntry[] = [];
  for (const entry of await entriesOf(store, work.signal)) {
    const check = (): Promise<unknown> =>
      'upload' in store
        ? verifyRemote(store, entry.identity, work)
        : verifyTrusted(trust, store.planPath(entry.identity));
    engines.push({ ...entry, problem: entry.problem ?? (await problemFoundBy(check)) });
  }
  const verified = engines.filter(({ problem }) => problem === null).length;
  return {
    schema: 'trtforge.cache-verify/1',
    store: store.place,
    verified,
    engines,
    // Of a store without engines nothing is proven, as `cache check` has it.
    exitCode: engines.length === 0 ? ExitCode.inconclusive : verified === engines.length ? 0 : 1,
  };
}

/** Fetches an engine of a bucket for a check of its plan, and keeps nothing. Throws TF_REMOTE_*, TF_ENGINE_*, TF_PASSPORT_INVALID, TF_SIGNATURE_INVALID. */
export async function verifyRemote(
  store: RemoteStore,
  identity: string,
  options: WorkContext,
): Promise<RemoteEngine> {
  const answer = await store.get(identity, options.signal);
  if (!answer.found) throw new TrtforgeError(answer.code ?? 'TF_REMOTE_NOT_FOUND', answer.reason);
  const folder = makeScratch('verify');
  try {
    await store.download(answer.engine, join(folder, 'engine.plan'), options);
    return answer.engine;
  } finally {
    removeIfAllowed(folder);
  }
}

async function problemFoundBy(check: () => Promise<unknown>): Promise<CacheEntry['problem']> {
  try {
    await check();
    return null;
  } catch (error) {
    if (!(error instanceof TrtforgeError) || ['TF_CANCELLED', 'TF_REMOTE_UNREACHABLE'].includes(error.code))
      throw error;
    return { code: error.code, reason: error.message };
  }
}

/** Others of the model that the rules are shown for. */
const MOST_SHOWN = 20;

/** Whether a build would find an engine, where, by which rule, and why each source before it would not serve. Builds and fetches nothing. */
export async function whyCache(
  stores: EngineStores,
  wanted: IdentityDocument,
  model: { readonly name: string; readonly version: string | null },
  signal?: AbortSignal,
): Promise<CacheWhy> {
  const others = new Map<string, Passport>();
  for (const store of [...(stores.store === null ? [] : [stores.store]), ...stores.layers])
    for (const passport of await passportsOfModel(store, wanted))
      others.set(passport.identity.digest, passport);
  const { hit, why } = await lookUpLocally(stores, { identity: wanted, model }, ignoreEvents);
  let served = hit && { engine: hit.engine.planPath, rule: hit.rule, from: hit.from };
  if (stores.remote !== null && served === undefined) {
    const answer = await askRemote(stores.remote, wanted, others, signal);
    if ('rule' in answer) served = { ...answer, from: 'remote' };
    else why.push(answer);
  }
  if (stores.noRemote != null) why.push(plainMiss('remote', null, stores.noRemote));
  const identity = identityDigest(wanted);
  others.delete(identity);
  return {
    schema: 'trtforge.cache-why/1',
    store: stores.store?.place ?? stores.remote?.place ?? 'none',
    identity,
    name: formatEngineName(engineNameOf(wanted, model.name, model.version)),
    engine: served?.engine ?? null,
    from: served?.from ?? null,
    rule: served?.rule ?? null,
    refits: null,
    others: [...others.values()].slice(0, MOST_SHOWN).map((passport) => ({
      identity: passport.identity.digest,
      name: passport.name,
      ...mayServe(wanted, passport.identity.document),
    })),
    why: why.map((miss) => ({ ...miss, differences: [...miss.differences] })),
  };
}

async function askRemote(
  remote: RemoteStore,
  wanted: IdentityDocument,
  others: Map<string, Passport>,
  signal: AbortSignal | undefined,
): Promise<{ readonly engine: string; readonly rule: string } | Miss> {
  try {
    const answer = await lookUp(remote, wanted, signal);
    if (answer.found) return { engine: answer.engine.key, rule: answer.rule };
    const same = (await remote.ofModel(wanted.model, signal)).map(({ engine }) => engine.passport);
    for (const passport of same) others.set(passport.identity.digest, passport);
    const isNone = answer.code === null && same.length === 0;
    const reason = isNone ? `${remote.place} has no usable engine of this model` : answer.reason;
    return withNearest(plainMiss('remote', answer.code, reason), wanted, same);
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    return plainMiss('remote', error.code, `${error.message} ${error.remedy}`);
  }
}

async function passportsOfModel(
  store: LocalStore,
  { model }: IdentityDocument,
): Promise<readonly Passport[]> {
  const engines = (await store.ofModel(model)).slice(0, MOST_SHOWN);
  const passports = await Promise.all(engines.map(({ identity }) => store.passport(identity)));
  return passports.filter((passport) => passport !== undefined);
}
