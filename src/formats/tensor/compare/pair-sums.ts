import {
  eachPieceOf,
  type FloatArray,
  type FloatFormat,
  type FloatReader,
  float32Format,
  formatOf,
} from '../tensor-reader.js';
import { countKeys, wordsOf } from './error-keys.js';

/** The sums over the pairs of a chunk, in the order in which `measureChunk` writes them; native/src/compare.cpp uses the same order. */
const sumSlots = [
  'count',
  'candidate',
  'candidateSquares',
  'candidateMin',
  'candidateMax',
  'reference',
  'referenceSquares',
  'referenceMin',
  'referenceMax',
  'absolute',
  'absoluteSquares',
  'absoluteMax',
  'relative',
  'relativeSquares',
  'relativeMax',
  /** Largest |c - r| - relative * |r|; all pairs are within the tolerance when it is not above the absolute one. */
  'excessMax',
  /** Pairs with |c - r| > absolute + relative * |r|. */
  'outside',
  /** Pairs with |c - r| > absolute and |c - r| / |r| > relative: what Polygraphy's element-wise check calls a mismatch. */
  'beyondBoth',
  /** Pairs without any error. */
  'zeros',
] as const;

export const SUM_SLOTS = sumSlots.length;
export const ABSOLUTE_MAX = sumSlots.indexOf('absoluteMax');
const ERRORS = sumSlots.indexOf('absolute');

/** Sums (in float64) and extremes of pairs that are finite on both sides. */
export type PairSums = Record<(typeof sumSlots)[number], number>;

/** Sums of no pairs; `addSums` adds those of a chunk. */
export const emptySums = (): PairSums =>
  Object.fromEntries(
    sumSlots.map((slot) => [slot, slot.endsWith('Min') ? Infinity : slot.endsWith('Max') ? -Infinity : 0]),
  ) as PairSums;

/** Adds the sums of a chunk, as `measureChunk` wrote them. */
export function addSums(sums: PairSums, chunk: Float64Array): void {
  for (const [at, slot] of sumSlots.entries()) {
    const value = chunk[at]!;
    if (slot.endsWith('Min')) sums[slot] = Math.min(sums[slot], value);
    else if (slot.endsWith('Max')) sums[slot] = Math.max(sums[slot], value);
    else sums[slot] += value;
  }
}

/** The allowed distance of an element from the reference: |c - r| <= absolute + relative * |r|, numpy.allclose's rule. */
export interface Tolerance {
  readonly absolute: number;
  readonly relative: number;
}

/**
 * Measures a chunk of pairs: writes the absolute error |c - r| and the relative error |c - r| / |r| of each, computed in the format of the arrays as
 * Polygraphy does, and the chunk's sums. Counts the errors by key (a table for each of the two errors, see `keyCount`), unless `keys` has length 0.
 * Returns false, with nothing counted, where a number is not finite.
 */
export type MeasureChunk = (
  candidate: FloatArray,
  reference: FloatArray,
  absolute: FloatArray,
  relative: FloatArray,
  sums: Float64Array,
  absoluteTolerance: number,
  relativeTolerance: number,
  keys: Float64Array,
) => boolean;

/** Stands for a reference of zero in relative errors; Polygraphy's number, 2^-52. */
const ZERO_REFERENCE = 2.220446049250313e-16;

/**
 * The measurement in TypeScript. The addon's differs only in the order of additions, by less than 1e-12 of the sum of the terms' sizes.
 * Two loops over a chunk take a tenth less time than one loop with all sums.
 */
export const measureChunk: MeasureChunk = (
  candidate,
  reference,
  absolute,
  relative,
  sums,
  absoluteTolerance,
  relativeTolerance,
  keys,
) => {
  if (!sumSides(candidate, reference, sums)) return false;
  const { length } = candidate;
  sumErrors(candidate, reference, absolute, relative, sums, absoluteTolerance, relativeTolerance);
  if (keys.length > 0) {
    countKeys(absolute, length, keys, 0);
    countKeys(relative, length, keys, keys.length / 2);
  }
  return true;
};

/** Writes the number of pairs and the sums over each side into the first slots. Returns false, with nothing written, where a number is not finite. */
function sumSides(candidate: FloatArray, reference: FloatArray, sums: Float64Array): boolean {
  const { length } = candidate;
  let ours = 0;
  let oursSquares = 0;
  let oursMin = Number.POSITIVE_INFINITY;
  let oursMax = Number.NEGATIVE_INFINITY;
  let theirs = 0;
  let theirsSquares = 0;
  let theirsMin = Number.POSITIVE_INFINITY;
  let theirsMax = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < length; i++) {
    const c = candidate[i]!;
    const r = reference[i]!;
    if (c - c !== 0 || r - r !== 0) return false;
    ours += c;
    oursSquares += c * c;
    if (c < oursMin) oursMin = c;
    if (c > oursMax) oursMax = c;
    theirs += r;
    theirsSquares += r * r;
    if (r < theirsMin) theirsMin = r;
    if (r > theirsMax) theirsMax = r;
  }
  sums.set([length, ours, oursSquares, oursMin, oursMax, theirs, theirsSquares, theirsMin, theirsMax]);
  return true;
}

