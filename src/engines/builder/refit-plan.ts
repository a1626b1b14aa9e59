import { TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import { conversionOptionsOf } from '../../formats/precision/options.js';
import { installRemedy, isDeclared } from '../../tensorrt/toolchain/find.js';
import { differencesOf } from '../identity/identity.js';
import {
  assertRefittable,
  buildInstead,
  refittingParser,
  type Skeleton,
  serializationFlags,
  weightsToRefit,
  withRefitRemedy,
} from '../plan/refit.js';
import type { nativeLoad } from '../runtime/tensorrt/options.js';
import { inChild } from './build-supervised.js';
import type { BuildContext, BuildOptions, BuildOutcome, PlanBuilder, ResolvedBuild } from './options.js';
import { resolveBuild, suggestFor } from './resolve-build.js';

/** The bytes that are loaded of an engine, which were checked, and how: also whether code that they carry may run. */
interface LoadedPlan {
  readonly planPath: string;
  readonly load: Parameters<typeof nativeLoad>[0];
}

/**
 * The builder that makes a plan of an engine by replacing its weights, in a child process; it needs the engine's GPU. Throws TF_ENGINE_NOT_REFITTABLE,
 * TF_REFIT_MODEL_MISMATCH (both before any work on the GPU), TF_OPTION_UNSUPPORTED, TF_REFIT_FAILED, and what loading the engine throws.
 */
export const refittingBuilder =
  (skeleton: Skeleton, loaded: LoadedPlan): PlanBuilder =>
  async (build, files, context) => {
    refittingParser(build.toolchain);
    const changed = await inPhase('compare graphs', context.emit, () =>
      weightsToRefit(skeleton, build.modelPath, files.modelPath, context),
    );
    return refit(skeleton, { ...loaded, changed }, build, files, context);
  };

/** The same of a model whose graph was compared. */
export async function refit(
  skeleton: Skeleton,
  weights: LoadedPlan & { readonly changed: readonly string[] },
  ...[build, files, context]: Parameters<PlanBuilder>
): Promise<BuildOutcome> {
  const { planPath, passport } = skeleton;
  const { identity, plan } = passport;
  const doing = `refitting ${planPath} from ${build.modelPath}`;
  const outcome = await inChild(build, files, context, doing, {
    ...weights,
    parserLibrary: refittingParser(build.toolchain),
    flags: serializationFlags(build.toolchain, build.identity.recipe),
  }).catch((error) => {
    throw withRefitRemedy(error, skeleton, build.modelPath);
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

/** The build that would make an engine like this one of another model. Throws TF_ENGINE_NOT_REFITTABLE, TF_REFIT_MODEL_MISMATCH, TF_TOOLCHAIN_NOT_FOUND, and what `resolveBuild` throws. */
export async function resolveRefit(
  skeleton: Skeleton,
  request: Refit,
  context: BuildContext,
): Promise<ResolvedBuild> {
  const build = await resolveBuild(refitBuild(skeleton, request), context).catch((error: unknown) => {
    if (!(error instanceof TrtforgeError) || error.code !== 'TF_PROFILE_INVALID') throw error;
    // Those of the engine are for other inputs.
    const { profile } = suggestFor(request.model);
    const profiles = profile === null ? [] : [profile];
    throw new TrtforgeError(
      'TF_REFIT_MODEL_MISMATCH',
      `The inputs of ${request.model} are not those that ${skeleton.planPath} was built for: ${error.message}`,
      { remedy: buildInstead(skeleton, request.model, { plugins: request.plugins, profiles }), cause: error },
    );
  });
  assertSameBuild(skeleton, build);
  if (!isDeclared(build.toolchain)) return build;
  const { product, version } = build.toolchain;
  throw new TrtforgeError(
    'TF_TOOLCHAIN_NOT_FOUND',
    `${skeleton.planPath} is refitted with the ${product} ${version} that built it, which is not installed here.`,
    {
      remedy: `${installRemedy({ product, version, purpose: 'run' })} Or run the same line on the machine that built it.`,
    },
  );
}

function refitBuild(skeleton: Skeleton, request: Refit): BuildOptions {
  assertRefittable(skeleton, request.model);
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
function assertSameBuild(skeleton: Skeleton, { modelPath, identity, pluginPaths }: ResolvedBuild): void {
  const { planPath, passport } = skeleton;
  const { document } = passport.identity;
  const differences = [...differencesOf(document, { ...identity, model: document.model })];
  if (differences.length === 0) return;
  const listed = differences.map(
    ({ field, a, b }) => `${field} is ${JSON.stringify(b)}, not ${JSON.stringify(a)}`,
  );
  throw new TrtforgeError(
    'TF_REFIT_MODEL_MISMATCH',
    `An engine of ${modelPath} would differ from ${planPath} in more than its weights: ${listed.join('; ')}.`,
    {
      remedy: differences.some(({ field }) => field === 'recipe.pluginDigests')
        ? 'Pass the plug-in libraries that the engine was built with, and no others: --plugin FILE.'
        : buildInstead(skeleton, modelPath, { plugins: pluginPaths }),
      details: { differences },
    },
  );
}
