/** How many elements have which absolute error, one bin for each power of two. */
export interface Histogram {
  /** From the largest error downwards no further than 2^-40 of it; what is smaller is in the first bin. `from` is included, `to` is not. */
  readonly bins: readonly { readonly from: number; readonly to: number; readonly count: number }[];
  /** Elements without any error. */
  readonly zeros: number;
  /** Elements that are NaN or infinite on one side only, or differ in it. */
  readonly nonFinite: number;
}

/** Counts by float32's exponent field: 0 is zero and subnormal, 254 the largest finite numbers. */
export const EXPONENTS = 256;
const SHOWN_OCTAVES = 40;

/** Adds the exponents of errors (not negative) to `counts`, and returns how many are exactly zero. */
export function countExponents(errors: Float32Array, counts: Float64Array): number {
  const bits = new Int32Array(errors.buffer, errors.byteOffset, errors.length);
  let zeros = 0;
  for (let i = 0; i < bits.length; i++) {
    const pattern = bits[i]!;
    if (pattern === 0) zeros++;
    counts[pattern >>> 23]!++;
  }
  return zeros;
}

/** The histogram of counts by exponent; `zeros` are among those of exponent 0. */
export function histogramOf(counts: Float64Array, zeros: number, nonFinite: number): Histogram {
  const nonZero = Float64Array.from(counts);
  nonZero[0]! -= zeros;
  const top = nonZero.findLastIndex((count) => count > 0);
  if (top < 0) return { bins: [], zeros, nonFinite };
  const bottom = Math.max(
    top - SHOWN_OCTAVES,
    nonZero.findIndex((count) => count > 0),
  );
  const bins = Array.from({ length: top - bottom + 1 }, (_, i) => {
    const exponent = bottom + i;
    const from = i === 0 && exponent === 0 ? 0 : 2 ** (exponent - 127);
    return { from, to: 2 ** (exponent - 126), count: nonZero[exponent] ?? 0 };
  });
  const first = bins[0];
  if (first !== undefined) first.count += nonZero.subarray(0, bottom).reduce((sum, count) => sum + count, 0);
  return { bins, zeros, nonFinite };
}
