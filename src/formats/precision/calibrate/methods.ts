import { TrtforgeError } from '../../../errors.js';
import { magnitudesOf, type QuantizedDtype } from './grid.js';
import type { Histogram } from './histogram.js';
import type { CalibrationMethod } from './ranges.js';

/** Levels of INT8 on one side of zero: what entropy compares a range with, and the first range that it and MSE consider. */
const LEVELS = 128;

/** Share of the values, in percent, within the range where a percentile is requested without one; pytorch-quantization's default. */
const DEFAULT_PERCENTILE = 99.99;

/** The upper edge of the last bin that has values: the largest magnitude, to the width of a bin. */
function largestOf({ width, counts }: Histogram): number {
  let used = counts.length;
  while (used > 1 && counts[used - 1] === 0) used--;
  return used * width;
}

/**
 * The lower edge of the bin in which `percentile` percent of the values are reached (pytorch-quantization, ONNX Runtime), one width at least: where most
 * values are 0 it would be 0. 0 for a tensor of zeros.
 */
export function percentileAmax({ width, counts }: Histogram, percentile = DEFAULT_PERCENTILE): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  let seen = 0;
  for (const [bin, count] of counts.entries()) {
    seen += count;
    if (seen / total >= percentile / 100) return Math.max(1, bin) * width;
  }
  return largestOf({ width, counts });
}

/**
 * The range whose distribution, in 128 levels, differs least from the tensor's by Kullback and Leibler's divergence: the rule of TensorRT's
 * EntropyCalibrator as pytorch-quantization's `_compute_amax_entropy` states it (the first bin counts as the second; candidates from 128 bins to all;
 * what lies beyond a candidate counts in its last bin; the mean of a level goes to its bins that have values; the last of equal minima). A candidate
 * takes the 128 levels, not its bins: sums over bins come from running sums.
 */
export function entropyAmax(histogram: Histogram): number {
  const { width } = histogram;
  const counts = Float64Array.from(histogram.counts);
  counts[0] = counts[1] ?? 0;
  const total = counts.reduce((sum, count) => sum + count, 0);
  // Nothing but values in the first bin.
  if (total === 0) return largestOf(histogram);
  const below = runningSums(counts, (count) => count);
  const filled = runningSums(counts, (count) => (count > 0 ? 1 : 0));
  const logs = runningSums(counts, (count) => (count > 0 ? count * Math.log(count) : 0));
  let [best, least] = [counts.length, Number.POSITIVE_INFINITY];
  for (let bins = Math.min(LEVELS, counts.length); bins <= counts.length; bins++) {
    const last = counts[bins - 1]!;
    const tail = total - below[bins]!;
    // The tail falls on a bin that the levels have nothing for: infinitely different.
    if (last === 0 && tail > 0) continue;
    // Sum of p log(p / q) over bins, p without and q with their totals divided out at the end.
    let sum = logs[bins]! - xlogx(last) + xlogx(last + tail);
    for (let level = 0, from = 0; level < LEVELS; level++) {
      const to = Math.ceil(((level + 1) * bins) / LEVELS);
      const inLevel = below[to]! - below[from]!;
      if (inLevel > 0) {
        const mean = inLevel / (filled[to]! - filled[from]!);
        const counted = to === bins ? inLevel + tail : inLevel;
        sum -= counted * Math.log(mean);
      }
      from = to;
    }
    const divergence = sum / total - Math.log(total) + Math.log(below[bins]!);
    if (divergence <= least) [best, least] = [bins, divergence];
  }
  return best * width;
}

const xlogx = (value: number): number => (value > 0 ? value * Math.log(value) : 0);

/**
 * The range with the smallest mean squared error of the magnitudes rounded to a type (pytorch-quantization's `_compute_amax_mse`: candidates are the
 * centres of bins from the 128th on, values are those centres, the first of equal minima). Sums over a rounding interval come from running sums.
 */
export function mseAmax(histogram: Histogram, dtype: QuantizedDtype = 'int8'): number {
  const { width, counts } = histogram;
  const magnitudes = magnitudesOf(dtype);
  const sums = momentsOf(counts);
  let [best, least] = [0, Number.POSITIVE_INFINITY];
  for (let bin = Math.min(LEVELS, counts.length - 1); bin < counts.length; bin++) {
    const error = errorOf(sums, magnitudes, bin + 0.5);
    if (error < least) [best, least] = [bin + 0.5, error];
  }
  return best * width;
}

