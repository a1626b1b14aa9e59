import { type FloatArray, type FloatFormat, formatOf } from '../float-format.js';

/** Everything about finite pairs that adds up (or is a maximum), gathered block by block. */
export interface PairSums {
  count: number;
  candidate: number;
  candidateSquares: number;
  candidateMin: number;
  candidateMax: number;
  reference: number;
  referenceSquares: number;
  referenceMin: number;
  referenceMax: number;
  absolute: number;
  absoluteSquares: number;
  absoluteMax: number;
  relative: number;
  relativeSquares: number;
  relativeMax: number;
  /** Largest |c - r| - relative * |r|; all is well when it is not above the absolute tolerance. */
  excessMax: number;
  /** Pairs with |c - r| > absolute + relative * |r|. */
  outside: number;
  /** Pairs with |c - r| > absolute and |c - r| / |r| > relative: what Polygraphy's element-wise check calls a mismatch. */
  beyondBoth: number;
}

/** How far from the reference an element may be: |c - r| <= absolute + relative * |r|, numpy.allclose's rule. */
export interface Tolerance {
  readonly absolute: number;
  readonly relative: number;
}

/** Stands for a reference of zero in relative errors; Polygraphy's number, 2^-52. */
const ZERO_REFERENCE = 2.220446049250313e-16;

/** |c - r| as a format holds it. */
export const absoluteError = ({ round }: FloatFormat, candidate: number, reference: number): number =>
  round(Math.abs(candidate - reference));

/** |c - r| / |r|, each step as a format holds it. */
export const relativeError = (format: FloatFormat, candidate: number, reference: number): number =>
  format.round(
    absoluteError(format, candidate, reference) / (reference === 0 ? ZERO_REFERENCE : Math.abs(reference)),
  );

export const emptySums = (): PairSums => ({
  count: 0,
  candidate: 0,
  candidateSquares: 0,
  candidateMin: Number.POSITIVE_INFINITY,
  candidateMax: Number.NEGATIVE_INFINITY,
  reference: 0,
  referenceSquares: 0,
  referenceMin: Number.POSITIVE_INFINITY,
  referenceMax: Number.NEGATIVE_INFINITY,
  absolute: 0,
  absoluteSquares: 0,
  absoluteMax: 0,
  relative: 0,
  relativeSquares: 0,
  relativeMax: 0,
  excessMax: Number.NEGATIVE_INFINITY,
  outside: 0,
  beyondBoth: 0,
});

/**
 * Adds a block of finite pairs to `sums`, in float64, and writes the absolute and relative error of each, in the format of the arrays (as Polygraphy
 * computes them), into `absolute` and `relative`.
 */
export function addPairs(
  sums: PairSums,
  candidate: FloatArray,
  reference: FloatArray,
  absolute: FloatArray,
  relative: FloatArray,
  tolerance: Tolerance,
): void {
  const format = formatOf(reference);
  const { round } = format;
  // The vector kernel rounds the tolerances too; both paths must judge an element alike.
  const allowed = round(tolerance.absolute);
  const slope = round(tolerance.relative);
  for (let i = 0; i < candidate.length; i++) {
    const c = candidate[i]!;
    const r = reference[i]!;
    const size = Math.abs(r);
    const error = absoluteError(format, c, r);
    const ratio = relativeError(format, c, r);
    const forgiven = round(slope * size);
    const excess = round(error - forgiven);
    absolute[i] = error;
    relative[i] = ratio;
    sums.candidate += c;
    sums.candidateSquares += c * c;
    sums.candidateMin = Math.min(sums.candidateMin, c);
    sums.candidateMax = Math.max(sums.candidateMax, c);
    sums.reference += r;
    sums.referenceSquares += r * r;
    sums.referenceMin = Math.min(sums.referenceMin, r);
    sums.referenceMax = Math.max(sums.referenceMax, r);
    sums.absolute += error;
    sums.absoluteSquares += error * error;
    sums.absoluteMax = Math.max(sums.absoluteMax, error);
    sums.relative += ratio;
    sums.relativeSquares += ratio * ratio;
    sums.relativeMax = Math.max(sums.relativeMax, ratio);
    sums.excessMax = Math.max(sums.excessMax, excess);
    if (excess > allowed) sums.outside++;
    if (error > allowed && ratio > slope) sums.beyondBoth++;
  }
  sums.count += candidate.length;
}
