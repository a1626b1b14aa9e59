import { type FloatArray, type FloatFormat, float32Format, formatOf, keyFraction } from '../float-format.js';
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

/** Exponents of the wider format: 0 is zero and subnormal, the last but one that of the largest finite numbers, the last infinity. */
const EXPONENTS = 2048;
const SHOWN_OCTAVES = 40;
/** The kernel's counters have 32 bits. */
const MOST_PENDING = 2 ** 31;

/**
 * Counts the absolute errors |c - r| of pairs, in the pairs' format, by their order of magnitude while they are compared, and shows the pairs to `worst`.
 * Pairs that are both NaN or the same infinity count as zeros.
 */
export class ErrorHistogram {
  readonly #worst: WorstPairs;
  readonly #counts = new Float64Array(EXPONENTS);
  #format = float32Format;
  #zeros = 0;
  #nonFinite = 0;
  /** Errors that the kernel has counted and this has not. */
  #pending = 0;

  constructor(worst = new WorstPairs(0)) {
    this.#worst = worst;
  }

  /** Takes in pairs in plain code; `start` is the index of the first. */
  show(candidate: FloatArray, reference: FloatArray, start: number): void {
    const counts = this.#counts;
    const worst = this.#worst;
    const format = formatOf(reference);
    const error = format.make(1);
    const words = new Uint16Array(error.buffer);
    const [top, fraction] = [words.length - 1, keyFraction(format)];
    this.#format = format;
    for (let i = 0; i < candidate.length; i++) {
      const c = candidate[i]!;
      const r = reference[i]!;
      error[0] = Math.abs(c - r);
      if (error[0] === 0) this.#zeros++;
      else if (c - c === 0 && r - r === 0) counts[words[top]! >>> fraction]!++;
      else if (Object.is(c, r)) {
        this.#zeros++;
        continue;
      } else this.#nonFinite++;
      if (error[0]! > worst.threshold || !(error[0]! < Number.POSITIVE_INFINITY)) worst.show(start + i, c, r);
    }
  }

  /** Before the first chunk of a comparison. */
  begin(kernel: PairKernel): void {
    this.#format = kernel.format;
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
    const fraction = keyFraction(kernel.format);
    for (let key = 0; key < keys.length; key++) this.#counts[key >>> fraction]! += keys[key]!;
    this.#pending = 0;
  }

  histogram(): Histogram {
    return { bins: binsOf(this.#format, this.#counts), zeros: this.#zeros, nonFinite: this.#nonFinite };
  }

  /** The key of zero is that of the tiniest errors too. */
  #addZeros(zeros: number): void {
    this.#zeros += zeros;
    this.#counts[0]! -= zeros;
  }

  #showWorst(kernel: PairKernel, count: number, start: number): void {
    const { absolute, candidate, reference } = kernel;
    const worst = this.#worst;
    const next = (from: number) =>
      kernel.stepAbove('absolute', from, count, floatUpTo(kernel.format, worst.threshold));
    for (let step = next(0); step < count; step = next(step + STEP_PAIRS)) {
      for (let i = step; i < step + STEP_PAIRS; i++)
        if (absolute[i]! > worst.threshold) worst.show(start + i, candidate[i]!, reference[i]!);
    }
  }
}

/** The largest number of a format that is not above one that is not negative. */
function floatUpTo({ round }: FloatFormat, limit: number): number {
  if (round(limit) <= limit) return round(limit);
  const above = Float32Array.of(limit);
  new Int32Array(above.buffer)[0]!--;
  return above[0]!;
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
