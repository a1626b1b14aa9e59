import { countExponents, EXPONENTS, type Histogram, histogramOf } from './error-histogram.js';
import { quantilesInPlace } from './order-statistics.js';
import { addPairs, emptySums, type PairSums, type Tolerance } from './pair-sums.js';

/**
 * How far a candidate's floats are from a reference's, with Polygraphy's definitions: absolute error |c - r|, relative error |c - r| / |r|, where a
 * reference of 0 counts as 2^-52; both in float32. Quantiles are exact, linear between neighbours as numpy's. Where Polygraphy lets NaN and infinities
 * spoil every number, here they are counted apart and the statistics are those of the pairs that are finite on both sides.
 */
export interface Comparison {
  readonly elements: number;
  /** Pairs that are finite on both sides: what every statistic is about. Without any, statistics are NaN. */
  readonly finite: number;
  readonly absolute: ErrorStatistics;
  readonly relative: ErrorStatistics;
  readonly candidate: SideStatistics;
  readonly reference: SideStatistics;
  readonly nonFinite: NonFiniteCounts;
  /** Root of the summed squares of the differences. */
  readonly l2: number;
  /** 1 where the two point the same way; NaN when one of them is all zeros. */
  readonly cosineSimilarity: number;
  /** Decibels: power of the reference over power of the error; Infinity when nothing differs. */
  readonly signalToNoise: number;
  /** Decibels: squared span (max - min) of the reference over the mean squared error. */
  readonly peakSignalToNoise: number;
  readonly tolerance: Tolerance;
  /** Largest |c - r| - relative * |r|, at least 0: how large the absolute tolerance would have to be. */
  readonly excess: number;
  /** Elements with |c - r| > absolute + relative * |r|, and non-finite ones that do not match. */
  readonly outside: number;
  /** The same count had the candidate been all zeros: when it is 0, the tolerance tells nothing. */
  readonly outsideIfZeros: number;
  readonly histogram: Histogram;
}

export interface ErrorStatistics extends Quantiles {
  readonly max: number;
  /** Where the maximum is, as an index into the flattened tensor; -1 when there is no finite pair. */
  readonly maxIndex: number;
  readonly mean: number;
  readonly deviation: number;
}

export interface Quantiles {
  readonly median: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
}

export interface SideStatistics {
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly deviation: number;
  readonly meanMagnitude: number;
  readonly median: number;
}

export interface NonFiniteCounts {
  readonly nanInCandidate: number;
  readonly nanInReference: number;
  readonly infiniteInCandidate: number;
  readonly infiniteInReference: number;
  /** Both NaN, or the same infinity. */
  readonly matching: number;
  /** Not finite on at least one side, and not the same. */
  readonly mismatching: number;
}

/** What one look at all pairs gathers; `comparisonOf` turns it into statistics. */
export interface Gathered {
  readonly elements: number;
  readonly sums: PairSums;
  readonly nonFinite: NonFiniteCounts;
  readonly absoluteIndex: number;
  readonly relativeIndex: number;
  readonly absoluteQuantiles: Quantiles;
  readonly relativeQuantiles: Quantiles;
  readonly candidateMedian: number;
  readonly referenceMedian: number;
  readonly exponents: Float64Array;
  readonly zeros: number;
}

/** Compares element by element. Throws RangeError when lengths differ. */
export function compareFloats(
  candidate: Float32Array,
  reference: Float32Array,
  tolerance: Tolerance,
): Comparison {
  if (candidate.length !== reference.length) {
    throw new RangeError(`${candidate.length} elements cannot be compared with ${reference.length}.`);
  }
  return comparisonOf(gatherAtOnce(candidate, reference, tolerance), tolerance);
}

export const quantileFractions = [0.5, 0.9, 0.95, 0.99] as const;

export function namedQuantiles([median, p90, p95, p99]: readonly number[]): Quantiles {
  const number = (value: number | undefined) => value ?? Number.NaN;
  return { median: number(median), p90: number(p90), p95: number(p95), p99: number(p99) };
}

