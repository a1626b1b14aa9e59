import { z } from 'zod';
import { gateResultSchema } from '../../quality/gate/result.js';

const outcome = z.enum(['pass', 'fail', 'inconclusive']);

/** One engine of the old toolchain, and what the new one makes of its model. */
const rehearsedSchema = z.object({
  /** Of the new engine; its results have this name in the policy's waivers, `NAME.verify`, `NAME.answer` and `NAME.bench`. */
  name: z.string(),
  identity: z.string(),
  model: z.string(),
  on: z.string(),
  /** The old one. */
  before: z.object({ name: z.string(), bytes: z.int(), buildMs: z.number() }).nullable(),
  after: z.object({ bytes: z.int(), buildMs: z.number() }).nullable(),
  /** Against the FP32 model. */
  verify: outcome.nullable(),
  /** Against the answer that the old engine recorded at its build. */
  answer: outcome.nullable(),
  /** GPU time, new over old, in turns; null where the old one does not load here. */
  ratio: z.object({ ratio: z.number(), low: z.number(), high: z.number() }).nullable(),
  /** The steps that were not done, and why. */
  notDone: z.array(z.string()),
});

/** The result of `fleet rehearse`: go or no-go. */
export const rehearsalSchema = z.object({
  schema: z.literal('trtforge.fleet-rehearse/1'),
  version: z.string(),
  from: z.string(),
  to: z.string(),
  gpu: z.string().nullable(),
  at: z.string(),
  outcome,
  reasons: z.array(z.string()),
  engines: z.array(rehearsedSchema),
  gate: gateResultSchema,
  repeat: z.string(),
});

export interface Rehearsal extends z.infer<typeof rehearsalSchema> {}
export type Rehearsed = Rehearsal['engines'][number];
