import { protectingInputs } from '../../base/files/user-files.js';
import { unusedTimingCache } from '../../engines/builder/shared-timing-caches.js';
import type { EnginePlan } from '../../forge/forge.js';
import { BundleRun } from './bundle-run.js';
import { timingCacheFor } from './component-run.js';
import { errorOf } from './forge-bundle.js';
import type { BundleContext, BundleRequest } from './options.js';

/** The plan of a run over a bundle. */
export interface BundlePlan {
  readonly request: BundleRequest;
  /** In the order of the builds. */
  readonly components: readonly {
    readonly name: string;
    readonly onnx: string;
    readonly engine: EnginePlan;
    /** The smoke run, and why it would be skipped, or null. */
    readonly smoke: { readonly runs: string; readonly skipped: string | null };
  }[];
  readonly timingCache: string | null;
  /** One that was named and has no effect. */
  readonly unusedTimingCache: string | null;
  /** Why the chain would not be decoded, or null; undefined where that is not requested. */
  readonly notDecoded: string | null | undefined;
  /** Unchecked parts and irregularities of the bundle. */
  readonly warnings: readonly string[];
}

/** Decides everything about a run over a bundle; writes nothing. Throws what stops the run before its first build. */
export async function planBundle(request: BundleRequest, context: BundleContext): Promise<BundlePlan> {
  const run = new BundleRun(request, context);
  await protectingInputs([request.meta, request.profilesFile], () => run.decide());
  if (run.stop !== undefined) throw errorOf(run.stop.error);
  const chain = run.chain();
  const [first] = run.components;
  return {
    request,
    components: await Promise.all(
      run.components.map(async (component) => ({
        name: component.name,
        onnx: component.part.component.onnx,
        engine: await component.plan(),
        smoke: component.smokePlan,
      })),
    ),
    timingCache: first === undefined ? null : timingCacheFor(first.prepared, request),
    unusedTimingCache:
      first === undefined ? null : unusedTimingCache(first.prepared.identity.target, request.timingCache),
    warnings: run.findings?.warnings ?? [],
    notDecoded: chain && (chain.run === undefined ? chain.notChecked.join(' ') : null),
  };
}
