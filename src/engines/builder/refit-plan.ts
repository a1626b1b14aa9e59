import { TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import { conversionOptionsOf } from '../../formats/precision/recipe.js';
import { differencesOf } from '../identity/identity.js';
import {
  assertRefittable,
  refittableBuild,
  refittingParser,
  type Skeleton,
  serializationFlags,
  weightsToRefit,
} from '../plan/refit.js';
import type { BuildContext, BuildOptions, BuildOutcome, PlanBuilder, ResolvedBuild } from './build.js';
import { inChild, type RefitRequest } from './build-plan.js';
import { resolveBuild } from './resolve-build.js';

/**
 * The builder that makes a plan of an engine by replacing its weights, in a child process; it needs the engine's GPU. `planPath` has the bytes that were checked. Throws TF_ENGINE_NOT_REFITTABLE,
 * TF_REFIT_MODEL_MISMATCH (both before any work on the GPU), TF_OPTION_UNSUPPORTED, TF_REFIT_FAILED, and what loading the engine throws.
 */
export const refittingBuilder =
  (skeleton: Skeleton, loaded: Pick<RefitRequest, 'planPath' | 'allowHostCode'>): PlanBuilder =>
  async (build, files, context) => {
    refittingParser(build.toolchain);
    const changed = await inPhase('compare graphs', context.emit, () =>
      weightsToRefit(skeleton, build.modelPath, files.modelPath, context),
    );
    return refit(skeleton, { ...loaded, changed }, build, files, context);
  };

/** The same of a model whose graph was compared. */
export async function refit(
  { planPath, passport: { identity, plan } }: Skeleton,
  weights: Pick<RefitRequest, 'planPath' | 'allowHostCode' | 'changed'>,
  ...[build, files, context]: Parameters<PlanBuilder>
): Promise<BuildOutcome> {
  const doing = `refitting ${planPath} from ${build.modelPath}`;
  const outcome = await inChild(build, files, context, doing, {
    ...weights,
    parserLibrary: refittingParser(build.toolchain),
    flags: serializationFlags(build.toolchain, build.identity.recipe),
  });
  return {
    ...outcome,
    layers: plan.layers,
    inputs: plan.inputs,
    outputs: plan.outputs,
    refitted: { identity: identity.digest, sha256: plan.sha256 },
  };
}

type Refit = Pick<BuildOptions, 'model' | 'output' | 'device' | 'plugins' | 'toolchain'>;

/** The build that would make an engine like this one of another model. Throws TF_ENGINE_NOT_REFITTABLE, TF_REFIT_MODEL_MISMATCH, and what `resolveBuild` throws. */
export async function resolveRefit(
  skeleton: Skeleton,
  request: Refit,
  context: BuildContext,
): Promise<ResolvedBuild> {
  const build = await resolveBuild(refitBuild(skeleton, request), context).catch((error: unknown) => {
    if (!(error instanceof TrtforgeError) || error.code !== 'TF_PROFILE_INVALID') throw error;
    throw new TrtforgeError(
      'TF_REFIT_MODEL_MISMATCH',
      `The inputs of ${request.model} are not those that ${skeleton.planPath} was built for: ${error.message}`,
      { remedy: `Build an engine of it: ${refittableBuild(request.model)}`, cause: error },
    );
  });
  assertSameBuild(skeleton, build);
  return build;
}

function refitBuild(skeleton: Skeleton, request: Refit): BuildOptions {
  assertRefittable(skeleton);
  const { recipe, target } = skeleton.passport.identity.document;
  const { precision, conversion, stronglyTyped, profiles, pluginDigests: _, ...settings } = recipe;
  const { version, cudaMajor, ...others } = target;
  return {
    ...request,
    target: { ...others, named: { version, cudaMajor } },
    timingCache: null,
    precision: formatNamed(precision)?.id ?? 'as-is',
    weaklyTyped: !stronglyTyped,
    conversion: conversion === null ? undefined : conversionOptionsOf(conversion),
    profiles: profiles.map((profile) => new Map(Object.entries(profile))),
    settings,
  };
}

/** Checks that the engine of a build differs from another in its model alone. Throws TF_REFIT_MODEL_MISMATCH, which names what else differs. */
function assertSameBuild({ planPath, passport }: Skeleton, { modelPath, identity }: ResolvedBuild): void {
  const { document } = passport.identity;
  const differences = [...differencesOf(document, { ...identity, model: document.model })];
  if (differences.length === 0) return;
  const listed = differences.map(
    ({ field, a, b }) => `${field} is ${JSON.stringify(b)}, not ${JSON.stringify(a)}`,
  );
  throw new TrtforgeError(
    'TF_REFIT_MODEL_MISMATCH',
    `An engine of ${modelPath} would differ from ${planPath} in more than its weights: ${listed.join('; ')}.`,
    { remedy: `Build an engine of it: ${refittableBuild(modelPath)}`, details: { differences } },
  );
}