/** The plain way: both errors of every pair in memory. */
function gatherAtOnce(candidate: Float32Array, reference: Float32Array, tolerance: Tolerance): Gathered {
  const pairs = finitePairs(candidate, reference);
  const absolute = new Float32Array(pairs.candidate.length);
  const relative = new Float32Array(pairs.candidate.length);
  const sums = emptySums();
  addPairs(sums, pairs.candidate, pairs.reference, absolute, relative, tolerance);
  const exponents = new Float64Array(EXPONENTS);
  const zeros = countExponents(absolute, exponents);
  const place = (values: Float32Array, value: number) => {
    const index = values.indexOf(value);
    return pairs.indices === undefined ? index : (pairs.indices[index] ?? -1);
  };
  return {
    elements: candidate.length,
    sums,
    nonFinite: pairs.counts,
    absoluteIndex: place(absolute, sums.absoluteMax),
    relativeIndex: place(relative, sums.relativeMax),
    absoluteQuantiles: namedQuantiles(quantilesInPlace(absolute, quantileFractions)),
    relativeQuantiles: namedQuantiles(quantilesInPlace(relative, quantileFractions)),
    candidateMedian: quantilesInPlace(pairs.candidate.slice(), [0.5])[0] ?? Number.NaN,
    referenceMedian: quantilesInPlace(pairs.reference.slice(), [0.5])[0] ?? Number.NaN,
    exponents,
    zeros,
  };
}

export interface FinitePairs {
  readonly candidate: Float32Array;
  readonly reference: Float32Array;
  /** Where each pair was, or undefined when all are there. */
  readonly indices: Uint32Array | undefined;
  readonly counts: NonFiniteCounts;
}

/** Leaves out the pairs that are not finite on both sides, and counts them. The arrays are the given ones when nothing is left out. */
export function finitePairs(candidate: Float32Array, reference: Float32Array): FinitePairs {
  const counts = {
    nanInCandidate: 0,
    nanInReference: 0,
    infiniteInCandidate: 0,
    infiniteInReference: 0,
    matching: 0,
    mismatching: 0,
  };
  const kept: number[] | Uint32Array = new Uint32Array(candidate.length);
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
    candidate: Float32Array.from(indices, (index) => candidate[index]!),
    reference: Float32Array.from(indices, (index) => reference[index]!),
    indices,
    counts,
  };
}

/** The statistics of what was gathered. */
export function comparisonOf(gathered: Gathered, tolerance: Tolerance): Comparison {
  const { sums, nonFinite } = gathered;
  const { count } = sums;
  const spread = (sum: number, squares: number) =>
    Math.sqrt(Math.max(0, squares / count - (sum / count) ** 2));
  const known = (value: number) => (count === 0 ? Number.NaN : value);
  const product = (sums.candidateSquares + sums.referenceSquares - sums.absoluteSquares) / 2;
  return {
    elements: gathered.elements,
    finite: count,
    absolute: {
      max: known(sums.absoluteMax),
      maxIndex: gathered.absoluteIndex,
      mean: sums.absolute / count,
      deviation: spread(sums.absolute, sums.absoluteSquares),
      ...gathered.absoluteQuantiles,
    },
    relative: {
      max: known(sums.relativeMax),
      maxIndex: gathered.relativeIndex,
      mean: sums.relative / count,
      deviation: spread(sums.relative, sums.relativeSquares),
      ...gathered.relativeQuantiles,
    },
    candidate: {
      min: known(sums.candidateMin),
      max: known(sums.candidateMax),
      mean: sums.candidate / count,
      deviation: spread(sums.candidate, sums.candidateSquares),
      meanMagnitude: sums.candidateMagnitudes / count,
      median: gathered.candidateMedian,
    },
    reference: {
      min: known(sums.referenceMin),
      max: known(sums.referenceMax),
      mean: sums.reference / count,
      deviation: spread(sums.reference, sums.referenceSquares),
      meanMagnitude: sums.referenceMagnitudes / count,
      median: gathered.referenceMedian,
    },
    nonFinite,
    l2: Math.sqrt(sums.absoluteSquares),
    // The dot product follows from the law of cosines, which stays exact where the two are nearly the same.
    cosineSimilarity: product / Math.sqrt(sums.candidateSquares * sums.referenceSquares),
    signalToNoise: decibels(sums.referenceSquares, sums.absoluteSquares),
    peakSignalToNoise: decibels((sums.referenceMax - sums.referenceMin) ** 2, sums.absoluteSquares / count),
    tolerance,
    excess: known(Math.max(0, sums.excessMax)),
    outside: sums.outside + nonFinite.mismatching,
    outsideIfZeros: sums.outsideIfZeros + nonFinite.matching + nonFinite.mismatching,
    histogram: histogramOf(gathered.exponents, gathered.zeros, nonFinite.mismatching),
  };
}

const decibels = (signal: number, noise: number): number => 10 * Math.log10(signal / noise);
