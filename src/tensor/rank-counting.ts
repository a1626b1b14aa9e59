import { eachPiece, type FloatPairs } from './float-reader.js';
import type { KernelArray } from './pair-kernel.js';
import { absoluteError, relativeError } from './pair-sums.js';

const HALF = 1 << 16;

/**
 * The errors of the given ranks among all finite pairs, by counting bit patterns: the upper half of each error in one pass, and in a second the lower half
 * of those errors whose upper half is wanted. Exact whatever the errors are, in constant memory.
 */
export function ranksByCounting(
  which: KernelArray,
  pairs: FloatPairs,
  ranks: readonly number[],
): ReadonlyMap<number, number> {
  const upper = new Float64Array(HALF);
  forEachError(which, pairs, (pattern) => {
    upper[pattern >>> 16]!++;
  });
  const places = ranks.map((rank) => ({ rank, ...placeOf(rank, upper) }));
  const lower = new Map(places.map(({ half }) => [half, new Float64Array(HALF)] as const));
  const lowerOf = Array.from({ length: HALF }, (_, half) => lower.get(half));
  forEachError(which, pairs, (pattern) => {
    const counts = lowerOf[pattern >>> 16];
    if (counts !== undefined) counts[pattern & 0xffff]!++;
  });
  const bits = new Uint32Array(1);
  const value = new Float32Array(bits.buffer);
  return new Map(
    places.map(({ rank, half, within }) => {
      bits[0] = half * HALF + placeOf(within, lower.get(half) ?? upper).half;
      return [rank, value[0]!];
    }),
  );
}

/** The half pattern that the element of a rank has, and its rank among those that have it. */
function placeOf(rank: number, counts: Float64Array): { readonly half: number; readonly within: number } {
  for (let half = 0; half < HALF; half++) {
    const here = counts[half]!;
    if (rank < here) return { half, within: rank };
    rank -= here;
  }
  return { half: HALF - 1, within: 0 };
}

function forEachError(which: KernelArray, pairs: FloatPairs, take: (pattern: number) => void): void {
  const error = new Float32Array(1);
  const bits = new Int32Array(error.buffer);
  const errorOf = which === 'absolute' ? absoluteError : relativeError;
  eachPiece(pairs, (candidate, reference) => {
    for (let i = 0; i < candidate.length; i++) {
      const c = candidate[i]!;
      const r = reference[i]!;
      if (c - c !== 0 || r - r !== 0) continue;
      error[0] = errorOf(c, r);
      take(bits[0]!);
    }
  });
}
