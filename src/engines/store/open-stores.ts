import { join } from 'node:path';
import { statIfThere } from '../../base/files/files.js';
import { cacheFolder, splitPaths } from '../../base/files/folders.js';
import * as is from '../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../base/options/option.js';
import { parseSize } from '../../base/text/quantity.js';
import { TrtforgeError } from '../../errors.js';
import { LocalStore } from './local.js';
import { remoteAddress, unusedEndpoint } from './remote/address.js';
import type { RemoteStore } from './remote/remote-store.js';
import { noTrust, openTrust, signatureOptions, type Trust } from './trust.js';

/** Goes up when a passport is checked another way. */
const MEMO = 'verified-engines-2';

/** Which stores are asked, in which order, and which of their engines are trusted. */
export const storeOptions = {
  /** The store's folder (default: `$TENSORRT_CACHE_DIR` or `~/.cache/trtforge/engines`), or false for none. */
  store: optional(is.either(is.text, is.only(false)), {
    flags: '--cache-dir <folder>',
    trust: true,
    describe: 'the engine store (default: ~/.cache/trtforge/engines)',
    env: 'TENSORRT_CACHE_DIR',
  }),
  /** Folders of more stores that are asked after it and never written (default: `TRTFORGE_CACHE_FROM`, several separated by `:`). */
  layers: optional(is.list<string>(), {
    flags: '--cache-from <folder>',
    trust: true,
    describe: 'another store that is searched after it and never written (default: TRTFORGE_CACHE_FROM)',
    repeat: true,
    configOnly: true,
  }),
  /** Address of the remote store (`s3://bucket/prefix`, `http://host:9000/bucket`; default: what `ARTIFACTS_BUCKET` and its companions name), or false for none. */
  remote: optional(is.either(is.text, is.only(false)), {
    flags: '--remote <address>',
    trust: true,
    describe:
      'a store shared by machines: s3://bucket/prefix or http://host:9000/bucket (default: ARTIFACTS_BUCKET); none for none',
    group: 'Store',
    advanced: true,
    parse: (address: string) => (address === 'none' ? false : address),
  }),
  /** The store holds at most this many bytes of plans and timing caches; those used least recently go (default: `TENSORRT_CACHE_MAX_SIZE`, else no limit). */
  maxBytes: optional(is.whole(1), {
    flags: '--max-size <size>',
    describe:
      'the store holds at most this many bytes: 50G; engines used least recently go (default: no limit)',
    parse: parseSize,
    env: 'TENSORRT_CACHE_MAX_SIZE',
  }),
  ...signatureOptions,
};

/** Stores as a build asks them. */
export interface EngineStores {
  /** null: no store is asked and none keeps the engine. */
  readonly store: LocalStore | null;
  readonly layers: readonly LocalStore[];
  /** Asked when the local stores have nothing, and given what is built; null for none. */
  readonly remote: RemoteStore | null;
  /** The caller named it; else the environment does. */
  readonly isRemoteRequested?: boolean;
  /** Why there is no remote store although the environment names a server. */
  readonly noRemote?: string | null;
  readonly trust: Trust;
  /** null: no limit. */
  readonly maxBytes: number | null;
}

/** Opens what was requested; the caller closes it. Throws TF_REMOTE_ADDRESS_INVALID, TF_SIZE_INVALID, TF_USAGE, TF_KEY_INVALID, TF_FILE_NOT_FOUND. */
export async function openStores(
  requested: OptionsOf<typeof storeOptions>,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<EngineStores & { close(): void }> {
  const trust = openTrust(requested, environment);
  const isOff = requested.store === false;
  const folders = requested.layers?.length
    ? requested.layers
    : splitPaths(environment.TRTFORGE_CACHE_FROM ?? '');
  const limit = environment.TENSORRT_CACHE_MAX_SIZE;
  const remote = await openRemoteStore(isOff ? false : requested.remote, environment, trust);
  return {
    store: requested.store === false ? null : openLocalStore(requested.store, environment, trust),
    layers: isOff ? [] : folders.map((folder) => openLocalStore(folder, environment, trust)),
    remote,
    isRemoteRequested: typeof requested.remote === 'string',
    noRemote: isOff || requested.remote !== undefined ? null : unusedEndpoint(environment),
    trust,
    maxBytes: requested.maxBytes ?? (limit ? parseSize(limit) : null),
    close: () => remote?.close(),
  };
}

/** The remote store of an address, or of the environment; null where there is none. The caller closes it. Throws TF_REMOTE_ADDRESS_INVALID. */
export async function openRemoteStore(
  uri: string | false | undefined,
  environment: NodeJS.ProcessEnv = process.env,
  trust: Trust = noTrust,
): Promise<RemoteStore | null> {
  const address = uri === false ? null : remoteAddress(uri, environment);
  if (address === null) return null;
  const [{ openS3 }, { RemoteStore }] = await Promise.all([
    import('./remote/s3-objects.js'),
    import('./remote/remote-store.js'),
  ]);
  return new RemoteStore(await openS3(address), address.prefix, { trust });
}

/** The local store of a folder, or the usual one. Throws TF_USAGE for a file. */
export function openLocalStore(
  folder: string | undefined,
  environment: NodeJS.ProcessEnv = process.env,
  trust: Trust = noTrust,
): LocalStore {
  const place = storeFolder(folder, environment);
  if (statIfThere(place)?.isDirectory() === false)
    throw new TrtforgeError('TF_USAGE', `The engine store ${place} is a file, not a folder.`, {
      remedy: 'Name a folder: --cache-dir FOLDER, or TENSORRT_CACHE_DIR.',
    });
  return new LocalStore(place, join(cacheFolder(environment), MEMO), trust);
}

/** Where engines are kept: `--cache-dir`, else `$TENSORRT_CACHE_DIR`, else `engines` in trtforge's cache folder. */
export const storeFolder = (given?: string, environment: NodeJS.ProcessEnv = process.env): string =>
  given || environment.TENSORRT_CACHE_DIR || join(cacheFolder(environment), 'engines');
