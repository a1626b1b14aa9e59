import { z } from 'zod';
import { parseSize } from '../../base/text/quantity.js';
import { faultText } from '../../base/text/schema-error.js';
import { didYouMean } from '../../base/text/suggest-name.js';
import { TrtforgeError } from '../../errors.js';
import { formatIds } from '../../formats/precision/formats/index.js';
import { conversionRecipeSchema } from '../../formats/precision/options.js';

const dims = z.array(z.int().nonnegative());

/** min, opt and max of one input in one optimization profile: dimensions, or for a shape tensor its values. */
const profileRangeSchema = z.object({
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
  /** Digest of the model's content (`read-model.ts`). */
  model: sha256Schema,
  recipe: recipeSchema,
  target: targetSchema,
});

export interface Recipe extends z.infer<typeof recipeSchema> {}
export type ProfileRange = z.infer<typeof profileRangeSchema>;

/** TensorRT's own number of averaged timing runs (NvInfer.h). */
export const LIBRARY_AVERAGES = 1;

/** The recipe when nothing is asked for: strongly typed, the graph as it is, tactics timed as often as trtexec does, else the library's defaults. */
export const defaultRecipe: Recipe = {
  precision: 'as-is',
  conversion: null,
  stronglyTyped: true,
  profiles: [],
  memoryPools: {
    workspace: null,
    tacticSharedMemory: null,
    dlaManagedSram: null,
    dlaLocalDram: null,
    dlaGlobalDram: null,
  },
  optimizationLevel: null,
  maxAuxStreams: null,
  // As trtexec has it. Left to itself TensorRT 10.6 takes half as long again to time tactics (docs/evidence/h200.md).
  avgTimingIterations: 8,
  tilingOptimizationLevel: null,
  maxTactics: null,
  l2LimitForTiling: null,
  profilingVerbosity: 'layer-names-only',
  hardwareCompatibility: 'none',
  runtimePlatform: 'same-as-build',
  engineCapability: 'standard',
  flags: [],
  tacticSources: null,
  previewFeatures: [],
  pluginDigests: [],
};

/** The part of a recipe that `key=value` sets: a field or a memory pool, and the type of its text. */
interface Setting {
  readonly field: keyof Recipe | `memoryPools.${keyof Recipe['memoryPools']}`;
  readonly read: 'number' | 'bytes' | 'text' | 'list';
}

/** Keys of `--builder-config`, in kebab-case as everywhere on the command line. */
const settings: Readonly<Record<string, Setting>> = {
  'optimization-level': { field: 'optimizationLevel', read: 'number' },
  flags: { field: 'flags', read: 'list' },
  'hardware-compatibility': { field: 'hardwareCompatibility', read: 'text' },
  'profiling-verbosity': { field: 'profilingVerbosity', read: 'text' },
  'runtime-platform': { field: 'runtimePlatform', read: 'text' },
  'max-aux-streams': { field: 'maxAuxStreams', read: 'number' },
  'avg-timing': { field: 'avgTimingIterations', read: 'number' },
  'tiling-optimization-level': { field: 'tilingOptimizationLevel', read: 'text' },
  'l2-limit-for-tiling': { field: 'l2LimitForTiling', read: 'bytes' },
  'max-tactics': { field: 'maxTactics', read: 'number' },
  'tactic-sources': { field: 'tacticSources', read: 'list' },
  'preview-features': { field: 'previewFeatures', read: 'list' },
  workspace: { field: 'memoryPools.workspace', read: 'bytes' },
  'tactic-shared-memory': { field: 'memoryPools.tacticSharedMemory', read: 'bytes' },
  'dla-managed-sram': { field: 'memoryPools.dlaManagedSram', read: 'bytes' },
  'dla-local-dram': { field: 'memoryPools.dlaLocalDram', read: 'bytes' },
  'dla-global-dram': { field: 'memoryPools.dlaGlobalDram', read: 'bytes' },
};

export const builderConfigKeys = Object.keys(settings);

export type BuilderConfig = Partial<
  Omit<Recipe, 'precision' | 'conversion' | 'stronglyTyped' | 'profiles' | 'pluginDigests'>
> &
  Pick<Recipe, 'memoryPools'>;

/**
 * Reads `key=value` settings of the builder; lists are separated by commas, and several settings of one list add up. Throws TF_USAGE for an unknown key and
 * for a value that the recipe does not take.
 */
export function parseBuilderConfig(texts: readonly string[]): BuilderConfig {
  const config: Record<string, unknown> = {};
  const pools = { ...defaultRecipe.memoryPools };
  for (const text of texts) {
    const [key = '', value] = splitOnce(text, '=');
    const setting = Object.hasOwn(settings, key) ? settings[key] : undefined;
    if (setting === undefined || value === undefined || value === '')
      throw new TrtforgeError(
        'TF_USAGE',
        `\`${text}\` is not a builder setting.${didYouMean(key, builderConfigKeys)}`,
        {
          remedy: `Write KEY=VALUE; keys are ${builderConfigKeys.join(', ')}.`,
        },
      );
    const read = readValue(setting, value);
    const [field, pool] = setting.field.split('.');
    if (pool !== undefined) pools[pool as keyof typeof pools] = read as number;
    else if (Array.isArray(read)) config[field!] = [...((config[field!] as string[]) ?? []), ...read];
    else config[field!] = read;
    const checked = recipeSchema.shape[field as keyof Recipe].safeParse(
      pool === undefined ? config[field!] : pools,
    );
    if (!checked.success) throw new TrtforgeError('TF_USAGE', `${key}: ${faultText(checked.error)}.`);
  }
  return { ...config, memoryPools: pools };
}

/** The settings of a recipe that differ from the defaults, as `parseBuilderConfig` reads them. */
export function builderConfigTexts(recipe: Recipe): readonly string[] {
  return Object.entries(settings).flatMap(([key, { field, read }]) => {
    const valueIn = (of: Recipe): unknown => {
      const [name, pool] = field.split('.') as [keyof Recipe, keyof Recipe['memoryPools'] | undefined];
      return pool === undefined ? of[name] : of.memoryPools[pool];
    };
    const value = valueIn(recipe);
    const isDefault = JSON.stringify(value) === JSON.stringify(valueIn(defaultRecipe));
    return isDefault ? [] : [`${key}=${value}${read === 'bytes' ? 'B' : ''}`];
  });
}

function readValue({ read }: Setting, value: string): unknown {
  if (read === 'list') return value.split(',');
  if (read === 'text') return value;
  if (read === 'bytes') return parseSize(value);
  return /^\d+$/.test(value) ? Number(value) : Number.NaN;
}

function splitOnce(text: string, separator: string): readonly [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + separator.length)];
}
