import { z } from 'zod';
import { decisionDetailsSchema } from '../../../quality/tasks/decisions.js';
import { taskIdentitySchema } from '../../../quality/tasks/task.js';

const { swap } = decisionDetailsSchema.shape;

/** The task of a stream: whether the candidate leads to the same decisions as the reference. */
export const taskSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('not-judged'), why: z.string() }),
  decisionDetailsSchema.extend({
    ...taskIdentitySchema.shape,
    swap: swap
      .unwrap()
      .extend({
        /** Up to here logits count as equal: their absolute tolerance. */
        limit: z.number(),
      })
      .nullable(),
  }),
]);
export type StreamTask = z.infer<typeof taskSchema>;
export type JudgedTask = Exclude<StreamTask, { kind: 'not-judged' }>;
