import { protectingInputs } from '../../base/files/user-files.js';
import { type EventListener, ignoreEvents } from '../../events.js';
import type { PlanBuilder } from '../builder/build-engine.js';
import { type BuilderName, planBuilder } from '../builder/plan-builders.js';
import { type RecipeOptions, resolveBuild } from '../builder/prepare.js';
import { type ObtainedEngine, obtainEngine } from './obtain-engine.js';
import { openStores, type StoreOptions } from './open-stores.js';

export interface BuildOptions extends RecipeOptions, StoreOptions {
  /** Who builds what the stores do not have (default: native). */
  readonly builder?: BuilderName;
  /** Whether a build tells the library's verbose lines too: tens of thousands on a large model. */
  readonly verbose?: boolean;
  /** Build even though the store has the engine. */
  readonly forceRebuild?: boolean;
  /** Where to put the engine; default: it stays in the store. */
  readonly output?: string;
}

export interface BuildOrLoadContext {
  readonly emit?: EventListener;
  readonly signal?: AbortSignal;
  readonly environment?: NodeJS.ProcessEnv;
  /** Who builds plans; default: the builder of `requested`. */
  readonly build?: PlanBuilder;
}

/**
 * An engine for a model: from the stores when the same was built before, else built, checked and kept. While this process lives, eviction
 * leaves the engine in the store alone.
 *
 * ```ts
 * const { engine, source, passport } = await buildOrLoad({ model: 'resnet50.onnx', precision: 'fp16', target: 'tensorrt-rtx:sm_89' });
 * ```
 * Errors: those of `openStores`, `resolveBuild` and `obtainEngine`.
 */
export async function buildOrLoad(
  requested: BuildOptions,
  context: BuildOrLoadContext = {},
): Promise<ObtainedEngine> {
  const { model, plugins = [], trustKeys = [], signKey } = requested;
  return protectingInputs([model, ...plugins, ...trustKeys, signKey], () => obtain(requested, context));
}

async function obtain(requested: BuildOptions, context: BuildOrLoadContext): Promise<ObtainedEngine> {
  const { environment = process.env, emit = ignoreEvents, ...rest } = context;
  const { close, ...stores } = await openStores(requested, environment);
  try {
    const prepared = await resolveBuild(requested, { emit, environment, signal: rest.signal });
    return await obtainEngine(
      {
        ...prepared,
        ...stores,
        forceRebuild: requested.forceRebuild ?? false,
        output: requested.output ?? null,
      },
      {
        emit,
        env: environment,
        verbose: requested.verbose ?? false,
        build: planBuilder(requested.builder ?? 'native'),
        ...rest,
      },
    );
  } finally {
    close();
  }
}
