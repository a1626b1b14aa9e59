import { join } from 'node:path';
import type { PlanBuilder } from '../engine/build-engine.js';
import { type BuildWishes, prepareBuild } from '../engine/prepare.js';
import { type EventListener, ignoreEvents } from '../events.js';
import { cacheFolder } from '../system/folders.js';
import { LocalStore, storeFolder } from './local.js';
import { type ObtainedEngine, obtainEngine } from './obtain-engine.js';

/** Goes up when a passport is checked another way. */
const MEMO = 'engines-sound-1';

export interface BuildOrLoadWishes extends BuildWishes {
  /** The store's folder (default: `$TENSORRT_CACHE_DIR` or `~/.cache/trtforge/engines`), or false for none. */
  readonly store?: string | false | undefined;
  /** Build even though the store has the engine. */
  readonly forceRebuild?: boolean | undefined;
  /** Where to put the engine; default: it stays in the store. */
  readonly output?: string | undefined;
}

export interface BuildOrLoadContext {
  readonly emit?: EventListener;
  readonly signal?: AbortSignal;
  readonly environment?: NodeJS.ProcessEnv;
  /** Who builds plans; default: the library, in a child process. */
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
  return obtainEngine(
    {
      ...prepared,
      store: wishes.store === false ? null : openLocalStore(wishes.store, environment),
      forceRebuild: wishes.forceRebuild ?? false,
      output: wishes.output ?? null,
    },
    { emit, env: environment, ...rest },
  );
}

/** The local store of a folder, or the usual one. */
export const openLocalStore = (
  folder: string | undefined,
  environment: NodeJS.ProcessEnv = process.env,
): LocalStore => new LocalStore(storeFolder(folder, environment), join(cacheFolder(environment), MEMO));
