import type { PairSums, Tolerance } from './pair-sums.js';

/**
 * Errors of a candidate's floats against a reference's, with Polygraphy's definitions: absolute error |c - r|, relative error |c - r|
 * |r|, where a
 * reference of 0 counts as 2^-52; both in float32, or in float64 where one side holds numbers that float32 rounds. Quantiles of more than
 * 8,192 pairs are up to 0.4 % too large, never too small (see `quantilesOf`). Where Polygraphy lets NaN and infinities spoil every number, here they are counted apart and the statistics are
 * those of the pairs that are finite on both sides.
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
  /** 1 where the two point the same way, and when both are all zeros; 0 when only one of them is. */
  readonly cosineSimilarity: number;
  /** Decibels: power of the reference over power of the error; Infinity when nothing differs, -Infinity without a signal. */
  readonly signalToNoise: number;
  /** Decibels: squared maximum of the reference (1 where it is not positive) over the mean squared error; Infinity when nothing differs. */
  readonly peakSignalToNoise: number;
  readonly tolerance: Tolerance;
  /** Largest |c - r| - relative * |r|, at least 0: how large the absolute tolerance would have to be. */
  readonly excess: number;
  /** Elements with |c - r| > absolute + relative * |r|, and non-finite ones that do not match. */
  readonly outside: number;
  /** Elements with |c - r| > absolute and |c - r| / |r| > relative (Polygraphy's element-wise check), and non-finite ones that do not match. */
  readonly beyondBoth: number;
}

export interface ErrorStatistics extends Quantiles {
  readonly max: number;
  /** Where the maximum is, as an index into the flattened tensor; -1 when there is no finite pair. */
  readonly maxIndex: number;
  readonly mean: number;
  readonly deviation: number;
}

/** Median and 99th percentile, as Polygraphy gives them; the others only when asked for. `asked` is the fraction of the caller's own choice. */
export interface Quantiles {
  readonly median: number;
  readonly p99: number;
  readonly p90: number | null;
  readonly p95: number | null;
  readonly asked: number | null;
}

/** Which quantiles to find; to find any takes half as long again as to find none. Those that were not requested are NaN or null. */
export type QuantileChoice = 'none' | 'median-p99' | 'all' | { readonly fraction: number };

export interface SideStatistics {
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly deviation: number;
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
  /** Of these, where the candidate is not finite and the reference is a number: a NaN of the reference shows nothing. */
  readonly onlyInCandidate: number;
}

/** The data gathered in one pass over all pairs; `comparisonOf` turns it into statistics. */
export interface Gathered {
  readonly elements: number;
  readonly sums: PairSums;
  readonly nonFinite: NonFiniteCounts;
  readonly absoluteIndex: number;
  readonly relativeIndex: number;
  readonly absoluteQuantiles: Quantiles;
  readonly relativeQuantiles: Quantiles;
}

/** The fractions of a choice, in the order that `namedQuantiles` takes the values. */
export function fractionsOf(choice: QuantileChoice): readonly number[] {
  if (choice === 'none') return [];
  if (choice === 'median-p99') return [0.5, 0.99];
  return choice === 'all' ? [0.5, 0.99, 0.9, 0.95] : [0.5, 0.99, choice.fraction];
}

export function namedQuantiles([median, p99, third, p95]: readonly number[]): Quantiles {
  return {
    median: median ?? Number.NaN,
    p99: p99 ?? Number.NaN,
    p90: p95 === undefined ? null : (third ?? null),
    p95: p95 ?? null,
    asked: p95 === undefined ? (third ?? null) : null,
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
    },
    reference: {
      min: known(sums.referenceMin),
      max: known(sums.referenceMax),
      mean: sums.reference / count,
      deviation: spread(sums.reference, sums.referenceSquares),
    },
    nonFinite,
    l2: Math.sqrt(sums.absoluteSquares),
    // The dot product follows from the law of cosines, which stays exact where the two are nearly the same.
    cosineSimilarity: known(cosine(sums, product)),
    signalToNoise: known(decibels(sums.referenceSquares, sums.absoluteSquares)),
    peakSignalToNoise: known(decibels(peakOf(sums) ** 2, sums.absoluteSquares / count)),
    tolerance,
    excess: known(Math.max(0, sums.excessMax)),
    outside: sums.outside + nonFinite.mismatching,
    beyondBoth: sums.beyondBoth + nonFinite.mismatching,
  };
}

const peakOf = ({ referenceMax }: PairSums): number => (referenceMax > 0 ? referenceMax : 1);

function cosine({ candidateSquares, referenceSquares }: PairSums, product: number): number {
  if (candidateSquares === 0 || referenceSquares === 0) return candidateSquares === referenceSquares ? 1 : 0;
  return Math.max(-1, Math.min(1, product / Math.sqrt(candidateSquares) / Math.sqrt(referenceSquares)));
}

const decibels = (signal: number, noise: number): number =>
  noise === 0 ? Number.POSITIVE_INFINITY : 10 * Math.log10(signal / noise);
