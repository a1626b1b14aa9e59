import { z } from 'zod';
import { outcomeSchema } from '../verify/result.js';

/** The checks, in this order. */
export const checkIds = ['answer', 'repeat', 'rows', 'graph', 'contexts', 'rebuild'] as const;

const wrongElementSchema = z.object({
  output: z.string(),
  /** Index of the element, of a set among the sorted ones. */
  place: z.int().nonnegative(),
  /** Where there is one, `place` is a position on it, and both values are the root mean squares there. */
  axis: z.int().nonnegative().optional(),
  /** null: not finite, or not there. */
  expected: z.number().nullable(),
  actual: z.number().nullable(),
});
export type WrongElement = z.infer<typeof wrongElementSchema>;

export const answerCheckSchema = z.object({
  id: z.enum(checkIds),
  /** Of which inputs: `profile 0, opt`; null where they are none of the answer's. */
  case: z.string().nullable(),
  /** null: it did not run, which counts neither way. */
  outcome: outcomeSchema.nullable(),
  ms: z.number().nonnegative(),
  /** Whether everything that was compared is the same to the last bit; null where bits do not matter. */
  bitwise: z.boolean().nullable(),
  reasons: z.array(z.string()),
  wrong: wrongElementSchema.nullable(),
});
export type AnswerCheck = z.infer<typeof answerCheckSchema>;

/** The result of `engine check`. */
export const engineCheckSchema = z.object({
  schema: z.literal('trtforge.engine-check/1'),
  engine: z.string(),
  planSha256: z.string(),
  answerSha256: z.string().nullable(),
  /** Where the known answer is: in the passport or in the file beside the plan; null where there is none. */
  answer: z.enum(['passport', 'file']).nullable(),
  reference: z.string().nullable(),
  /** The GPU that it ran on; null where it did not run. */
  gpu: z.object({ name: z.string(), uuid: z.string() }).nullable(),
  driver: z.string().nullable(),
  library: z.string().nullable(),
  checks: z.array(answerCheckSchema),
  outcome: outcomeSchema,
  reasons: z.array(z.string()),
  /** The parts that the answer does not cover, and why. Absent in results of earlier versions. */
  left: z.array(z.string()).optional(),
  /** The file that was written beside the plan; null where none was asked for. */
  recorded: z.string().nullable(),
  /** Where the errors were measured that the answer states. */
  builtOn: z.object({ gpu: z.string(), driver: z.string().nullable(), library: z.string() }).nullable(),
  /** Of the checks, without loading the engine. */
  ms: z.number().nonnegative(),
  /** When this was found on this GPU with this driver and library. */
  at: z.string(),
  /** The command line that searches the cause of a failure; null for others. */
  next: z.string().nullable(),
});
export type EngineCheck = z.infer<typeof engineCheckSchema>;
