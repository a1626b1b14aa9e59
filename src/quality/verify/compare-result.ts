import { z } from 'zod';
import { outputFormats } from './output-set.js';
import { errorMapSchema, outcomeSchema, verifiedOutputSchema, verifyPrecisions } from './result.js';

const sideSchema = z.object({
  path: z.string(),
  format: z.enum(outputFormats),
  /** Of Polygraphy's results. */
  runner: z.string().nullable(),
  runs: z.number(),
  /** Outputs that only this side has. */
  unmatched: z.array(z.string()),
});

/** The result of `compare`: recorded outputs compared with others. */
export const compareResultSchema = z.object({
  schema: z.literal('trtforge.compare/1'),
  candidate: sideSchema,
  reference: sideSchema,
  /** The precision that the usual limits are for. */
  precision: z.enum(verifyPrecisions),
  /** Number of runs of both that were compared, in order. */
  runs: z.number(),
  /** By the reference's names. */
  outputs: z.array(verifiedOutputSchema),
  /** As in the result of `verify`. */
  errorMap: errorMapSchema.optional(),
  verdicts: z.object({
    /** Same outputs, of the same types and shapes. */
    contract: outcomeSchema,
    numeric: outcomeSchema,
  }),
  /** Runs in which an output failed. */
  failures: z.array(
    z.object({
      run: z.number(),
      tensor: z.string(),
      kind: z.string(),
      maxAbs: verifiedOutputSchema.shape.checks.element.shape.measured,
    }),
  ),
  warnings: z.array(z.string()),
  outcome: outcomeSchema,
  reasons: z.array(z.string()),
  /** The command line of this run; null where a program called the library. */
  repeat: z.string().nullable(),
});
export interface CompareResult extends z.infer<typeof compareResultSchema> {}
