import { protectingInputs } from '../../base/files/user-files.js';
import { type EventListener, ignoreEvents } from '../../events.js';
import type { PlanBuilder } from '../builder/build-engine.js';
import { type BuilderName, planBuilder } from '../builder/plan-builders.js';
import { type BuildWishes, prepareBuild } from '../builder/prepare.js';
import { type ObtainedEngine, obtainEngine } from './obtain-engine.js';
import { openStores, type StoreWishes } from './open-stores.js';

export interface BuildOrLoadWishes extends BuildWishes, StoreWishes {
  /** Who builds what the stores do not have (default: native). */
  readonly builder?: BuilderName | undefined;
  /** Whether a build tells the library's verbose lines too: tens of thousands on a large model. */
  readonly verbose?: boolean | undefined;
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
 * An engine for a model: from the stores when the same was built before, else built, checked and kept. While this process lives, eviction
 * leaves the engine in the store alone.
 *
 * ```ts
 * const { engine, source, passport } = await buildOrLoad({ model: 'resnet50.onnx', precision: 'fp16', target: 'tensorrt-rtx:sm_89' });
 * ```
 * Errors: those of `openStores`, `prepareBuild` and `obtainEngine`.
 */
export async function buildOrLoad(
  wishes: BuildOrLoadWishes,
  context: BuildOrLoadContext = {},
): Promise<ObtainedEngine> {
  const { model, plugins = [], trustKeys = [], signKey } = wishes;
  return protectingInputs([model, ...plugins, ...trustKeys, signKey], () => obtain(wishes, context));
}

async function obtain(wishes: BuildOrLoadWishes, context: BuildOrLoadContext): Promise<ObtainedEngine> {
  const { environment = process.env, emit = ignoreEvents, ...rest } = context;
  const { close, ...stores } = await openStores(wishes, environment);
  try {
    const prepared = await prepareBuild(wishes, { emit, environment, signal: rest.signal });
    return await obtainEngine(
      {
        ...prepared,
        ...stores,
        forceRebuild: wishes.forceRebuild ?? false,
        output: wishes.output ?? null,
      },
      {
        emit,
        env: environment,
        verbose: wishes.verbose ?? false,
        build: planBuilder(wishes.builder ?? 'native'),
        ...rest,
      },
    );
  } finally {
    close();
  }
}
