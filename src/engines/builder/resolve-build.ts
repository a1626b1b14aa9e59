import { basename, join, resolve } from 'node:path';
import { checkDevice, chosenGpu, visibleGpus } from '../../addon/gpus.js';
import { sha256OfFile } from '../../base/files/digest.js';
import { cacheFolder } from '../../base/files/folders.js';
import { faultText, schemaFault } from '../../base/text/schema-error.js';
import { didYouMean } from '../../base/text/suggest-name.js';
import { holds } from '../../behaviour/facts.js';
import { TrtforgeError } from '../../errors.js';
import { ignoreEvents, type WorkContext, workOf } from '../../events.js';
import { rejectWrappedEngine, viewModel } from '../../formats/onnx/model.js';
import { interfaceOf } from '../../formats/onnx/values.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import { usesOf } from '../../formats/precision/normalise.js';
import { conversionRecipe } from '../../formats/precision/options.js';
import {
  chooseToolchain,
  declaredToolchain,
  type FoundToolchain,
  isDeclared,
  surveyToolchains,
  thisMachine,
  toolchainNamed,
  unableToBuild,
} from '../../tensorrt/toolchain/find.js';
import { releaseOf } from '../../tensorrt/toolchain/releases.js';
import { readModelContent } from '../identity/model-content.js';
import type { ModelContent } from '../identity/model-digest.js';
import { defaultRecipe, type Recipe, recipeSchema } from '../identity/recipe.js';
import {
  isPlatform,
  machineFacts,
  parseTarget,
  platformFor,
  platformText,
  resolveTarget,
  type Target,
  type TargetRequest,
  targetText,
  thisPlatform,
} from '../identity/target.js';
import { platformOfEngine } from '../plan/loads.js';
import { assertMakesRefittable } from '../plan/refit.js';
import { type ProfileRequest, parseProfile, resolveProfiles, type Suggestion } from '../profiles/profile.js';
import { type ProfileSizes, requestedSizes, sizedProfile } from '../profiles/sizes.js';
import { suggestion } from '../profiles/suggest.js';
import { assertBuildable } from './buildable.js';
import type { BuildOptions, ResolvedBuild } from './options.js';
import { timingScope, unusedTimingCache, unusedTimingCacheText } from './shared-timing-caches.js';

/**
 * Decides everything about a build: reads the model's inputs and digest, chooses toolchain and target, checks the profiles against the inputs.
 * Builds nothing. Errors: those of `openModel`, TF_TOOLCHAIN_NOT_FOUND, TF_TARGET_UNSUPPORTED, TF_TARGET_UNAVAILABLE, TF_GPU_UNAVAILABLE (TensorRT, and
 * the GPU that was chosen is not there), TF_PROFILE_…, TF_USAGE.
 */
export async function resolveBuild(requested: BuildOptions, work: WorkContext = {}): Promise<ResolvedBuild> {
  const { model, device } = requested;
  const { emit = ignoreEvents, environment } = workOf(work);
  const folder = cacheFolder(environment);
  const { request, toolchain } = await chooseBuildableTarget(requested, environment);
  viewModel(model, ({ proto }) => rejectWrappedEngine(model, proto));
  const content = await readModelContent(model, work);
  const recipe = resolveRecipe(requested, content, toolchain);
  const warn = (message: string) => emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
  for (const { name, shape } of content.inputs)
    if (shape === null) warn(`The input "${name}" has no declared shape: TensorRT takes it for a scalar.`);
  const isHere = request.product === 'tensorrt' && !isDeclared(toolchain);
  const machine = isHere ? machineFacts(device) : null;
  const target = resolveTarget(request, toolchain, {
    platform: thisPlatform,
    gpuComputeCapability: machine?.gpuComputeCapability ?? null,
  });
  if (!isDeclared(toolchain)) assertPlatform(target);
  const format = formatNamed(recipe.precision);
  const { timingCache = 'auto', extension = 'engine', builder = 'native' } = requested;
  const { computeCapabilities } = target;
  const platform = platformOfEngine({ recipe, target });
  assertBuildable({ toolchain, computeCapabilities, platform, recipe, builder, model: content }, emit);
  const unused = unusedTimingCache(target, timingCache);
  if (unused !== null) warn(unusedTimingCacheText(unused));
  return {
    modelPath: model,
    content,
    model: {
      name: requested.modelName ?? basename(model).replace(/\.onnx$/i, ''),
      version: requested.modelVersion ?? null,
      bytes: content.bytes,
    },
    identity: { schema: 'trtforge.identity/1', model: content.digest, recipe, target },
    toolchain,
    conversion:
      format === undefined || recipe.conversion === null
        ? null
        : { ...requested.conversion, precision: format.id },
    // The loader looks for a name without a slash in its own folders.
    pluginPaths: (requested.plugins ?? []).map((plugin) => resolve(plugin)),
    extension,
    device,
    timingCache: timingCache === 'auto' || unused !== null ? null : timingCache,
    timingScope: timingCache === 'auto' && machine !== null ? timingScope(target, machine) : null,
    builder,
    verbose: requested.verbose ?? false,
    logFolder: requested.logFolder ?? join(folder, 'build_logs'),
    forceRebuild: requested.forceRebuild ?? false,
    output: requested.output ?? null,
  };
}

