import type { PairKernel } from './pair-kernel.js';
import { STEP_PAIRS } from './pair-kernel-layout.js';
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

/** Keys of the kernel are the upper 16 bits of a float32: 128 to an exponent. */
const KEY_BITS = 7;
/** The kernel's counters have 32 bits. */
const MOST_PENDING = 2 ** 31;

/**
 * Counts the absolute errors |c - r| (float32) of pairs by their order of magnitude while they are compared, and shows the pairs to `worst`. Pairs that
 * are both NaN or the same infinity count as zeros.
 */
export class ErrorHistogram {
  readonly #worst: WorstPairs;
  readonly #counts = new Float64Array(EXPONENTS);
  #zeros = 0;
  #nonFinite = 0;
  /** Errors that the kernel has counted and this has not. */
  #pending = 0;

  constructor(worst = new WorstPairs(0)) {
    this.#worst = worst;
  }

  /** Takes in pairs in plain code; `start` is the index of the first. */
  show(candidate: Float32Array, reference: Float32Array, start: number): void {
    const counts = this.#counts;
    const worst = this.#worst;
    for (let i = 0; i < candidate.length; i++) {
      const c = candidate[i]!;
      const r = reference[i]!;
      error[0] = Math.abs(c - r);
      const pattern = errorBits[0]!;
      if (pattern === 0) this.#zeros++;
      else if (c - c === 0 && r - r === 0) counts[pattern >>> 23]!++;
      else if (Object.is(c, r)) {
        this.#zeros++;
        continue;
      } else this.#nonFinite++;
      if (error[0]! > worst.threshold || pattern >= INFINITE) worst.show(start + i, c, r);
    }
  }

  /** Before the first chunk of a comparison. */
  begin(kernel: PairKernel): void {
    kernel.clearKeys();
  }

  /** Takes in the first `count` pairs of the kernel, all finite, whose errors it has measured. */
  take(kernel: PairKernel, count: number, start: number): void {
    const max = kernel.maximum('absoluteMax');
    if (max === 0) {
      this.#zeros += count;
      return;
    }
    const tiny = kernel.addKeys('absolute', count);
    this.#pending += count;
    if (tiny > 0) this.#addZeros(kernel.countZeros('absolute', count));
    if (max > this.#worst.threshold) this.#showWorst(kernel, count, start);
    if (this.#pending >= MOST_PENDING) this.end(kernel);
  }

  /** After the last chunk. */
  end(kernel: PairKernel): void {
    const keys = kernel.clearKeys();
    for (let key = 0; key < keys.length; key++) this.#counts[key >>> KEY_BITS]! += keys[key]!;
    this.#pending = 0;
  }

  histogram(): Histogram {
    return { bins: binsOf(this.#counts), zeros: this.#zeros, nonFinite: this.#nonFinite };
  }

  /** The key of zero is that of the tiniest errors too. */
  #addZeros(zeros: number): void {
    this.#zeros += zeros;
    this.#counts[0]! -= zeros;
  }

  #showWorst(kernel: PairKernel, count: number, start: number): void {
    const { absolute, candidate, reference } = kernel;
    const worst = this.#worst;
    const next = (from: number) => kernel.stepAbove('absolute', from, count, floatUpTo(worst.threshold));
    for (let step = next(0); step < count; step = next(step + STEP_PAIRS)) {
      for (let i = step; i < step + STEP_PAIRS; i++)
        if (absolute[i]! > worst.threshold) worst.show(start + i, candidate[i]!, reference[i]!);
    }
  }
}

const error = new Float32Array(1);
const errorBits = new Int32Array(error.buffer);

/** The largest float32 that is not above a number that is not negative. */
function floatUpTo(limit: number): number {
  error[0] = limit;
  if (error[0] > limit) errorBits[0]!--;
  return error[0];
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
