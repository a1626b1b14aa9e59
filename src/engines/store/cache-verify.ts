import { join } from 'node:path';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeScratch } from '../../base/files/scratch.js';
import { ExitCode, TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { entriesOf } from './cache-listing.js';
import type { CacheEntry, CacheVerification } from './cache-result.js';
import type { LocalStore } from './local.js';
import type { RemoteEngine, RemoteStore } from './remote/remote-store.js';
import { noTrust, type Trust, verifyTrusted } from './trust.js';

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
    engines.push({ ...entry, problem: entry.problem ?? (await problemOf(check)) });
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

async function problemOf(check: () => Promise<unknown>): Promise<CacheEntry['problem']> {
  try {
    await check();
    return null;
  } catch (error) {
    if (!(error instanceof TrtforgeError) || ['TF_CANCELLED', 'TF_REMOTE_UNREACHABLE'].includes(error.code))
      throw error;
    return { code: error.code, reason: error.message };
  }
}
