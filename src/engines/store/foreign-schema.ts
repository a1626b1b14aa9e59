import { z } from 'zod';

/** The JSON beside an engine that came without a passport. It has no identity: nothing states which model and recipe it was built from. */
export const foreignSchema = z.object({
  schema: z.literal('trtforge.foreign/1'),
  /** Its file name where it came from; a plain file name. */
  name: z.string().regex(/^[A-Za-z0-9_+][A-Za-z0-9._+~-]{0,250}$/),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: z.int().positive(),
  /** From the plan's header. */
  product: z.enum(['tensorrt', 'tensorrt-rtx']),
  version: z.string().nullable(),
  /** The facts that its name states; null for a name of no known scheme. */
  hints: z.object({
    scheme: z.string().nullable(),
    model: z.string().nullable(),
    version: z.string().nullable(),
    precision: z.string().nullable(),
    computeCapability: z.int().nullable(),
    trtVersion: z.string().nullable(),
  }),
  oddities: z.array(z.string()),
  /** UTC, ISO 8601. */
  importedAt: z.string(),
});
export type ForeignEngine = z.infer<typeof foreignSchema>;
