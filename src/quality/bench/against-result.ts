import { z } from 'zod';
import { benchResultSchema, doubtSchema, modeSchema, spreadSchema } from './result.js';

const sideSchema = z.object({
  subject: benchResultSchema.shape.subject,
  backend: z.string(),
  /** All rounds together; null where no GPU was timed or nothing copied. */
  gpuMs: spreadSchema.nullable(),
  endToEndMs: spreadSchema.nullable(),
  /** Median compute time of each round in milliseconds, in order; each round has an execution context of its own. */
  roundMs: z.array(z.number().nonnegative()),
  /** Mean of the rounds. */
  qps: z.number().nonnegative(),
  itemsPerSecond: z.number().nonnegative(),
  mode: modeSchema,
  doubts: z.array(doubtSchema),
});

const ratioSchema = z.object({ ratio: z.number(), low: z.number(), high: z.number() });

/** What `trtforge bench compare A B` finds. Ratios are times of A over times of B: above 1, A is slower. */
export const benchAgainstSchema = z.object({
  schema: z.literal('trtforge.bench-against/1'),
  candidate: sideSchema,
  reference: sideSchema,
  gpu: benchResultSchema.shape.gpu,
  batch: z.int().nonnegative(),
  rounds: z.int().min(2),
  /** Which ratio decides: `gpuMs` (gpu-only), `endToEndMs` (with transfers), `time-per-inference` (several streams). */
  metric: z.enum(['gpuMs', 'endToEndMs', 'time-per-inference']),
  /** Of medians per round, with the interval of 95 % confidence. */
  ratios: z.object({
    gpuMs: ratioSchema,
    endToEndMs: ratioSchema.nullable(),
    'time-per-inference': ratioSchema,
  }),
  /** `equal`: all of the interval is near 1; `inconclusive`: it holds 1 and is wide. */
  verdict: z.enum(['faster', 'slower', 'equal', 'inconclusive']),
  /** Where a limit was asked for: whether A stays within it. */
  gate: z
    .object({ limit: z.number(), outcome: z.enum(['pass', 'fail', 'inconclusive']), reason: z.string() })
    .nullable(),
  warnings: z.array(z.string()),
});

export type BenchAgainst = z.infer<typeof benchAgainstSchema>;
export type AgainstSide = z.infer<typeof sideSchema>;
