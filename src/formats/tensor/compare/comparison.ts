import type { FloatArray } from '../float-format.js';
import { allFloats, type FloatPairs, floatsOf, pairFormat, SHRUNK, scaledFloats } from '../float-reader.js';
import { gatherInChunks } from './chunked-comparison.js';
import {
  type Comparison,
  comparisonOf,
  fractionsOf,
  type Gathered,
  type QuantileChoice,
} from './comparison-statistics.js';
import type { ErrorHistogram } from './error-histogram.js';
import { LARGE } from './pair-kernel-layout.js';
import type { Tolerance } from './pair-sums.js';
import { gatherAtOnce } from './plain-comparison.js';

export type { Comparison } from './comparison-statistics.js';

/**
 * Compares element by element, at about 300 million pairs of float32 a second on one core (Polygraphy's own comparison: 5 million) and half as many of
 * float64, of which a vector holds half as many. Throws RangeError when lengths differ.
 *
 * Small tensors are compared in plain code. Large ones go once, chunk by chunk, through a vector kernel (WebAssembly with 128-bit vectors, assembled at
 * run time by wasm-assembler.ts, so it needs no compiler and runs on every processor). What was tried for the exact quantiles, the dear part:
 * sorting or quickselect over both error arrays (4 million pairs a second); a histogram of every error's upper 16 bits and a second pass for the rest
 * (two passes cost more than one with brackets); copying the values inside brackets with a shuffle instead of by bit masks (0.3 ns a pair slower);
 * chunks of 8,192 to 65,536 pairs (no difference). Without quantiles it is 2 ns a pair.
 * Copying the tensors from main memory into the kernel's takes 0.6 of the 3.3 ns a pair.
 */
export function compareFloats(
  candidate: FloatArray,
  reference: FloatArray,
  tolerance: Tolerance,
  quantiles: QuantileChoice = 'median-p99',
): Comparison {
  return comparePairs(
    { candidate: floatsOf(candidate), reference: floatsOf(reference) },
    tolerance,
    quantiles,
  );
}

/** The same of numbers that are read piece by piece: memory does not grow with them. A histogram is filled on the way. */
export function comparePairs(
  pairs: FloatPairs,
  tolerance: Tolerance,
  quantiles: QuantileChoice = 'median-p99',
  histogram?: ErrorHistogram,
): Comparison {
  const { candidate, reference } = pairs;
  if (candidate.length !== reference.length) {
    throw new RangeError(`${candidate.length} elements cannot be compared with ${reference.length}.`);
  }
  const gathered = gather(pairs, tolerance, fractionsOf(quantiles), histogram);
  const comparison = comparisonOf(gathered, tolerance);
  const { candidateSquares, referenceSquares } = gathered.sums;
  // Those of the errors are four times as large at most.
  return Number.isFinite(4 * (candidateSquares + referenceSquares))
    ? comparison
    : withSquaresOf(comparison, shrunkComparison(pairs, tolerance));
}

function gather(
  pairs: FloatPairs,
  tolerance: Tolerance,
  fractions: readonly number[],
  histogram: ErrorHistogram | undefined,
): Gathered {
  const { candidate, reference } = pairs;
  if (reference.length >= LARGE) return gatherInChunks(pairs, tolerance, fractions, histogram);
  const format = pairFormat(pairs);
  const [ours, theirs] = [allFloats(candidate, format), allFloats(reference, format)];
  histogram?.show(ours, theirs, 0);
  return gatherAtOnce(ours, theirs, tolerance, fractions);
}

/** Squares of doubles beyond 1e154 are no doubles: the comparison of all numbers made small enough. */
const shrunkComparison = ({ candidate, reference }: FloatPairs, tolerance: Tolerance): Comparison =>
  comparePairs(
    { candidate: scaledFloats(candidate, SHRUNK), reference: scaledFloats(reference, SHRUNK) },
    tolerance,
    'none',
  );

/** A comparison with the statistics that sums and squares make taken from that of the shrunk numbers. */
function withSquaresOf(comparison: Comparison, shrunk: Comparison): Comparison {
  const enlarged = <S extends Comparison['candidate' | 'absolute']>(whole: S, small: S): S => ({
    ...whole,
    mean: small.mean / SHRUNK,
    deviation: small.deviation / SHRUNK,
  });
  return {
    ...comparison,
    absolute: enlarged(comparison.absolute, shrunk.absolute),
    candidate: enlarged(comparison.candidate, shrunk.candidate),
    reference: enlarged(comparison.reference, shrunk.reference),
    l2: shrunk.l2 / SHRUNK,
    cosineSimilarity: shrunk.cosineSimilarity,
    signalToNoise: shrunk.signalToNoise,
    // A signal without a positive maximum counts as 1, which does not shrink.
    peakSignalToNoise: comparison.reference.max > 0 ? shrunk.peakSignalToNoise : comparison.peakSignalToNoise,
  };
}
