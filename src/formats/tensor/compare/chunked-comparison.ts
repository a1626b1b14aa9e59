import { type FloatPairs, pairFormat } from '../float-reader.js';
import { type Gathered, namedQuantiles } from './comparison-statistics.js';
import type { ErrorHistogram } from './error-histogram.js';
import { ErrorQuantiles } from './error-quantiles.js';
import { sampledKeys, sampleErrors } from './error-sample.js';
import { type PairKernel, pairKernel } from './pair-kernel.js';
import { BLOCK_PAIRS, CHUNK_PAIRS, STEP_PAIRS } from './pair-kernel-layout.js';
import { addPairs, emptySums, type PairSums, type Tolerance } from './pair-sums.js';
import { addCounts, type FinitePairs, finitePairs, noneCounted } from './plain-comparison.js';

/**
 * Gathers everything in one pass over the tensors, a chunk at a time through the vector kernel, in constant memory but for the few values that the
 * quantiles are then chosen from. Sums of float32 are float32 within a block of the kernel and float64 between, so their relative error is some 1e-7; all else
 * is exact.
 * A chunk that is not all finite, and the few pairs that do not fill a vector, go through plain code.
 */
export function gatherInChunks(
  pairs: FloatPairs,
  tolerance: Tolerance,
  fractions: readonly number[],
  histogram?: ErrorHistogram,
): Gathered {
  const { length } = pairs.reference;
  const kernel = pairKernel(pairFormat(pairs));
  const sums = emptySums();
  const nonFinite = noneCounted();
  const sampled = fractions.length === 0 ? 0 : sampleErrors(kernel, pairs);
  const errors = (['absolute', 'relative'] as const).map((which) => ({
    which,
    place: -1,
    quantiles:
      fractions.length === 0
        ? undefined
        : new ErrorQuantiles(kernel, which, sampledKeys(kernel, which, sampled), fractions),
  }));
  histogram?.begin(kernel);
  for (const { start, end } of chunksOf(length)) {
    pairs.candidate.read(start, kernel.candidate.subarray(0, end - start));
    pairs.reference.read(start, kernel.reference.subarray(0, end - start));
    const before = { absolute: sums.absoluteMax, relative: sums.relativeMax };
    const chunk = takeChunk(kernel, end - start, tolerance, sums);
    if (chunk.left !== undefined) addCounts(nonFinite, chunk.left.counts);
    if (chunk.left === undefined) histogram?.take(kernel, chunk.count, start);
    else
      histogram?.show(
        kernel.candidate.subarray(0, end - start),
        kernel.reference.subarray(0, end - start),
        start,
      );
    for (const error of errors) {
      const max = sums[`${error.which}Max`];
      if (chunk.count > 0 && (error.place < 0 || max > before[error.which])) {
        const at = kernel[error.which].indexOf(max);
        error.place = start + (chunk.left?.indices?.[at] ?? at);
      }
      error.quantiles?.take(chunk.count);
    }
  }
  histogram?.end(kernel);
  const [absolute, relative] = errors.map(({ which, place, quantiles }) => ({
    place,
    quantiles: namedQuantiles(quantiles?.values(pairs, sums.count, sums[`${which}Max`]) ?? []),
  }));
  if (absolute === undefined || relative === undefined) throw new Error('Both errors are gathered.');
  return {
    elements: length,
    sums,
    nonFinite,
    absoluteIndex: absolute.place,
    relativeIndex: relative.place,
    absoluteQuantiles: absolute.quantiles,
    relativeQuantiles: relative.quantiles,
  };
}

/** Adds the first `length` pairs in the kernel to the sums and leaves their errors in it: `count` of them. `left` is there when plain code had to choose the finite pairs. */
function takeChunk(
  kernel: PairKernel,
  length: number,
  tolerance: Tolerance,
  sums: PairSums,
): { readonly count: number; readonly left: FinitePairs | undefined } {
  const isWhole = length % STEP_PAIRS === 0;
  if (isWhole && measureChunk(kernel, length, tolerance, sums)) return { count: length, left: undefined };
  const left = finitePairs(kernel.candidate.subarray(0, length), kernel.reference.subarray(0, length));
  addPairs(sums, left.candidate, left.reference, kernel.absolute, kernel.relative, tolerance);
  return { count: left.candidate.length, left };
}

/** Chunks of whole steps, then what is left: fewer pairs than a step. */
function* chunksOf(length: number): Generator<{ readonly start: number; readonly end: number }> {
  const whole = length - (length % STEP_PAIRS);
  for (let start = 0; start < whole; start += CHUNK_PAIRS) {
    yield { start, end: Math.min(whole, start + CHUNK_PAIRS) };
  }
  if (whole < length) yield { start: whole, end: length };
}

/** Measures the first `length` pairs in the kernel; false, with nothing added, when something in it is not finite or its squares are not. */
function measureChunk(kernel: PairKernel, length: number, tolerance: Tolerance, sums: PairSums): boolean {
  const run = (zeros: boolean) => {
    kernel.reset();
    for (let start = 0; start < length; start += BLOCK_PAIRS) {
      const count = Math.min(BLOCK_PAIRS, length - start);
      kernel.measure(start, count, tolerance.absolute, tolerance.relative, zeros);
    }
  };
  run(false);
  if (kernel.minimum('smallestReference') === 0) run(true);
  const total =
    kernel.sum('candidateSquares') + kernel.sum('referenceSquares') + kernel.sum('absoluteSquares');
  if (!Number.isFinite(total) || !Number.isFinite(kernel.sum('relativeSquares'))) return false;
  sums.count += length;
  sums.candidate += kernel.sum('candidate');
  sums.candidateSquares += kernel.sum('candidateSquares');
  sums.candidateMin = Math.min(sums.candidateMin, kernel.minimum('candidateMin'));
  sums.candidateMax = Math.max(sums.candidateMax, kernel.maximum('candidateMax'));
  sums.reference += kernel.sum('reference');
  sums.referenceSquares += kernel.sum('referenceSquares');
  sums.referenceMin = Math.min(sums.referenceMin, kernel.minimum('referenceMin'));
  sums.referenceMax = Math.max(sums.referenceMax, kernel.maximum('referenceMax'));
  sums.absolute += kernel.sum('absolute');
  sums.absoluteSquares += kernel.sum('absoluteSquares');
  sums.absoluteMax = Math.max(sums.absoluteMax, kernel.maximum('absoluteMax'));
  sums.relative += kernel.sum('relative');
  sums.relativeSquares += kernel.sum('relativeSquares');
  sums.relativeMax = Math.max(sums.relativeMax, kernel.maximum('relativeMax'));
  sums.excessMax = Math.max(sums.excessMax, kernel.maximum('excessMax'));
  sums.outside += kernel.outside();
  sums.beyondBoth += kernel.beyondBoth();
  return true;
}
