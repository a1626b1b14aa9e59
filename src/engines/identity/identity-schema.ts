import { z } from 'zod';
import { formatIds } from '../../formats/precision/formats/index.js';
import { conversionRecipeSchema } from '../../formats/precision/recipe.js';

const dims = z.array(z.int().nonnegative());

/** min, opt and max of one input in one optimization profile: dimensions, or for a shape tensor its values. */
export const profileRangeSchema = z.object({
  min: dims,
  opt: dims,
  max: dims,
  /** True when the numbers are the values of a shape tensor, not the dimensions of an execution tensor. */
  values: z.boolean().default(false),
});

const bytesOrDefault = z.int().positive().nullable();

/**
 * All that decides a plan besides the model and the target, with every default resolved. `null` means "the library's own default":
 * it is then the library version in the target that decides. Part of the identity as it stands, so it contains no path and no time.
 */
export const recipeSchema = z.strictObject({
  /** The requested precision. `as-is` builds the graph's own types; the graph is converted to a format before the build. */
  precision: z.enum(['as-is', 'fp32', ...formatIds]),
  /** The model's conversion before the build; null when it is built as it is. */
  conversion: conversionRecipeSchema(z).nullable(),
  /** True: the graph's types decide (always so on TensorRT 11 and tensorrt-rtx). False: weakly typed, 8.6 and 10.x only. */
  stronglyTyped: z.boolean(),
  /** One record per optimization profile: input name to range. Empty for a model whose inputs are all static. */
  profiles: z.array(z.record(z.string(), profileRangeSchema)),
  /** Limits in bytes. */
  memoryPools: z.strictObject({
    workspace: bytesOrDefault,
    tacticSharedMemory: bytesOrDefault,
    dlaManagedSram: bytesOrDefault,
    dlaLocalDram: bytesOrDefault,
    dlaGlobalDram: bytesOrDefault,
  }),
  /** 0 (fastest build) to 5 (fastest engine). */
  optimizationLevel: z.int().min(0).max(5).nullable(),
  maxAuxStreams: z.int().nonnegative().nullable(),
  /** Runs over which a tactic's time is averaged; null leaves it to the library. */
  avgTimingIterations: z.int().positive().nullable(),
  tilingOptimizationLevel: z.enum(['none', 'fast', 'moderate', 'full']).nullable(),
  maxTactics: z.int().positive().nullable(),
  l2LimitForTiling: bytesOrDefault,
  profilingVerbosity: z.enum(['layer-names-only', 'none', 'detailed']),
  hardwareCompatibility: z.enum(['none', 'ampere-plus', 'same-compute-capability']),
  runtimePlatform: z.enum(['same-as-build', 'windows-amd64']),
  engineCapability: z.enum(['standard', 'safety', 'dla-standalone']),
  /** Names of `nvinfer1::BuilderFlag` in kebab-case without the k: `refit`, `version-compatible`, `sparse-weights`; sorted. TF32 is on unless `no-tf32` is here. */
  flags: z.array(z.string()),
  tacticSources: z.array(z.string()).nullable(),
  previewFeatures: z.array(z.string()),
  /** SHA-256 of each plug-in library, sorted; the paths travel beside the recipe. */
  pluginDigests: z.array(z.string()),
});

/**
 * The target of an engine. Its portability beyond that (version-compatible, hardware-compatible) is requested in the recipe.
 * The driver and the GPU's name are recorded in the passport, not here: they do not decide whether the engine can be used.
 */
export const targetSchema = z.strictObject({
  product: z.enum(['tensorrt', 'tensorrt-rtx']),
  /** `major.minor.patch.build` as the library reports it. */
  version: z.string().regex(/^\d+(\.\d+){0,3}$/),
  /** 89 for 8.9; ascending, at least one. NVIDIA has made some twenty since 2006. */
  computeCapabilities: z.array(z.int().positive().max(999)).min(1).max(32),
  /** CUDA major the TensorRT libraries were built for: one version number is published for several. null for tensorrt-rtx, and where unknown. */
  cudaMajor: z.int().positive().nullable(),
  os: z.enum(['linux', 'windows']),
  arch: z.enum(['x86_64', 'aarch64']),
});

export const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/);

/** All that an engine is identified by. No paths, times, machines or worker counts. */
export const identityDocumentSchema = z.strictObject({
  schema: z.literal('trtforge.identity/1'),
  /** Digest of the model's content (`model-digest.ts`). */
  model: sha256Schema,
  recipe: recipeSchema,
  target: targetSchema,
});