/**
 * The target and the toolchain of a build, with the checks that need nothing of the model. Throws what `chooseTarget`,
 * `assertBuildable` and `assertMakesRefittable` throw, and TF_GPU_UNAVAILABLE.
 */
async function chooseBuildableTarget(
  requested: BuildOptions,
  environment: NodeJS.ProcessEnv,
): Promise<ChosenTarget> {
  const { device } = requested;
  checkDevice(device);
  const asked = typeof requested.target === 'string' ? parseTarget(requested.target) : requested.target;
  // A target that no TensorRT-RTX supports is not worth installing one.
  if (asked?.product === 'tensorrt-rtx' && asked.named === undefined)
    assertBuildable(
      { toolchain: releaseOf(undefined), computeCapabilities: asked.computeCapabilities ?? [] },
      ignoreEvents,
    );
  const chosen = await chooseTarget({ ...requested, target: asked }, environment);
  const { request, toolchain } = chosen;
  assertBuildable(
    { toolchain, computeCapabilities: request.computeCapabilities ?? [], platform: platformFor(request) },
    ignoreEvents,
  );
  if (request.product === 'tensorrt' && device !== undefined)
    chosenGpu(visibleGpus(), device, 'Building with TensorRT needs an NVIDIA GPU');
  if (requested.refit === true) assertMakesRefittable(typingOf(requested, toolchain), toolchain);
  return chosen;
}

interface ChosenTarget {
  readonly request: TargetRequest;
  readonly toolchain: FoundToolchain;
}

/** The product and GPUs of a build, and the toolchain. Throws TF_TOOLCHAIN_NOT_FOUND, TF_TARGET_UNSUPPORTED, TF_USAGE. */
export async function chooseTarget(
  { target, toolchain, device }: Pick<BuildOptions, 'target' | 'toolchain' | 'device'>,
  environment: NodeJS.ProcessEnv,
): Promise<ChosenTarget> {
  const asked = typeof target === 'string' ? parseTarget(target) : target;
  if (typeof toolchain === 'object') return { request: asked ?? anyOf(toolchain.product), toolchain };
  const machine = thisMachine(environment);
  const { toolchains: found, damaged } = await surveyToolchains(machine);
  const named = toolchain === undefined ? undefined : toolchainNamed(found, toolchain, machine);
  const request = asked ?? anyOf(named?.product ?? usualProduct(found, device));
  const { named: wanted } = request;
  if (wanted !== undefined && named === undefined) {
    const here = found.find(
      (each) =>
        isPlatform(platformFor(request), thisPlatform) &&
        each.product === request.product &&
        each.version === wanted.version &&
        (each.product === 'tensorrt-rtx' || (each.cudaMajor ?? wanted.cudaMajor) === wanted.cudaMajor) &&
        unableToBuild(each) === null,
    );
    return { request, toolchain: here ?? declaredToolchain(request.product, wanted) };
  }
  const { product, computeCapabilities } = request;
  const needed = { product, computeCapability: computeCapabilities?.[0] };
  return { request, toolchain: named ?? chooseToolchain(found, needed, damaged) };
}

