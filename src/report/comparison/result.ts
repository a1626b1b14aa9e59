import { z } from 'zod';
import { type Measure, measureSchema } from '../../quality/verify/result.js';
import { runOutcomeSchema } from '../result.js';

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

/** Two results of one kind side by side, as `report A B` writes it. */
export const runComparisonSchema = z.object({
  schema: z.literal('trtforge.run-comparison/1'),
  /** The version of trtforge that compared. */
  version: z.string(),
  /** The kind of both results: `forge`. */
  kind: z.string(),
  a: sideSchema,
  b: sideSchema,
  /** Of the documents that identities are digests of; null where a side has no engine with its identity. */
  identity: z.object({ equal: z.boolean(), differences: z.array(differenceSchema) }).nullable(),
  /** Of machine and versions. */
  environment: z.array(differenceSchema),
  parts: z.array(partSchema),
});

export type RunComparison = z.infer<typeof runComparisonSchema>;
export type ComparedSide = z.infer<typeof sideSchema>;
export type ComparedPart = z.infer<typeof partSchema>;
export type ComparedRow = z.infer<typeof rowSchema>;

/** Figures of both sides, their ratios where they can be compared; null without a figure. */
export function comparedPart(
  name: ComparedPart['part'],
  rows: readonly Omit<ComparedRow, 'ratio'>[],
  notComparable: readonly (string | null)[] = [],
  warnings: readonly (string | null)[] = [],
  doubts: readonly string[] = [],
): ComparedPart | null {
  const known = rows.filter((row) => row.a !== null || row.b !== null);
  if (known.length === 0) return null;
  const [reasons, remarks] = [notComparable, warnings].map((texts) => texts.filter((text) => text !== null));
  const isComparable = reasons?.length === 0;
  return {
    part: name,
    of: null,
    notComparable: reasons ?? [],
    warnings: remarks ?? [],
    doubts: [...doubts],
    rows: known.map((row) => ({ ...row, ratio: isComparable ? ratioOf(row.a, row.b) : null })),
  };
}

function ratioOf(a: Measure | null, b: Measure | null): number | null {
  if (a === null || b === null) return null;
  const ratio = Number(a) / Number(b);
  return Number.isFinite(ratio) ? ratio : null;
}

export const row = (
  what: string,
  unit: ComparedRow['unit'],
  a: Measure | null | undefined,
  b: Measure | null | undefined,
) => ({ what, unit, a: a ?? null, b: b ?? null });

/** That two texts differ, with both. */
export const differ = (what: string, a: string, b: string): string | null =>
  a === b ? null : `${what}: ${a} and ${b}.`;

/** That one side has what the other has not. */
export function lacks(what: string, a: unknown, b: unknown): string | null {
  const [missingA, missingB] = [a ?? null, b ?? null].map((side) => side === null);
  return missingA === missingB ? null : `${missingA ? 'A' : 'B'} has no ${what}.`;
}

/** A side that is known by its file, a model or an engine, and by the file of its result; the caller states what else such results have. */
export const fileSide = (run: string, file: string): Omit<ComparedSide, 'headline'> => ({
  run,
  startedAt: null,
  version: null,
  model: file.endsWith('.onnx') ? file : null,
  precision: null,
  target: null,
  outcome: null,
  engine: file.endsWith('.onnx') ? null : file,
  identity: null,
});
