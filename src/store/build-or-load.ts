import { join } from 'node:path';
import type { PlanBuilder } from '../engine/build-engine.js';
import { type BuilderName, planBuilder } from '../engine/plan-builders.js';
import { type BuildWishes, prepareBuild } from '../engine/prepare.js';
import { type EventListener, ignoreEvents } from '../events.js';
import { cacheFolder } from '../system/folders.js';
import { LocalStore, storeFolder } from './local.js';
import { type ObtainedEngine, obtainEngine } from './obtain-engine.js';
import { remoteAddress } from './remote/address.js';
import type { RemoteStore } from './remote/remote-store.js';

/** Goes up when a passport is checked another way. */
const MEMO = 'engines-sound-1';

export interface BuildOrLoadWishes extends BuildWishes {
  /** The store's folder (default: `$TENSORRT_CACHE_DIR` or `~/.cache/trtforge/engines`), or false for none. */
  readonly store?: string | false | undefined;
  /** Address of the remote store (`s3://bucket/prefix`, `http://host:9000/bucket`; default: what `ARTIFACTS_BUCKET` and its companions say), or false for none. */
  readonly remote?: string | false | undefined;
  /** Who builds what the stores do not have (default: native). */
  readonly builder?: BuilderName | undefined;
  /** Build even though the store has the engine. */
  readonly forceRebuild?: boolean | undefined;
  /** Where to put the engine; default: it stays in the store. */
  readonly output?: string | undefined;
}

export interface BuildOrLoadContext {
  readonly emit?: EventListener;
  readonly signal?: AbortSignal;
  readonly environment?: NodeJS.ProcessEnv;
  /** Who builds plans; default: the builder of `wishes`. */
  readonly build?: PlanBuilder;
}

/**
 * An engine for a model: from the store when the same was built before, else built, checked and kept.
 *
 * ```ts
 * const { engine, source, passport } = await buildOrLoad({ model: 'resnet50.onnx', precision: 'fp16', target: 'tensorrt-rtx:sm_89' });
 * ```
 * Errors: those of `prepareBuild` and `obtainEngine`.
 */
export async function buildOrLoad(
  wishes: BuildOrLoadWishes,
  context: BuildOrLoadContext = {},
): Promise<ObtainedEngine> {
  const { environment = process.env, emit = ignoreEvents, ...rest } = context;
  const prepared = await prepareBuild(wishes, { emit, environment, signal: rest.signal });
  const store = wishes.store === false ? null : openLocalStore(wishes.store, environment);
  const asked = wishes.store === false ? false : wishes.remote;
  const remote = await openRemoteStore(asked, environment);
  try {
    return await obtainEngine(
      {
        ...prepared,
        store,
        remote,
        forceRebuild: wishes.forceRebuild ?? false,
        output: wishes.output ?? null,
      },
      { emit, env: environment, build: planBuilder(wishes.builder ?? 'native'), ...rest },
    );
  } finally {
    remote?.close();
  }
}

/** The remote store of an address, or of the environment; null where there is none. The caller closes it. Throws TF_REMOTE_ADDRESS_INVALID. */
export async function openRemoteStore(
  uri: string | false | undefined,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<RemoteStore | null> {
  const address = uri === false ? null : remoteAddress(uri, environment);
  if (address === null) return null;
  const [{ openS3 }, { RemoteStore }] = await Promise.all([
    import('./remote/s3-objects.js'),
    import('./remote/remote-store.js'),
  ]);
  return new RemoteStore(await openS3(address), address.prefix);
}

/** The local store of a folder, or the usual one. */
export const openLocalStore = (
  folder: string | undefined,
  environment: NodeJS.ProcessEnv = process.env,
): LocalStore => new LocalStore(storeFolder(folder, environment), join(cacheFolder(environment), MEMO));
