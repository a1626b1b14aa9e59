import { z } from 'zod';

/** What `deepstream config` wrote. */
export const deepstreamConfigSchema = z.strictObject({
  schema: z.literal('trtforge.deepstream-config/1'),
  name: z.string(),
  /** In the order in which they were written: configurations last. */
  files: z.array(z.string()),
  engine: z.string(),
  model: z.string().nullable(),
  layout: z.enum(['boxes', 'end-to-end', 'detr']).nullable(),
  classes: z.int().nullable(),
  /** What no file states, and was taken all the same. */
  assumed: z.array(z.string()),
  warnings: z.array(z.string()),
});

export type DeepstreamConfig = z.infer<typeof deepstreamConfigSchema>;
