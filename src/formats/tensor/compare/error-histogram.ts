import { type FloatArray, type FloatFormat, float32Format, formatOf } from '../half-floats.js';
import { wordsOf } from './error-keys.js';
import { WorstPairs } from './pair-sums.js';

/** Number of elements by absolute error, one bin for each power of two. */
export interface Histogram {
  /** From the largest error downwards no further than 2^-40 of it; what is smaller is in the first bin. `from` is included, `to` is not. */
  readonly bins: { from: number; to: number; count: number }[];
  /** Elements without any error. */
  readonly zeros: number;
  /** Elements that are NaN or infinite on one side only, or differ in it. */
  readonly nonFinite: number;
}

const SHOWN_OCTAVES = 40;

/**
 * Counts the absolute errors |c - r| of pairs, in the pairs' format, by their order of magnitude while they are compared, and shows the pairs to `worst`.
 * Pairs that are both NaN or the same infinity count as zeros.
 */
export class ErrorHistogram {
  readonly #worst: WorstPairs;
  #format = float32Format;
  /** Errors by their exponent: 0 is subnormal, zeros among them until `finish`; the last is infinity. */
  #octaves = new Float64Array(0);
  #zeros = 0;
  #nonFinite = 0;

  constructor(worst = new WorstPairs(0)) {
    this.#worst = worst;
  }

  /** After the last chunk: how many of the errors are zero, and how many pairs are not finite but the same, or not the same. */
  finish(
    zeros: number,
    { matching, mismatching }: { readonly matching: number; readonly mismatching: number },
  ): void {
    this.#octaves[0]! -= zeros;
    this.#zeros = zeros + matching;
    this.#nonFinite = mismatching;
  }

  /** Counts the errors of a chunk's finite pairs, of which the largest is `largest`, and shows its pairs to `worst`; pairs without an error here are not finite. */
  add(
    candidate: FloatArray,
    reference: FloatArray,
    start: number,
    errors: FloatArray,
    largest: number,
  ): void {
    this.#count(errors);
    const worst = this.#worst;
    if (errors.length === candidate.length && !(largest > worst.threshold)) return;
    const { round } = this.#format;
    for (let i = 0; i < candidate.length; i++) {
      const c = candidate[i]!;
      const r = reference[i]!;
      const error = round(Math.abs(c - r));
      if (error > worst.threshold || (Number.isNaN(error) && !Object.is(c, r))) worst.show(start + i, c, r);
    }
  }

  #count(errors: FloatArray): void {
    const { exponentBits, bytes } = formatOf(errors);
    if (this.#octaves.length === 0) {
      this.#format = formatOf(errors);
      this.#octaves = new Float64Array(1 << exponentBits);
    }
    const octaves = this.#octaves;
    const words = wordsOf(errors);
    const stride = bytes / 4;
    const dropped = 31 - exponentBits;
    for (let top = stride - 1; top < words.length; top += stride) octaves[words[top]! >> dropped]!++;
  }

  histogram(): Histogram {
    return { bins: binsOf(this.#format, this.#octaves), zeros: this.#zeros, nonFinite: this.#nonFinite };
  }
}

/** One bin an octave from the smallest error shown to the largest; what is smaller than shown joins the first. */
function binsOf({ bias }: FloatFormat, counts: Float64Array): Histogram['bins'] {
  const top = counts.findLastIndex((count) => count > 0);
  if (top < 0) return [];
  const smallest = counts.findIndex((count) => count > 0);
  const bottom = Math.max(top - SHOWN_OCTAVES, smallest);
  return Array.from({ length: top - bottom + 1 }, (_, i) => {
    const exponent = bottom + i;
    const below = i === 0 ? counts.subarray(0, bottom).reduce((sum, count) => sum + count, 0) : 0;
    const from = exponent === 0 ? 0 : powerOf(exponent - bias);
    return { from, to: powerOf(exponent + 1 - bias), count: counts[exponent]! + below };
  });
}

/** The largest errors of float64 have no power of two above them. */
const powerOf = (exponent: number): number => Math.min(Number.MAX_VALUE, 2 ** exponent);
