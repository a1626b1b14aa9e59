import { z } from 'zod';

export const tritonExportSchema = z.object({
  schema: z.literal('trtforge.triton-export/1'),
  repository: z.string(),
  models: z.array(
    z.object({
      name: z.string(),
      version: z.int().positive(),
      /** 0: Triton does not batch, and shapes are complete. */
      maxBatchSize: z.int().nonnegative(),
      /** In the order they were written, below the repository. */
      files: z.array(z.string()),
      plans: z.array(
        z.object({
          /** `8.9` */
          capability: z.string(),
          identity: z.string(),
          path: z.string(),
        }),
      ),
      /** What Triton keeps between the requests of a sequence. */
      states: z.array(z.object({ input: z.string(), output: z.string(), initial: z.number() })),
    }),
  ),
  /** A program that decodes with the models of a bundle, below the repository; null without one. */
  client: z.string().nullable(),
  warnings: z.array(z.string()),
});
export type TritonExport = z.infer<typeof tritonExportSchema>;
