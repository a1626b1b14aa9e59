import {
  type Gathered,
  type NonFiniteCounts,
  namedQuantiles,
  quantileFractions,
} from './comparison-statistics.js';
import { ErrorQuantiles } from './error-quantiles.js';
import { sampleErrors } from './error-sample.js';
import { BLOCK_PAIRS, CHUNK_PAIRS, type PairKernel, pairKernel, STEP_PAIRS } from './pair-kernel.js';
import {
  absoluteError,
  addPairs,
  emptySums,
  type PairSums,
  relativeError,
  type Tolerance,
} from './pair-sums.js';
import { finitePairs } from './plain-comparison.js';

/**
 * Gathers everything in one pass over the tensors, a chunk at a time through the vector kernel, in constant memory but for the few values that the
 * quantiles are then chosen from. Sums are float32 within 1024 pairs and float64 between, so their relative error is some 1e-7; all else is exact.
 * A chunk that is not all finite, and the last one, go through plain code.
 */
export function gatherInChunks(
  candidate: Float32Array,
  reference: Float32Array,
  tolerance: Tolerance,
): Gathered {
  const kernel = pairKernel();
  const sums = emptySums();
  const nonFinite: { -readonly [K in keyof NonFiniteCounts]: number } = {
    nanInCandidate: 0,
    nanInReference: 0,
    infiniteInCandidate: 0,
    infiniteInReference: 0,
    matching: 0,
    mismatching: 0,
  };
  const sample = sampleErrors(candidate, reference);
  const quantiles = {
    absolute: new ErrorQuantiles('absolute', sample.absolute, candidate.length, quantileFractions),
    relative: new ErrorQuantiles('relative', sample.relative, candidate.length, quantileFractions),
  };
  const places = { absolute: -1, relative: -1 };
  for (let start = 0; start < candidate.length; start += CHUNK_PAIRS) {
    const c = candidate.subarray(start, start + CHUNK_PAIRS);
    const r = reference.subarray(start, start + CHUNK_PAIRS);
    const before = { absolute: sums.absoluteMax, relative: sums.relativeMax };
    const isWhole = c.length % STEP_PAIRS === 0;
    let count = c.length;
    if (!isWhole || !measureChunk(kernel, c, r, tolerance, sums)) {
      const pairs = finitePairs(c, r);
      for (const key of Object.keys(nonFinite) as (keyof NonFiniteCounts)[])
        nonFinite[key] += pairs.counts[key];
      count = pairs.candidate.length;
      addPairs(sums, pairs.candidate, pairs.reference, kernel.absolute, kernel.relative, tolerance);
    }
    if (sums.absoluteMax > before.absolute || places.absolute < 0) places.absolute = start;
    if (sums.relativeMax > before.relative || places.relative < 0) places.relative = start;
    quantiles.absolute.take(kernel, count);
    quantiles.relative.take(kernel, count);
  }
  const all = { candidate, reference };
  return {
    elements: candidate.length,
    sums,
    nonFinite,
    absoluteIndex: placeOf('absolute', sums.absoluteMax, all, places.absolute),
    relativeIndex: placeOf('relative', sums.relativeMax, all, places.relative),
    absoluteQuantiles: namedQuantiles(quantiles.absolute.values(all, sums.count, sums.absoluteMax)),
    relativeQuantiles: namedQuantiles(quantiles.relative.values(all, sums.count, sums.relativeMax)),
  };
}

/** The first element of the chunk at `start` that has this error; -1 when there was no finite pair. */
function placeOf(
  which: 'absolute' | 'relative',
  error: number,
  { candidate, reference }: { readonly candidate: Float32Array; readonly reference: Float32Array },
  start: number,
): number {
  const end = Math.min(candidate.length, start + CHUNK_PAIRS);
  for (let i = Math.max(0, start); i < end; i++) {
    const c = candidate[i]!;
    const r = reference[i]!;
    const isFinitePair = c - c === 0 && r - r === 0;
    if (isFinitePair && (which === 'absolute' ? absoluteError(c, r) : relativeError(c, r)) === error)
      return i;
  }
  return -1;
}

/** Measures a chunk in the kernel; false, with nothing added, when something in it is not finite or its squares are not. */
function measureChunk(
  kernel: PairKernel,
  candidate: Float32Array,
  reference: Float32Array,
  tolerance: Tolerance,
  sums: PairSums,
): boolean {
  kernel.candidate.set(candidate);
  kernel.reference.set(reference);
  const run = (zeros: boolean) => {
    kernel.reset();
    for (let start = 0; start < candidate.length; start += BLOCK_PAIRS) {
      const count = Math.min(BLOCK_PAIRS, candidate.length - start);
      kernel.measure(start, count, tolerance.absolute, tolerance.relative, zeros);
    }
  };
  run(false);
  if (kernel.minimum('smallestReference') === 0) run(true);
  const total =
    kernel.sum('candidateSquares') + kernel.sum('referenceSquares') + kernel.sum('absoluteSquares');
  if (!Number.isFinite(total) || !Number.isFinite(kernel.sum('relativeSquares'))) return false;
  sums.count += candidate.length;
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
  return true;
}
