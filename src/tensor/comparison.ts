import { gatherInChunks } from './chunked-comparison.js';
import { type Comparison, comparisonOf, fractionsOf, type QuantileChoice } from './comparison-statistics.js';
import type { ErrorHistogram } from './error-histogram.js';
import { allFloats, type FloatPairs, floatsOf } from './float-reader.js';
import { LARGE } from './pair-kernel-layout.js';
import type { Tolerance } from './pair-sums.js';
import { gatherAtOnce } from './plain-comparison.js';

export type { Comparison } from './comparison-statistics.js';

/**
 * Compares element by element, at about 300 million pairs a second on one core (Polygraphy's own comparison: 5 million). Throws RangeError when lengths differ.
 *
 * Small tensors are compared in plain code. Large ones go once, chunk by chunk, through a vector kernel (WebAssembly with 128-bit vectors, assembled at
 * run time by wasm-assembler.ts, so it needs no compiler and runs on every processor). What was tried for the exact quantiles, the dear part:
 * sorting or quickselect over both error arrays (4 million pairs a second); a histogram of every error's upper 16 bits and a second pass for the rest
 * (two passes cost more than one with brackets); copying the values inside brackets with a shuffle instead of by bit masks (0.3 ns a pair slower);
 * chunks of 8,192 to 65,536 pairs (no difference). Without quantiles it is 2 ns a pair.
 * Copying the tensors from main memory into the kernel's takes 0.6 of the 3.3 ns a pair.
 */
export function compareFloats(
  candidate: Float32Array,
  reference: Float32Array,
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
  const fractions = fractionsOf(quantiles);
  if (reference.length >= LARGE)
    return comparisonOf(gatherInChunks(pairs, tolerance, fractions, histogram), tolerance);
  const [ours, theirs] = [allFloats(candidate), allFloats(reference)];
  histogram?.show(ours, theirs, 0);
  return comparisonOf(gatherAtOnce(ours, theirs, tolerance, fractions), tolerance);
}
