import { z } from 'zod';
import { recipeSchema } from './recipe-schema.js';
import { targetSchema } from './target-schema.js';

export const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/);

/** All that an engine is identified by. No paths, times, machines or worker counts. */
export const identityDocumentSchema = z.strictObject({
  schema: z.literal('trtforge.identity/1'),
  /** Digest of the model's content (`model-digest.ts`). */
  model: sha256Schema,
  recipe: recipeSchema,
  target: targetSchema,
});
