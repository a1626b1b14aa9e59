import { z } from 'zod';
import { measureSchema } from '../../../quality/verify/result.js';

const differenceSchema = z.object({
  chunk: z.number(),
  /** Indices in the output: row and encoder step of a decision; of a class score all axes but the last. */
  at: z.array(z.number()),
  /** `steps`: the two have another number of valid steps in this chunk. */
  what: z.enum(['token', 'duration', 'class', 'steps']),
  reference: z.number(),
  candidate: z.number(),
  /** Best score less the second best: how nearly each would have decided otherwise. null for `steps`. */
  referenceMargin: measureSchema.nullable(),
  candidateMargin: measureSchema.nullable(),
  /** The reference's margin is so small that the candidate's rounding explains the difference. */
  closeCall: z.boolean(),
});
export type TaskDifference = z.infer<typeof differenceSchema>;

const swapSchema = z.object({
  /** The meta file of the candidate's own predictor and joint network. */
  decoder: z.string(),
  /** What counts as agreeing: the absolute tolerance of the logits. */
  limit: z.number(),
  /** Largest difference of a logit from the reference's, by whose encoder and whose decoder gave it. */
  referenceReference: measureSchema,
  referenceCandidate: measureSchema,
  candidateReference: measureSchema,
  candidateCandidate: measureSchema,
});
export type SwapResult = z.infer<typeof swapSchema>;

/** What the outputs were for: whether the candidate leads to the same decisions as the reference. */
export const taskSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('not-judged'), why: z.string() }),
  z.object({
    /** `transducer`: greedy decoding of both by the same predictor and joint network. `argmax`: the largest score along the last axis. */
    kind: z.enum(['transducer', 'argmax']),
    /** The output that is decided about. */
    output: z.string(),
    /** The bundle's meta file; null for `argmax`. */
    decoder: z.string().nullable(),
    /** Decisions of the reference; the candidate is led along them, so one difference does not cause the next. */
    decisions: z.number(),
    /** Decisions with the same token or class, and with the same duration (null where there are none). */
    agreed: z.number(),
    durationsAgreed: z.number().nullable(),
    /** Free decoding: tokens that came out, and whether they are the same one by one. null for `argmax`. */
    emitted: z.object({ reference: z.number(), candidate: z.number(), equal: z.boolean() }).nullable(),
    /** Encoder and decoder put together in all four ways; null where nobody asked. */
    swap: swapSchema.nullable(),
    /** All differences, of which the first are listed. */
    different: z.number(),
    /** How many of them are close calls: they do not fail the task. */
    closeCalls: z.number(),
    /** A margin up to this share of the scores' root mean square is a close call. */
    closeCallShare: z.number(),
    differences: z.array(differenceSchema),
    smallestMargin: measureSchema.nullable(),
    /** Chunks in which the candidate gave nothing that could be decided about. */
    unjudged: z.array(z.number()),
  }),
]);
export type TaskResult = z.infer<typeof taskSchema>;
export type JudgedTask = Exclude<TaskResult, { kind: 'not-judged' }>;
