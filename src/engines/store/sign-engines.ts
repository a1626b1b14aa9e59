import { createPublicKey, type KeyObject } from 'node:crypto';
import { chmodSync, closeSync, openSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { makeFolder } from '../../base/files/folders.js';
import { publishFile, writeFailed } from '../../base/files/publish.js';
import { systemErrorCode, TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { isCalled } from '../identity/engine-name.js';
import type { Passport } from '../identity/passport.js';
import { verifyRemote } from './cache.js';
import type { LocalStore } from './local.js';
import { nothingCalled } from './lookup.js';
import type { RemoteStore } from './remote/remote-store.js';
import type { CacheKeys, CacheSigning } from './result.js';
import { generateKeys, keyIdOf, signDocument } from './trust.js';

/** Makes a pair of keys: `path` for its owner alone, `path.pub` for everybody. Throws TF_USAGE where a file is there already, TF_WRITE_FAILED. */
export function makeKeys(path: string): CacheKeys {
  const { privateKey, publicKey, keyId } = generateKeys();
  const folder = dirname(path);
  try {
    makeFolder(folder);
  } catch (cause) {
    throw writeFailed(folder, cause);
  }
  try {
    // 'wx' with the mode at once: at no moment can another user read it, and no key is ever written over.
    closeSync(openSync(path, 'wx', 0o600));
    writeFileSync(path, privateKey);
    chmodSync(path, 0o600);
  } catch (cause) {
    if (systemErrorCode(cause) !== 'EEXIST') throw writeFailed(path, cause);
    throw new TrtforgeError('TF_USAGE', `${path} is there already, and a key is never written over.`, {
      remedy: 'Choose another name with -o FILE.',
    });
  }
  publishFile(`${path}.pub`, publicKey);
  return {
    schema: 'trtforge.cache-keygen/1',
    keyId,
    privateKey: resolve(path),
    publicKey: resolve(`${path}.pub`),
  };
}

/** The sound engines of a store that names fit; all without names. Throws TF_USAGE when a name fits nothing. */
async function enginesToSign(store: LocalStore | RemoteStore, names: readonly string[]) {
  const listed = (await store.list()).filter(({ problem }) => problem === null);
  const isMeant = (wanted: string) => (engine: (typeof listed)[number]) =>
    isCalled(wanted, engine.identity, engine.name ?? '');
  const unknown = names.find((wanted) => !listed.some(isMeant(wanted)));
  if (unknown !== undefined) throw nothingCalled(store.place, unknown);
  return listed.filter((engine) => names.length === 0 || names.some((wanted) => isMeant(wanted)(engine)));
}

/**
 * Signs engines of a store, each after a check of its plan; those of a bucket are fetched for it. `names` are starts of identities or parts of
 * readable names; none means all. Throws TF_USAGE when a name fits nothing, what is wrong with a plan, TF_REMOTE_*, TF_WRITE_FAILED.
 */
export async function signEngines(
  store: LocalStore | RemoteStore,
  names: readonly string[],
  key: KeyObject,
  options: WorkContext,
): Promise<CacheSigning> {
  const signed: CacheSigning['signed'] = [];
  for (const { identity } of await enginesToSign(store, names)) {
    const passport =
      'upload' in store
        ? await signRemote(store, identity, key, options)
        : await signLocal(store, identity, key);
    signed.push({ identity, name: passport.name });
  }
  return {
    schema: 'trtforge.cache-sign/1',
    store: store.place,
    keyId: keyIdOf(createPublicKey(key)),
    signed,
  };
}

async function signLocal(store: LocalStore, identity: string, key: KeyObject): Promise<Passport> {
  const { verifyEngineInPieces } = await import('../plan/verify-engine.js');
  const passport = await verifyEngineInPieces(store.planPath(identity));
  store.sign(passport, signDocument(passport, key));
  return passport;
}

async function signRemote(
  store: RemoteStore,
  identity: string,
  key: KeyObject,
  options: WorkContext,
): Promise<Passport> {
  const engine = await verifyRemote(store, identity, options);
  await store.sign(engine, signDocument(engine.passport, key), options.signal);
  return engine.passport;
}
