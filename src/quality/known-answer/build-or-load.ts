import { closing } from '../../base/files/byte-source.js';
import { protectingInputs } from '../../base/files/user-files.js';
import type { ObtainedEngine } from '../../engines/builder/build-result.js';
import { obtainEngine } from '../../engines/builder/obtain-engine.js';
import type { BuildOptions, BuildSeams } from '../../engines/builder/options.js';
import { resolveBuild } from '../../engines/builder/resolve-build.js';
import { openStores } from '../../engines/store/open-stores.js';
import { answerMaker } from './at-build.js';
/**
 * An engine for a model: from the stores when the same was built before, else built, checked and kept, with a known answer in its passport. While this process lives,
 * eviction leaves the engine in the store alone.
 *
 * ```ts
 * const { engine, source, passport } = await buildOrLoad({ model: 'resnet50.onnx', precision: 'fp16', target: 'tensorrt-rtx:sm_89' });
 * ```
 * Errors: those of `openStores`, `resolveBuild` and `obtainEngine`.
 */
export async function buildOrLoad(
  requested: BuildOptions,
  context: BuildSeams = {},
): Promise<ObtainedEngine> {
  const { model, plugins = [], trustKeys = [], signKey, knownAnswer } = requested;
  const full = { answer: answerMaker(knownAnswer), ...context };
  return protectingInputs([model, ...plugins, ...trustKeys, signKey], async () => {
    return closing(await openStores(requested, context.environment), async (stores) => {
      return await obtainEngine(await resolveBuild(requested, full), stores, full);
    });
  });
}
