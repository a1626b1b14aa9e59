import type { z } from 'zod';
import type { conversionSchema, profileRangeSchema, recipeSchema } from './recipe-schema.js';

export type ConversionRecipe = z.infer<typeof conversionSchema>;
export type Recipe = z.infer<typeof recipeSchema>;
export type ProfileRange = z.infer<typeof profileRangeSchema>;

/** The recipe when nothing is asked for: strongly typed, the graph as it is, the library's defaults. */
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
  avgTimingIterations: null,
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