/** Writes the absolute and the relative error of each pair of finite numbers, and the sums over them from slot `ERRORS` on. */
function sumErrors(
  candidate: FloatArray,
  reference: FloatArray,
  absolute: FloatArray,
  relative: FloatArray,
  sums: Float64Array,
  absoluteTolerance: number,
  relativeTolerance: number,
): void {
  const { round, bytes } = formatOf(reference);
  // Where both formats have been seen, calling `round` for each element takes three times as long as asking.
  const isNarrow = bytes === 4;
  const allowed = round(absoluteTolerance);
  const slope = round(relativeTolerance);
  const { length } = candidate;
  // One by one: what an array is taken apart into stays boxed, which takes three times as long.
  let errors = 0;
  let errorSquares = 0;
  let errorMax = Number.NEGATIVE_INFINITY;
  let ratios = 0;
  let ratioSquares = 0;
  let ratioMax = Number.NEGATIVE_INFINITY;
  let excessMax = Number.NEGATIVE_INFINITY;
  let outside = 0;
  let beyondBoth = 0;
  let zeros = 0;
  for (let i = 0; i < length; i++) {
    const r = reference[i]!;
    const size = Math.abs(r);
    const difference = Math.abs(candidate[i]! - r);
    const error = isNarrow ? Math.fround(difference) : difference;
    const quotient = error / (size === 0 ? ZERO_REFERENCE : size);
    const ratio = isNarrow ? Math.fround(quotient) : quotient;
    const forgiven = slope * size;
    const excessive = error - (isNarrow ? Math.fround(forgiven) : forgiven);
    const excess = isNarrow ? Math.fround(excessive) : excessive;
    absolute[i] = error;
    relative[i] = ratio;
    errors += error;
    errorSquares += error * error;
    if (error > errorMax) errorMax = error;
    ratios += ratio;
    ratioSquares += ratio * ratio;
    if (ratio > ratioMax) ratioMax = ratio;
    if (excess > excessMax) excessMax = excess;
    if (excess > allowed) outside++;
    if (error > allowed && ratio > slope) beyondBoth++;
    if (error === 0) zeros++;
  }
  const found = [errors, errorSquares, errorMax, ratios, ratioSquares, ratioMax, excessMax];
  sums.set([...found, outside, beyondBoth, zeros], ERRORS);
}

/** A pair of elements that are far apart. */
export interface FarPair {
  /** Into the flattened tensor. */
  readonly index: number;
  readonly candidate: number;
  readonly reference: number;
  /** |candidate - reference|; Infinity where only one of them is a number, or they are different infinities. */
  readonly error: number;
}

/** Keeps the worst few of all pairs it is shown; of equally bad ones the first. */
export class WorstPairs {
  readonly #most: number;
  readonly #pairs: FarPair[] = [];
  /** The error that a pair must exceed to be among them. */
  threshold = 0;

  constructor(most: number) {
    this.#most = most;
    if (most === 0) this.threshold = Number.POSITIVE_INFINITY;
  }

  /** Takes in a pair of numbers that are not the same. */
  show(index: number, candidate: number, reference: number): void {
    const error = Math.abs(candidate - reference);
    // NaN is what numbers and things that are no numbers leave between them.
    this.add({ index, candidate, reference, error: Number.isNaN(error) ? Number.POSITIVE_INFINITY : error });
  }

  add(pair: FarPair): void {
    if (!(pair.error > this.threshold)) return;
    const place = this.#pairs.findIndex(({ error }) => error < pair.error);
    this.#pairs.splice(place < 0 ? this.#pairs.length : place, 0, pair);
    if (this.#pairs.length > this.#most) this.#pairs.pop();
    if (this.#pairs.length === this.#most) this.threshold = this.#pairs.at(-1)?.error ?? 0;
  }

  list(): readonly FarPair[] {
    return this.#pairs;
  }
}

/** The magnitudes of numbers; those that are not finite are left out. */
export interface Magnitudes {
  /** Root mean square; 0 of nothing. */
  readonly rms: number;
  /** The largest size. */
  readonly peak: number;
  /** The smallest number. */
  readonly least: number;
}

/** Numbers times this have squares that a double holds. */
const SHRUNK = 2 ** -600;

/** Looks at every number once, in constant memory. */
export function magnitudesOf(numbers: FloatReader): Magnitudes {
  let [squares, shrunkSquares, peak, count, least] = [0, 0, 0, 0, Number.POSITIVE_INFINITY];
  eachPieceOf(numbers, (values) => {
    // By index: an iterator over a typed array takes five times as long.
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (value - value !== 0) continue;
      const size = Math.abs(value);
      squares += value * value;
      shrunkSquares += (value * SHRUNK) ** 2;
      if (size > peak) peak = size;
      if (value < least) least = value;
      count++;
    }
  });
  const rms =
    squares === Number.POSITIVE_INFINITY
      ? Math.sqrt(shrunkSquares / count) / SHRUNK
      : Math.sqrt(squares / Math.max(1, count));
  return { rms, peak, least };
}

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
