import { closing } from '../../base/files/byte-source.js';
import { protectingInputs } from '../../base/files/user-files.js';
import { ignoreEvents } from '../../events.js';
import type { BuildContext, BuildOptions } from '../builder/build.js';
import { resolveBuild } from '../builder/resolve-build.js';
import { type ObtainedEngine, obtainEngine } from './obtain-engine.js';
import { openStores } from './open-stores.js';

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
  context: Partial<BuildContext> = {},
): Promise<ObtainedEngine> {
  const { model, plugins = [], trustKeys = [], signKey } = requested;
  const full = { ...context, emit: context.emit ?? ignoreEvents };
  return protectingInputs([model, ...plugins, ...trustKeys, signKey], async () => {
    return closing(await openStores(requested, context.environment), async (stores) => {
      return await obtainEngine(await resolveBuild(requested, full), stores, full);
    });
  });
}
