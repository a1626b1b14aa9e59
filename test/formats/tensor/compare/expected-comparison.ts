import { expect } from 'vitest';
import { comparePairs } from '../../../../src/formats/tensor/compare/comparison.js';
import {
  type Comparison,
  comparisonOf,
  fractionsOf,
  namedQuantiles,
  type QuantileChoice,
} from '../../../../src/formats/tensor/compare/comparison-statistics.js';
import {
  emptySums,
  type MeasureChunk,
  type Tolerance,
} from '../../../../src/formats/tensor/compare/pair-sums.js';
import { type FloatArray, floatsOf, formatOf } from '../../../../src/formats/tensor/tensor-reader.js';

export const compareFloats = (
  candidate: FloatArray,
  reference: FloatArray,
  tolerance: Tolerance,
  quantiles?: QuantileChoice,
  measure?: MeasureChunk,
): Comparison =>
  comparePairs(
    { candidate: floatsOf(candidate), reference: floatsOf(reference) },
    tolerance,
    quantiles,
    undefined,
    measure,
  );

/** A comparison by the definitions, pair by pair, with the quantiles of the sorted errors. */
export function expectedComparison(
  candidate: FloatArray,
  reference: FloatArray,
  tolerance: Tolerance,
): Comparison {
  const { round } = formatOf(reference);
  const [allowed, slope] = [round(tolerance.absolute), round(tolerance.relative)];
  const sums = emptySums();
  const nonFinite = {
    nanInCandidate: 0,
    nanInReference: 0,
    infiniteInCandidate: 0,
    infiniteInReference: 0,
    matching: 0,
    mismatching: 0,
    onlyInCandidate: 0,
  };
  const [absolute, relative]: [number[], number[]] = [[], []];
  let [absoluteIndex, relativeIndex] = [-1, -1];
  for (let i = 0; i < candidate.length; i++) {
    const [c, r] = [candidate[i]!, reference[i]!];
    if (!Number.isFinite(c) || !Number.isFinite(r)) {
      if (Number.isNaN(c)) nonFinite.nanInCandidate++;
      else if (!Number.isFinite(c)) nonFinite.infiniteInCandidate++;
      if (Number.isNaN(r)) nonFinite.nanInReference++;
      else if (!Number.isFinite(r)) nonFinite.infiniteInReference++;
      nonFinite[Object.is(c, r) ? 'matching' : 'mismatching']++;
      if (!Number.isFinite(c) && !Number.isNaN(r) && !Object.is(c, r)) nonFinite.onlyInCandidate++;
      continue;
    }
    const error = round(Math.abs(c - r));
    const ratio = round(error / (r === 0 ? 2 ** -52 : Math.abs(r)));
    const excess = round(error - round(slope * Math.abs(r)));
    if (error > sums.absoluteMax) absoluteIndex = i;
    if (ratio > sums.relativeMax) relativeIndex = i;
    absolute.push(error);
    relative.push(ratio);
    const add = (side: 'candidate' | 'reference' | 'absolute' | 'relative', value: number) => {
      sums[side] += value;
      sums[`${side}Squares`] += value * value;
      sums[`${side}Max`] = Math.max(sums[`${side}Max`], value);
      if (side === 'candidate' || side === 'reference')
        sums[`${side}Min`] = Math.min(sums[`${side}Min`], value);
    };
    add('candidate', c);
    add('reference', r);
    add('absolute', error);
    add('relative', ratio);
    sums.excessMax = Math.max(sums.excessMax, excess);
    sums.count++;
    if (excess > allowed) sums.outside++;
    if (error > allowed && ratio > slope) sums.beyondBoth++;
  }
  const quantilesOf = (errors: readonly number[]) => {
    const sorted = errors.toSorted((a, b) => a - b);
    return namedQuantiles(fractionsOf('all').map((fraction) => sortedQuantile(sorted, fraction)));
  };
  const gathered = {
    elements: candidate.length,
    sums,
    nonFinite,
    absoluteIndex,
    relativeIndex,
    absoluteQuantiles: quantilesOf(absolute),
    relativeQuantiles: quantilesOf(relative),
  };
  return comparisonOf(gathered, tolerance);
}

/** Linear between neighbours, numpy's default. */
export function sortedQuantile(sorted: readonly number[], fraction: number): number {
  const position = fraction * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(position)] ?? Number.NaN, sorted[Math.ceil(position)] ?? Number.NaN];
  return low === high ? low : low + (high - low) * (position - Math.floor(position));
}

/** How much too large a quantile may be. */
const QUANTILE_ERROR = 1 / 256;
const QUANTILES = /median|p90|p95|p99/;

/** Within the stated error, and never too small but for the last bit of interpolating. */
export const isQuantile = (found: number, exact: number): boolean =>
  Object.is(found, exact) ||
  (found >= exact * (1 - 1e-6) && found <= exact * (1 + QUANTILE_ERROR + 1e-6) + 2 ** -134);

/** What comes of sums agrees to `near` of the terms' size, quantiles within their error; all else is the same number. */
export function expectSame(actual: Comparison, expected: Comparison, near: number): void {
  const approximate = /mean|deviation|l2|cosineSimilarity|signalToNoise|peakSignalToNoise/;
  const visit = (path: string, a: unknown, e: unknown) => {
    if (typeof e === 'object' && e !== null) {
      for (const key of Object.keys(e))
        visit(`${path}.${key}`, (a as Record<string, unknown>)[key], (e as Record<string, unknown>)[key]);
    } else if (QUANTILES.test(path) && typeof e === 'number') {
      expect([path, a, isQuantile(a as number, e)]).toEqual([path, a, true]);
    } else if (approximate.test(path) && typeof e === 'number' && Number.isFinite(e)) {
      // What comes from sums with cancellation is as exact as the terms are large.
      const terms = /deviation/.test(path) ? 1e-4 : /(reference|candidate).mean/.test(path) ? 0.05 : 0;
      const scale = Math.abs(e) + terms * Math.abs(expected.reference.max || 0) + near / 3000;
      expect([path, a, Math.abs((a as number) - e) <= near * scale]).toEqual([path, a, true]);
    } else expect([path, a]).toEqual([path, e]);
  };
  visit('', actual, expected);
}
