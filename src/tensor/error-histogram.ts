import { eachPiece, type FloatPairs } from './float-reader.js';
import { WorstPairs } from './worst-pairs.js';

/** How many elements have which absolute error, one bin for each power of two. */
export interface Histogram {
  /** From the largest error downwards no further than 2^-40 of it; what is smaller is in the first bin. `from` is included, `to` is not. */
  readonly bins: { from: number; to: number; count: number }[];
  /** Elements without any error. */
  readonly zeros: number;
  /** Elements that are NaN or infinite on one side only, or differ in it. */
  readonly nonFinite: number;
}

/** float32's exponent field: 0 is zero and subnormal, 254 the largest finite numbers, 255 infinity and NaN. */
const EXPONENTS = 256;
const SHOWN_OCTAVES = 40;
/** The pattern of infinity; those of NaN are above it. */
const INFINITE = 0x7f800000;

/** Counts the absolute errors |c - r| (float32) of all pairs by their order of magnitude, and shows the pairs to `worst` on the way. Pairs that are both NaN or the same infinity count as zeros. */
export function errorHistogram(pairs: FloatPairs, worst = new WorstPairs(0)): Histogram {
  const counts = new Float64Array(EXPONENTS);
  const error = new Float32Array(1);
  const bits = new Int32Array(error.buffer);
  let zeros = 0;
  let nonFinite = 0;
  eachPiece(pairs, (candidate, reference, start) => {
    for (let i = 0; i < candidate.length; i++) {
      const c = candidate[i]!;
      const r = reference[i]!;
      error[0] = Math.abs(c - r);
      const pattern = bits[0]!;
      if (pattern === 0) zeros++;
      else if (c - c === 0 && r - r === 0) counts[pattern >>> 23]!++;
      else if (Object.is(c, r)) {
        zeros++;
        continue;
      } else nonFinite++;
      if (error[0]! > worst.threshold || pattern >= INFINITE) worst.show(start + i, c, r);
    }
  });
  return { bins: binsOf(counts), zeros, nonFinite };
}

/** One bin an octave from the smallest error shown to the largest; what is smaller than shown joins the first. */
function binsOf(counts: Float64Array): Histogram['bins'] {
  const top = counts.findLastIndex((count) => count > 0);
  if (top < 0) return [];
  const smallest = counts.findIndex((count) => count > 0);
  const bottom = Math.max(top - SHOWN_OCTAVES, smallest);
  return Array.from({ length: top - bottom + 1 }, (_, i) => {
    const exponent = bottom + i;
    const below = i === 0 ? counts.subarray(0, bottom).reduce((sum, count) => sum + count, 0) : 0;
    const from = exponent === 0 ? 0 : 2 ** (exponent - 127);
    return { from, to: 2 ** (exponent - 126), count: counts[exponent]! + below };
  });
}
