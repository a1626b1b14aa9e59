import { z } from 'zod';
import { sha256 } from '../system/digest.js';
import { canonicalJson } from './canonical-json.js';
import { recipeSchema } from './recipe.js';
import { targetSchema } from './target.js';

export const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/);

/** All that an engine is identified by. No paths, times, machines or worker counts. */
export const identityDocumentSchema = z.strictObject({
  schema: z.literal('trtforge.identity/1'),
  /** Digest of the model's content (`model-digest.ts`). */
  model: sha256Schema,
  recipe: recipeSchema,
  target: targetSchema,
});
export type IdentityDocument = z.infer<typeof identityDocumentSchema>;

/** SHA-256 of the canonical JSON of the document, as 64 hex digits. */
export const identityDigest = (document: IdentityDocument): string => sha256(canonicalJson(document));
