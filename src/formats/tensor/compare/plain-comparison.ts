import { type FloatArray, formatOf } from '../float-format.js';
import { type Gathered, type NonFiniteCounts, namedQuantiles } from './comparison-statistics.js';
import { quantilesInPlace } from './order-statistics.js';
import { addPairs, emptySums, type Tolerance } from './pair-sums.js';

/** The plain way: both errors of every pair in memory. */
export function gatherAtOnce(
  candidate: FloatArray,
  reference: FloatArray,
  tolerance: Tolerance,
  fractions: readonly number[],
): Gathered {
  const pairs = finitePairs(candidate, reference);
  const { make } = formatOf(reference);
  const absolute = make(pairs.candidate.length);
  const relative = make(pairs.candidate.length);
  const sums = emptySums();
  addPairs(sums, pairs.candidate, pairs.reference, absolute, relative, tolerance);
  const place = (values: FloatArray, value: number) => {
    const index = values.indexOf(value);
    return pairs.indices === undefined ? index : (pairs.indices[index] ?? -1);
  };
  return {
    elements: candidate.length,
    sums,
    nonFinite: pairs.counts,
    absoluteIndex: place(absolute, sums.absoluteMax),
    relativeIndex: place(relative, sums.relativeMax),
    absoluteQuantiles: namedQuantiles(quantilesInPlace(absolute, fractions)),
    relativeQuantiles: namedQuantiles(quantilesInPlace(relative, fractions)),
  };
}

export interface FinitePairs {
  readonly candidate: FloatArray;
  readonly reference: FloatArray;
  /** Where each pair was, or undefined when all are there. */
  readonly indices: Uint32Array | undefined;
  readonly counts: NonFiniteCounts;
}

type Counters = { -readonly [K in keyof NonFiniteCounts]: number };

export const noneCounted = (): Counters => ({
  nanInCandidate: 0,
  nanInReference: 0,
  infiniteInCandidate: 0,
  infiniteInReference: 0,
  matching: 0,
  mismatching: 0,
});

export function addCounts(total: Counters, counts: NonFiniteCounts): void {
  for (const key of Object.keys(total) as (keyof NonFiniteCounts)[]) total[key] += counts[key];
}

/** Leaves out the pairs that are not finite on both sides, and counts them. The arrays are the given ones when nothing is left out. */
export function finitePairs(candidate: FloatArray, reference: FloatArray): FinitePairs {
  const counts = noneCounted();
  const kept = new Uint32Array(candidate.length);
  let finite = 0;
  for (let i = 0; i < candidate.length; i++) {
    const c = candidate[i]!;
    const r = reference[i]!;
    if (c - c === 0 && r - r === 0) {
      kept[finite++] = i;
      continue;
    }
    if (Number.isNaN(c)) counts.nanInCandidate++;
    else if (!Number.isFinite(c)) counts.infiniteInCandidate++;
    if (Number.isNaN(r)) counts.nanInReference++;
    else if (!Number.isFinite(r)) counts.infiniteInReference++;
    if (Object.is(c, r)) counts.matching++;
    else counts.mismatching++;
  }
  if (finite === candidate.length) return { candidate, reference, indices: undefined, counts };
  const indices = kept.subarray(0, finite);
  return {
    candidate: picked(candidate, indices),
    reference: picked(reference, indices),
    indices,
    counts,
  };
}

function picked(values: FloatArray, indices: Uint32Array): FloatArray {
  const few = formatOf(values).make(indices.length);
  for (let i = 0; i < few.length; i++) few[i] = values[indices[i]!]!;
  return few;
}
