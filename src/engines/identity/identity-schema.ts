import { z } from 'zod';
import { recipeSchema } from './recipe-schema.js';

/**
 * What an engine is for. How far it may travel beyond that (version-compatible, hardware-compatible) is asked for in the recipe.
 * The driver and the GPU's name are recorded in the passport, not here: they do not decide whether the engine may serve.
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
