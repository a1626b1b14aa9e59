import { basename } from 'node:path';
import { openFile } from '../../base/files/byte-source.js';
import { sha256OfRange } from '../../base/files/digest.js';
import { cacheFolder } from '../../base/files/folders.js';
import { didYouMean } from '../../base/text/nearest-word.js';
import { faultText, schemaFault } from '../../base/text/schema-error.js';
import { TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import { openModel } from '../../formats/onnx/model.js';
import { ValueUses } from '../../formats/onnx/value-uses.js';
import { type FormatId, formatNamed } from '../../formats/precision/formats/index.js';
import { inlineFunctions } from '../../formats/precision/inline-functions.js';
import type { ConversionOptions } from '../../formats/precision/options.js';
import { checkDevice, chosenGpu, visibleGpus } from '../../tensorrt/addon/chosen-gpu.js';
import {
  chooseToolchain,
  type FoundToolchain,
  surveyToolchains,
  thisMachine,
  toolchainNamed,
} from '../../tensorrt/toolchain/find.js';
import { majorOf } from '../../tensorrt/toolchain/version.js';
import { conversionRecipe } from '../identity/conversion.js';
import type { EngineExtension } from '../identity/engine-name.js';
import { machineFacts } from '../identity/machine.js';
import { readModelContent } from '../identity/model-content.js';
import {
  type BatchRange,
  batchProfile,
  type ProfileRequest,
  parseProfile,
  resolveProfiles,
  suggestProfile,
} from '../identity/profile.js';
import type { ModelContent } from '../identity/read-model.js';
import { defaultRecipe, type Recipe } from '../identity/recipe.js';
import { recipeSchema } from '../identity/recipe-schema.js';
import { parseTarget, resolveTarget, type Target, type TargetRequest } from '../identity/target.js';
import type { EngineRequest } from './build-engine.js';

/** What a user wants built; all but the model has a default. */
export interface RecipeOptions {
  /** Path of an ONNX model. */
  readonly model: string;
  /** `tensorrt-rtx:sm_89,sm_120` or the like; default: TensorRT where this machine has it and a GPU, else tensorrt-rtx. */
  readonly target?: string | TargetRequest;
  /** A toolchain, its name or its folder; default: the first found for the target. */
  readonly toolchain?: FoundToolchain | string;
  /** `as-is` builds the graph's own types; a format converts it first. */
  readonly precision?: 'as-is' | FormatId;
  /** How the conversion goes about it. */
  readonly conversion?: ConversionOptions;
  /** TensorRT 10: let the builder choose precisions (with `precision` as permission) instead of converting the graph. */
  readonly weaklyTyped?: boolean;
  /** One for each optimization profile, as text (`x:1x3x224x224/8x3x224x224/32x3x224x224`) or as data. */
  readonly profiles?: readonly (string | ProfileRequest)[];
  /** Sizes of the open first axis of every input, instead of `profiles`. */
  readonly batch?: BatchRange;
  /** Everything else of the recipe that differs from the library's defaults. */
  readonly settings?: Partial<
    Omit<Recipe, 'precision' | 'conversion' | 'stronglyTyped' | 'profiles' | 'pluginDigests'>
  >;
  /** Paths of plug-in libraries. */
  readonly plugins?: readonly string[];
  /** For the readable name; default: the file's name and the digest's first digits. */
  readonly modelName?: string;
  readonly modelVersion?: string;
  readonly extension?: EngineExtension;
  /**
   * Which of the visible GPUs TensorRT builds on, which decides the target's compute capability; default: the first. What runs the engine afterwards
   * runs there too. tensorrt-rtx builds without a GPU.
   */
  readonly device?: number;
  /** A file, `auto` (default) for the one trtforge keeps per target, null for none. */
  readonly timingCache?: string | null;
  /** The converted model, where the caller has it already. */
  readonly converted?: EngineRequest['converted'];
}

export interface PrepareContext {
  readonly emit: EventListener;
  readonly signal?: AbortSignal;
  readonly environment?: NodeJS.ProcessEnv;
}

/** A request with everything decided, and what is known of its model. */
export interface ResolvedBuild extends EngineRequest {
  readonly toolchain: FoundToolchain;
  readonly content: ModelContent;
}

/**
 * Decides everything about a build: reads the model's inputs and digest, chooses toolchain and target, holds the profiles against the inputs.
 * Builds nothing. Errors: those of `openModel`, TF_TOOLCHAIN_NOT_FOUND, TF_TARGET_UNSUPPORTED, TF_TARGET_UNAVAILABLE, TF_GPU_UNAVAILABLE (TensorRT, and
 * the GPU that was chosen is not there), TF_PROFILE_…, TF_USAGE.
 */
export async function resolveBuild(
  requested: RecipeOptions,
  context: PrepareContext,
): Promise<ResolvedBuild> {
  const { environment = process.env } = context;
  const folder = cacheFolder(environment);
  checkDevice(requested.device);
  const { request, toolchain } = await chooseTarget(requested, environment);
  if (request.product === 'tensorrt' && requested.device !== undefined)
    chosenGpu(visibleGpus(), requested.device, 'Building with TensorRT needs an NVIDIA GPU');
  const content = await readModelContent(requested.model, { ...context, cacheFolder: folder });
  const recipe = resolveRecipe(requested, content, toolchain);
  for (const { name } of content.inputs.filter(({ shape }) => shape === null))
    context.emit({
      type: 'log',
      source: 'trtforge',
      severity: 'warning',
      message: `The input «${name}» has no declared shape: TensorRT takes it for a scalar.`,
    });
  const target = resolveTarget(request, toolchain, {
    platform: process.platform,
    arch: process.arch,
    gpuComputeCapability:
      request.product === 'tensorrt' ? machineFacts(requested.device).gpuComputeCapability : null,
  });
  assertFormatBuilds(recipe, target);
  return {
    modelPath: requested.model,
    model: {
      name: requested.modelName ?? basename(requested.model).replace(/\.onnx$/i, ''),
      version: requested.modelVersion ?? null,
      bytes: content.bytes,
    },
    identity: { schema: 'trtforge.identity/1', model: content.digest, recipe, target },
    toolchain,
    pluginPaths: requested.plugins ?? [],
    extension: requested.extension ?? 'engine',
    calibration: requested.conversion?.calibration,
    device: requested.device,
    converted: requested.converted,
    timingCache: requested.timingCache === undefined ? 'auto' : requested.timingCache,
    cacheFolder: folder,
    content,
  };
}

/** Throws TF_TARGET_UNSUPPORTED where a typed graph would hold a type that the target's GPUs do not have. */
function assertFormatBuilds({ precision, conversion }: Recipe, { computeCapabilities }: Target): void {
  const format = formatNamed(precision);
  const lowest = format?.computeCapability ?? 0;
  const lacking = computeCapabilities.find((capability) => capability < lowest);
  if (format === undefined || conversion === null || lacking === undefined) return;
  throw new TrtforgeError('TF_TARGET_UNSUPPORTED', `sm_${lacking} has no ${format.label}.`, {
    remedy: `Choose targets from sm_${lowest} on, or another --precision.`,
  });
}

async function chooseTarget(
  { target, toolchain, device }: RecipeOptions,
  environment: NodeJS.ProcessEnv,
): Promise<{ readonly request: TargetRequest; readonly toolchain: FoundToolchain }> {
  const asked = typeof target === 'string' ? parseTarget(target) : target;
  if (typeof toolchain === 'object') return { request: asked ?? anyOf(toolchain.product), toolchain };
  const machine = thisMachine(environment);
  const { toolchains: found, damaged } = await surveyToolchains(machine);
  const named = toolchain === undefined ? undefined : toolchainNamed(found, toolchain, machine);
  const request = asked ?? anyOf(named?.product ?? usualProduct(found, device));
  return { request, toolchain: named ?? chooseToolchain(found, { product: request.product }, damaged) };
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

function resolveRecipe(requested: RecipeOptions, content: ModelContent, toolchain: FoundToolchain): Recipe {
  const precision = requested.precision ?? 'as-is';
  const settings = checkedRecipe({ ...defaultRecipe, ...requested.settings, precision });
  // TensorRT 8.6 has no strongly typed networks: there the precision is a permission to the builder, and the graph stays as it is.
  const stronglyTyped =
    requested.weaklyTyped !== true && !(toolchain.product === 'tensorrt' && majorOf(toolchain.version) <= 8);
  return {
    ...settings,
    conversion:
      precision === 'as-is' || !stronglyTyped ? null : conversionRecipe(precision, requested.conversion),
    stronglyTyped,
    profiles: [
      ...resolveProfiles(content.inputs, requestedProfiles(requested, content), () =>
        suggestFor(requested.model, content),
      ),
    ],
    flags: [...new Set(settings.flags)].sort(),
    tacticSources: settings.tacticSources === null ? null : [...new Set(settings.tacticSources)].sort(),
    previewFeatures: [...new Set(settings.previewFeatures)].sort(),
    pluginDigests: (requested.plugins ?? []).map(digestFile).sort(),
  };
}

function requestedProfiles({ batch, profiles = [] }: RecipeOptions, { inputs }: ModelContent) {
  if (batch === undefined) return profiles.map(asProfile);
  if (profiles.length === 0) return [batchProfile(inputs, batch)];
  throw new TrtforgeError('TF_USAGE', 'Profiles and a batch are passed together.', {
    remedy: 'Pass one of them.',
  });
}

/** What the graph does with its inputs says more of their sizes than their declarations. */
function suggestFor(path: string, { inputs }: ModelContent): string | null {
  const model = openModel(path);
  try {
    inlineFunctions(model.proto);
    return suggestProfile(inputs, new ValueUses(model));
  } finally {
    model.close();
  }
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

function digestFile(path: string): string {
  const source = openFile(path);
  try {
    return sha256OfRange(source);
  } finally {
    source.close();
  }
}
