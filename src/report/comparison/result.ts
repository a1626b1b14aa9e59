import { z } from 'zod';
import { measureSchema } from '../../quality/verify/result.js';
import { runOutcomeSchema } from '../forge-result.js';
import { decisionSchema } from './decision.js';

const differenceSchema = z.object({
  field: z.string(),
  /** As JSON values; absent where one side has no such field. */
  a: z.unknown().optional(),
  b: z.unknown().optional(),
});

const sideSchema = z.object({
  /** The run root or the file, as passed. */
  run: z.string(),
  /** null here and below where such results do not state it. */
  startedAt: z.string().nullable(),
  /** Of trtforge. */
  version: z.string().nullable(),
  model: z.string().nullable(),
  precision: z.string().nullable(),
  target: z.string().nullable(),
  outcome: runOutcomeSchema.nullable(),
  headline: z.string(),
  /** Path of the plan, and its identity; null without an engine. */
  engine: z.string().nullable(),
  identity: z.string().nullable(),
});

const rowSchema = z.object({
  what: z.string(),
  unit: z.enum(['ms', 'bytes', 'count', 'per-second', 'error', 'share']),
  a: measureSchema.nullable(),
  b: measureSchema.nullable(),
  /** a over b; null where the part is not comparable, where a side has no such figure, and where b is 0. */
  ratio: z.number().nullable(),
});

const partSchema = z.object({
  part: z.enum(['engine', 'build', 'precision', 'accuracy', 'speed']),
  /** The component or the check that it is about; null for the whole. */
  of: z.string().nullable(),
  /** Why the figures of the two runs cannot be compared; empty where they can. */
  notComparable: z.array(z.string()),
  /** Facts about a comparison that can be made and that its reader should know. */
  warnings: z.array(z.string()),
  /** Why figures of the two are measured badly: their ratio is unreliable. */
  doubts: z.array(z.string()),
  rows: z.array(rowSchema),
});

const pairSchema = z.object({
  /** Of the documents that identities are digests of; null where a side has no engine with its identity. */
  identity: z.object({ equal: z.boolean(), differences: z.array(differenceSchema) }).nullable(),
  /** Of machine and versions. */
  environment: z.array(differenceSchema),
  parts: z.array(partSchema),
});

/** Two or more results of one kind side by side, as `report A B C` writes it. */
export const runComparisonSchema = z.object({
  schema: z.literal('trtforge.run-comparison/2'),
  /** The version of trtforge that compared. */
  version: z.string(),
  /** The kind of the results: `forge`. */
  kind: z.string(),
  /** A, B, C, … in the order of the command line. */
  runs: z.array(sideSchema).min(2),
  /** Each run but the last, as `a`, with the last, as `b`. */
  pairs: z.array(pairSchema).min(1),
  /** Which to take; null where no two of the runs have both figures. */
  decision: decisionSchema.nullable(),
});

export type RunComparison = z.infer<typeof runComparisonSchema>;
export type ComparedPair = RunComparison['pairs'][number];
export type ComparedSide = z.infer<typeof sideSchema>;
export type ComparedPart = z.infer<typeof partSchema>;
export type ComparedRow = z.infer<typeof rowSchema>;
