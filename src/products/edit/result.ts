import { z } from 'zod';
import { measureSchema, outcomeSchema } from '../../quality/verify/result.js';

const count = z.int().nonnegative();
const promised = z.enum(['bits', 'rounding']);
const counts = z.object({ before: count, after: count });

const bindingSchema = z.object({
  name: z.string(),
  dtype: z.string().nullable(),
  shape: z.array(z.union([z.number(), z.string(), z.null()])).nullable(),
  /** The value of the original that it is; null where the original has none. */
  was: z.string().nullable(),
});

/** What running both models showed. */
const proofSchema = z.object({
  /** `inconclusive`: the models do not run here, or nothing compares them. */
  outcome: outcomeSchema,
  /** What the steps together promise of every output that remains: equal bit by bit, or to the last rounding of FP32. */
  promised,
  /** What the runs showed; null where outputs differ by more, or did not run. */
  found: promised.nullable(),
  samples: count,
  /** Shapes of the original's inputs that ran. */
  shapes: z.array(z.record(z.string(), z.array(count))),
  backend: z.string().nullable(),
  outputs: z.array(
    z.object({
      name: z.string(),
      was: z.string(),
      outcome: outcomeSchema,
      equal: promised.nullable(),
      largestError: measureSchema.nullable(),
    }),
  ),
  /**
   * Axes of inputs that the original takes with one size alone. With `sizes` the same samples were put together otherwise, and each gave what it gives in the original; no run of the original
   * shows more of them.
   */
  opened: z.array(z.object({ input: z.string(), axis: count, stored: count, sizes: z.array(count) })),
  /** Outputs that nothing in the original stands for. */
  unproven: z.array(z.string()),
  reasons: z.array(z.string()),
});
export type EditProof = z.infer<typeof proofSchema>;

/** What `edit` did. */
export const editSchema = z.object({
  schema: z.literal('trtforge.edit/1'),
  input: z.string(),
  /** Null where nothing was written, as the proof failed or could not be made. */
  output: z.string().nullable(),
  externalData: z.string().nullable(),
  /** In their order, as typed; `did` is null for a step that changed nothing. */
  steps: z.array(z.object({ step: z.string(), did: z.string().nullable() })),
  changed: z.boolean(),
  /** Of the main graph. */
  nodes: counts,
  bytes: z.object({ before: count, after: count.nullable() }),
  opset: counts,
  ir: counts,
  inputs: z.array(bindingSchema),
  outputs: z.array(bindingSchema),
  proof: proofSchema,
  ms: z.number(),
});
export interface EditResult extends z.infer<typeof editSchema> {}
