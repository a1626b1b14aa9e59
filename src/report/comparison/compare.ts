import type { Measure } from '../../quality/verify/result.js';
import { packageVersion } from '../../version.js';
import type { ResultAt } from '../forge-result.js';
import type { Decision } from './decision.js';
import type { ComparedPair, ComparedPart, ComparedRow, ComparedSide, RunComparison } from './result.js';

/** The letters of the two that are compared. */
export type Names = readonly [a: string, b: string];

/** How results of one kind stand side by side. */
export interface Comparable<R> {
  side(run: ResultAt<R>): ComparedSide;
  pair(a: R, b: R, names: Names): ComparedPair;
  /** The runs as points of one plot, by their letters; absent for kinds without. */
  readonly decide?: (runs: readonly R[], letters: readonly string[]) => Decision | null;
}

/** The most that have a letter. */
export const MOST_RUNS = 26;

export const letterOf = (index: number): string => String.fromCharCode(65 + index);

/** Two to `MOST_RUNS` results, each beside the last. */
export function compareResults<R>(
  kind: string,
  { side, pair, decide }: Comparable<R>,
  runs: readonly ResultAt<R>[],
): RunComparison {
  const last = runs.length - 1;
  const results = runs.map(({ result }) => result);
  return {
    schema: 'trtforge.run-comparison/2',
    version: packageVersion(),
    kind,
    runs: runs.map(side),
    pairs: results
      .slice(0, last)
      .map((result, at) => pair(result, results[last]!, [letterOf(at), letterOf(last)])),
    decision:
      decide?.(
        results,
        results.map((_, at) => letterOf(at)),
      ) ?? null,
  };
}

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
export function lacks(what: string, a: unknown, b: unknown, names: Names): string | null {
  const [missingA, missingB] = [a ?? null, b ?? null].map((side) => side === null);
  return missingA === missingB ? null : `${names[missingA ? 0 : 1]} has no ${what}.`;
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