/** The library here builds for its own platform. Throws TF_TARGET_UNAVAILABLE for another, whose TensorRT only the target can name. */
function assertPlatform(target: Target): void {
  if (isPlatform(target, thisPlatform)) return;
  const { product, version } = target;
  const named = targetText({ ...target, named: target });
  throw new TrtforgeError(
    'TF_TARGET_UNAVAILABLE',
    `The target is of ${platformText(target)}, and ${product} ${version} here is for ${platformText(thisPlatform)}.`,
    {
      remedy: `Build on such a machine. To search stores for its engine, name the version there: --target ${named}`,
    },
  );
}

const anyOf = (product: TargetRequest['product']): TargetRequest => ({ product, computeCapabilities: null });

/** TensorRT serves only a GPU that is here; without one, what can be built is an engine of tensorrt-rtx. Who chooses the second GPU counts on having two. */
function usualProduct(
  found: readonly FoundToolchain[],
  device: number | undefined = 0,
): TargetRequest['product'] {
  const hasTensorrt = found.some(({ product, flavour }) => product === 'tensorrt' && flavour === 'full');
  return hasTensorrt && (device > 0 || visibleGpus().gpus.length > 0) ? 'tensorrt' : 'tensorrt-rtx';
}

/** Without strongly typed networks the precision is a permission to the builder, and the graph stays as it is. */
const typingOf = ({ precision = 'as-is', weaklyTyped }: BuildOptions, toolchain: FoundToolchain) => ({
  precision,
  stronglyTyped: weaklyTyped !== true && holds('strong-typing', toolchain),
});

function resolveRecipe(requested: BuildOptions, content: ModelContent, toolchain: FoundToolchain): Recipe {
  const { precision, stronglyTyped } = typingOf(requested, toolchain);
  const sizes = requestedSizes(requested);
  const settings = checkedRecipe({ ...defaultRecipe, ...requested.settings, precision });
  return {
    ...settings,
    conversion:
      precision === 'as-is' || !stronglyTyped ? null : conversionRecipe(precision, requested.conversion),
    stronglyTyped,
    profiles: [
      ...resolveProfiles(content.inputs, requestedProfiles(requested, content, sizes), () =>
        suggestFor(requested.model, sizes),
      ),
    ],
    flags: [...new Set([...settings.flags, ...(requested.refit === true ? ['refit'] : [])])].sort(),
    tacticSources: settings.tacticSources === null ? null : [...new Set(settings.tacticSources)].sort(),
    previewFeatures: [...new Set(settings.previewFeatures)].sort(),
    pluginDigests: (requested.plugins ?? []).map(sha256OfFile).sort(),
  };
}

function requestedProfiles({ profiles = [] }: BuildOptions, { inputs }: ModelContent, sizes?: ProfileSizes) {
  if (sizes === undefined) return profiles.map(asProfile);
  if (profiles.length === 0) return [sizedProfile(inputs, sizes)].filter(({ size }) => size > 0);
  throw new TrtforgeError('TF_USAGE', 'Profiles and a batch or dimensions are passed together.', {
    remedy: 'Pass one of them.',
  });
}

/** Ranges that would do for a model. What the graph does with its inputs shows more of their sizes than their declarations. */
export function suggestFor(path: string, sizes?: ProfileSizes): Suggestion {
  return viewModel(path, (model) => suggestion(interfaceOf(model.proto).inputs, usesOf(model), sizes));
}

/** Types hold TypeScript's callers to the recipe; JavaScript's can misspell a setting, which would change the identity and nothing else. */
function checkedRecipe(recipe: Recipe): Recipe {
  const checked = recipeSchema.safeParse(recipe);
  if (checked.success) return checked.data;
  const { unknownKey } = schemaFault(checked.error);
  const hint = unknownKey === null ? '' : didYouMean(unknownKey, Object.keys(recipeSchema.shape));
  throw new TrtforgeError('TF_USAGE', `Settings of a build: ${faultText(checked.error)}.${hint}`);
}

const asProfile = (profile: string | ProfileRequest): ProfileRequest =>
  typeof profile === 'string' ? parseProfile(profile) : profile;
