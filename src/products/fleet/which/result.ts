import { z } from 'zod';
import { machineSchema } from './machine.js';

const loadSchema = z.strictObject({
  /** Where it is: a path, or its address in the remote store. */
  engine: z.string(),
  name: z.string(),
  /** null without a passport. */
  identity: z.string().nullable(),
  /** `if-allowed`: it carries the runtime that runs it, which is code. `unknown`: the reason names the missing fact. */
  verdict: z.enum(['yes', 'if-allowed', 'unknown', 'no']),
  /** The rule that decided (docs/which.md), or the error code of a damaged engine. */
  rule: z.string(),
  reason: z.string(),
  /** About an engine that is not ruled out. */
  warning: z.string().nullable(),
});

/** The worst first. pass: an engine loads; fail: none does. */
export const outcomes = z.enum(['fail', 'inconclusive', 'pass']);

export const whichSchema = z.strictObject({
  schema: z.literal('trtforge.which/1'),
  /** The request, as passed. */
  query: z.string(),
  /** Digest of the model, where one was named. */
  model: z.string().nullable(),
  outcome: outcomes,
  machines: z.array(
    machineSchema.extend({
      outcome: outcomes,
      loads: z.array(loadSchema),
      /** `engine` of the one to take; null where none loads for certain. */
      best: z.string().nullable(),
      /** The line that builds what is missing; null where nothing is, where nothing names the model, and where the machine's TensorRT cannot build it. */
      build: z.string().nullable(),
      /** The candidates for `best` or `build`, or why nothing can be built; null where there is nothing to report. */
      chosen: z.string().nullable(),
    }),
  ),
});

export type Load = z.infer<typeof loadSchema>;

export interface Which extends z.infer<typeof whichSchema> {}
