import { z } from 'zod';

/** Who made a reference; kept in `metadata.x_trtforge` of the first line, or in `reference.json`. */
export const provenanceSchema = z.object({
  tool: z.string(),
  version: z.string(),
  backend: z.string(),
  model: z.object({ path: z.string(), digest: z.string(), kind: z.enum(['model', 'engine']) }),
  contract: z.string().nullable(),
  seed: z.number().nullable(),
  schedule: z.array(z.number().int().positive()),
  batch: z.number().int().positive(),
  precision: z.string(),
  tf32: z.boolean().nullable(),
  recordedAt: z.string(),
});

/** `reference.json` of a compact reference. */
export const compactHeaderSchema = z.object({
  schema: z.literal('trtforge.reference/1'),
  chunks: z.number().int().nonnegative(),
  /** Bytes of all npz files, and what they would be if nothing were stored twice less. */
  storedBytes: z.number().nonnegative(),
  tensorBytes: z.number().nonnegative(),
  provenance: provenanceSchema.nullable(),
});
export type CompactHeader = z.infer<typeof compactHeaderSchema>;
