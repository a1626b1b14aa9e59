import type { z } from 'zod';
import { parseSize } from '../../base/text/quantity.js';
import { faultText } from '../../base/text/schema-error.js';
import { didYouMean } from '../../base/text/suggest-name.js';
import { TrtforgeError } from '../../errors.js';
import { type conversionSchema, type profileRangeSchema, recipeSchema } from './identity-schema.js';

export type ConversionRecipe = z.infer<typeof conversionSchema>;
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

/** Whether an engine of a recipe takes other weights. */
export const isRefittable = ({ flags }: Pick<Recipe, 'flags'>): boolean => flags.includes('refit');

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
