import { z } from 'zod';
import { ExitCode } from '../../../errors.js';
import { metricSchema } from '../../../quality/tasks/task.js';
import { candidateSchema } from '../run/candidate.js';
import { imageRunSchema } from '../run/images.js';

const spreadSchema = z.object({ mean: z.number(), std: z.number(), min: z.number(), max: z.number() });

/** The result of `trtforge eval embeddings`; `n_samples` to `validation` have the names of screenalytics' comparison. */
export const embeddingsResultSchema = z.object({
  schema: z.literal('trtforge.eval-embeddings/1'),
  n_samples: z.number(),
  cosine_similarity: spreadSchema,
  /** Between vectors of length 1: for those, distance² is 2 (1 - cosine). */
  l2_distance: spreadSchema,
  /** Lengths before they are made 1: where one network normalises and the other does not, they differ. */
  norms: z.object({ reference: spreadSchema, candidate: spreadSchema }),
  /** Medians of single runs, milliseconds. */
  timing: z.object({
    reference_ms: z.number().nullable(),
    candidate_ms: z.number().nullable(),
    speedup: z.number().nullable(),
  }),
  validation: z.object({ passed: z.boolean(), failure_reason: z.string().nullable() }),
  dimensions: z.number(),
  /** The five images that are furthest apart. */
  worst: z.array(z.object({ image: z.string(), cosine: z.number() })),
  limits: z.object({ minMeanCosine: z.number(), minCosine: z.number(), maxMeanL2: z.number() }),
  /** SHA-256 over the names of the images and the input tensor of the first. */
  dataDigest: z.string(),
  comparabilityKey: z.string(),
  metrics: z.array(metricSchema),
  reference: candidateSchema,
  candidate: candidateSchema,
  preprocess: z.string(),
  runs: z.object({ reference: imageRunSchema, candidate: imageRunSchema }),
  warnings: z.array(z.string()),
  exitCode: z.literal([ExitCode.pass, ExitCode.failed]),
});
export interface EmbeddingsResult extends z.infer<typeof embeddingsResultSchema> {}
