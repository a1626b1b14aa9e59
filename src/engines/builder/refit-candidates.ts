import { join } from 'node:path';
import { onDevice, visibleGpus } from '../../addon/gpus.js';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeScratch } from '../../base/files/folders.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase, type WorkContext } from '../../events.js';
import { differencesOf, type IdentityDocument } from '../identity/identity.js';
import { changedWeights, readModelGraph } from '../identity/model-graph.js';
import type { ModelGraph } from '../identity/passport.js';
import { targetText, whyNotRun } from '../identity/target.js';
import { carriesHostCode } from '../plan/loads.js';
import { refittingParser, type Skeleton, takesWeights, withoutPlaceholders } from '../plan/refit.js';
import type { LocalStore } from '../store/local.js';
import type { EngineStores } from '../store/open-stores.js';
import type { CacheWhy } from '../store/result.js';
import type { PlanBuilder, ResolvedBuild } from './options.js';
import { refit } from './refit-plan.js';

/** Passports read to find engines that could be refitted; a store may have thousands. */
const MOST_READ = 64;

/**
 * Engines of the local stores that differ from the one of a build in their model alone and take other weights here, those that were built before those that were refitted,
 * each newest first. None where this machine does not run the engine, where engines carry code (a store's does not run), or where this machine signs what it builds: others may
 * change what is in a store.
 */
export async function skeletonsFor(
  { store, layers, trust }: Pick<EngineStores, 'store' | 'layers' | 'trust'>,
  { identity, device, toolchain }: ResolvedBuild,
): Promise<readonly Skeleton[]> {
  const { recipe } = identity;
  const isSigned = trust.required || trust.signingKey !== null;
  if (isSigned || carriesHostCode(recipe) || !takesWeights(recipe)) return [];
  const gpus = onDevice(visibleGpus(), device ?? 0);
  if (whyNotRun(gpus, identity) !== null || !canRefit(toolchain)) return [];
  const places = store === null ? layers : [store, ...layers];
  const found = (await Promise.all(places.map((place) => skeletonsIn(place, identity)))).flat();
  return found.sort(
    (a, b) =>
      Number(a.passport.built.refitted !== undefined) - Number(b.passport.built.refitted !== undefined),
  );
}

function canRefit(toolchain: ResolvedBuild['toolchain']): boolean {
  try {
    refittingParser(toolchain);
    return true;
  } catch (error) {
    if (error instanceof TrtforgeError) return false;
    throw error;
  }
}

async function skeletonsIn(store: LocalStore, wanted: IdentityDocument): Promise<readonly Skeleton[]> {
  const { recipe, target, model } = wanted;
  const alike = (await store.list()).filter(
    (engine) =>
      engine.problem === null &&
      engine.model !== model &&
      engine.target === targetText(target) &&
      engine.precision === recipe.precision,
  );
  const newest = alike.sort((a, b) => ((a.builtAt ?? '') < (b.builtAt ?? '') ? 1 : -1)).slice(0, MOST_READ);
  const passports = await Promise.all(newest.map(({ identity }) => store.passport(identity)));
  const skeletons: Skeleton[] = [];
  for (const passport of passports) {
    if (passport?.plan.graph === undefined) continue;
    const { digest, document } = passport.identity;
    if ([...differencesOf({ ...document, model }, wanted)].length > 0) continue;
    const answer = await store.get(digest);
    if (answer.found) skeletons.push(answer.engine);
  }
  return skeletons;
}

/** The engine that a build would refit. A graph that is converted first is not compared: the build does that. */
export async function expectedRefit(
  stores: Pick<EngineStores, 'store' | 'layers' | 'trust'>,
  build: ResolvedBuild,
  work: WorkContext,
): Promise<CacheWhy['refits']> {
  const found = await skeletonsFor(stores, build);
  if (found.length === 0) return null;
  const isCompared = build.conversion === null;
  const folder = makeScratch('refit');
  try {
    const read = async () =>
      readModelGraph(await withoutPlaceholders(build.modelPath, join(folder, 'parsed.onnx'), work), work);
    const skeleton = isCompared ? ofGraph(found, await read()) : found[0];
    if (skeleton === undefined) return null;
    return { engine: skeleton.planPath, identity: skeleton.passport.identity.digest, isCompared };
  } finally {
    removeIfAllowed(folder);
  }
}

const ofGraph = (skeletons: readonly Skeleton[], { digest }: ModelGraph): Skeleton | undefined =>
  skeletons.find(({ passport }) => passport.plan.graph?.digest === digest);

/** The builder that refits the first of some engines that has the graph of the model; without one, and where that fails (a warning), the other builder. */
export const refitOrBuild =
  (skeletons: readonly Skeleton[], otherwise: PlanBuilder): PlanBuilder =>
  async (build, files, context) => {
    const graph = await readModelGraph(files.modelPath, context);
    const skeleton = ofGraph(skeletons, graph);
    const recorded = skeleton?.passport.plan.graph;
    if (skeleton === undefined || recorded === undefined) return otherwise(build, files, context);
    const changed = changedWeights(recorded, graph);
    try {
      const weights = { planPath: skeleton.planPath, load: {}, changed };
      return await inPhase('refit', context.emit, () => refit(skeleton, weights, build, files, context));
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      const message = `${skeleton.planPath} could not be refitted, and the engine is built: ${error.message}`;
      context.emit?.({ type: 'log', source: 'trtforge', severity: 'warning', message });
      const built = await otherwise(build, files, context);
      return { ...built, warnings: [message, ...built.warnings] };
    }
  };
