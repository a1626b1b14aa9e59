import type { z } from 'zod';
import type { conversionSchema, profileRangeSchema, recipeSchema } from './identity-schema.js';

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