/**
 * Mean squared error of a tensor's values when `amax` is the largest magnitude of the type: how well a range suits the data, by its histogram. In units
 * of the values squared; 0 for a tensor of zeros.
 */
export function quantizationMse(
  { width, counts }: Histogram,
  amax: number,
  dtype: QuantizedDtype = 'int8',
): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (width === 0 || total === 0) return 0;
  return (errorOf(momentsOf(counts), magnitudesOf(dtype), amax / width) * width * width) / total;
}

/** Running sums of counts times 1, centre and centre squared, in units of the width. */
interface Moments {
  readonly counts: Float64Array;
  readonly first: Float64Array;
  readonly second: Float64Array;
}

const momentsOf = (counts: Float64Array): Moments => ({
  counts: runningSums(counts, (count) => count),
  first: runningSums(counts, (count, bin) => count * (bin + 0.5)),
  second: runningSums(counts, (count, bin) => count * (bin + 0.5) ** 2),
});

/** Sum of squared errors of the centres rounded to the nearest of `magnitudes` times `amax`; `amax` and the result in units of the width. */
function errorOf({ counts, first, second }: Moments, magnitudes: Float64Array, amax: number): number {
  const bins = counts.length - 1;
  let sum = 0;
  for (let code = 0, from = 0; code < magnitudes.length && from < bins; code++) {
    const value = magnitudes[code]! * amax;
    const next = magnitudes[code + 1];
    // Centres below the middle between this value and the next one round to it.
    const middle = next === undefined ? bins : ((magnitudes[code]! + next) / 2) * amax;
    const to = Math.min(bins, Math.max(from, Math.ceil(middle - 0.5)));
    sum +=
      second[to]! -
      second[from]! -
      2 * value * (first[to]! - first[from]!) +
      value * value * (counts[to]! - counts[from]!);
    from = to;
  }
  return sum;
}

/** `sums[i]` is the sum over the first i bins. */
function runningSums(counts: Float64Array, term: (count: number, bin: number) => number): Float64Array {
  const sums = new Float64Array(counts.length + 1);
  for (let bin = 0; bin < counts.length; bin++) sums[bin + 1] = sums[bin]! + term(counts[bin]!, bin);
  return sums;
}

/** A method with what it needs. */
export type ChosenMethod =
  | { readonly name: Exclude<CalibrationMethod, 'percentile'> }
  | { readonly name: 'percentile'; readonly percentile: number };

/** The methods, with what each does, for help. */
export const calibrationMethods: Readonly<Record<CalibrationMethod, string>> = {
  max: 'the largest magnitude',
  percentile: `the magnitude that ${DEFAULT_PERCENTILE} % of the values are within, or percentile:99.9`,
  entropy: "TensorRT's entropy calibration",
  mse: 'the least mean squared error',
};

/** The closest to FP32 on trained and random models, or within 0.8 dB of it: docs/precision.md. */
export const DEFAULT_METHOD: CalibrationMethod = 'mse';

/** Reads `max`, `percentile`, `percentile:99.9`, `entropy` or `mse`. Throws TF_USAGE. */
export function parseMethod(text: string): ChosenMethod {
  const [name = '', share, ...more] = text.split(':');
  const percentile =
    share === undefined ? DEFAULT_PERCENTILE : share.trim() === '' ? Number.NaN : Number(share);
  if (more.length === 0 && Object.hasOwn(calibrationMethods, name)) {
    const known = name as CalibrationMethod;
    if (known === 'percentile' && percentile > 50 && percentile <= 100) return { name: known, percentile };
    if (known !== 'percentile' && share === undefined) return { name: known };
  }
  throw new TrtforgeError('TF_USAGE', `"${text}" is not a calibration method.`, {
    remedy: `Use ${Object.keys(calibrationMethods).join(', ')} or percentile:P with P from 50 to 100.`,
  });
}

/** The method as `parseMethod` reads it, with its default filled in; part of identities. */
export const methodText = (method: ChosenMethod): string =>
  method.name === 'percentile' ? `percentile:${method.percentile}` : method.name;
