import { z } from 'zod';

const judged = z.object({
  /** null: it was not compared, and the reason says why. */ outcome: z
    .enum(['pass', 'fail', 'inconclusive'])
    .nullable(),
  reasons: z.array(z.string()),
});

const triedModelSchema = z.object({
  name: z.string(),
  /** Warm-up included. */
  ready: z.boolean(),
  /** Why it is not ready (in the server's own words), does not answer, or its answer shows nothing; null where none of that is. */
  reason: z.string().nullable(),
  /** One request; null where the model is not ready. */
  request: z
    .object({
      /** From here and back, once. */
      ms: z.number().nonnegative(),
      inputs: z.array(z.object({ name: z.string(), dtype: z.string(), shape: z.array(z.int()) })),
      outputs: z.array(z.object({ name: z.string(), dtype: z.string(), shape: z.array(z.int()) })),
    })
    .nullable(),
  /** Two sequences in turns beside one alone; null for a model without sequences. */
  sequences: judged.nullable(),
  /** null where there is none in the repository's passports, and where the stub answers. */
  knownAnswer: judged.nullable(),
});

export const tritonTrySchema = z.object({
  schema: z.literal('trtforge.triton-try/1'),
  exitCode: z.union([z.literal(0), z.literal(1), z.literal(4)]),
  outcome: z.enum(['pass', 'fail', 'inconclusive']),
  repository: z.string(),
  server: z.object({
    version: z.string(),
    /** null: it was started here. */
    url: z.string().nullable(),
    /** `stub`: no engine ran; what passes is the configuration. */
    answeredBy: z.enum(['tensorrt', 'stub', 'server']),
  }),
  models: z.array(triedModelSchema),
  /** Models that were not tried, with the reason. */
  skipped: z.array(z.object({ name: z.string(), reason: z.string() })),
});

export interface TritonTry extends z.infer<typeof tritonTrySchema> {}
export type TriedModel = TritonTry['models'][number];
