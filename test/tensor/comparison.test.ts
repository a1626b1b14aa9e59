import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Comparison, compareFloats } from '../../src/tensor/comparison.js';
import { openNpz } from '../../src/tensor/npz.js';
import { quantilesInPlace } from '../../src/tensor/order-statistics.js';
import { float32Values } from '../../src/tensor/values.js';
import { fixture } from './fixtures.js';

const tolerance = { absolute: 1e-3, relative: 1e-3 };

const compare = (candidate: readonly number[], reference: readonly number[], given = tolerance): Comparison =>
  compareFloats(Float32Array.from(candidate), Float32Array.from(reference), given);

describe('comparison of floats', () => {
  const pairs = openNpz(fixture('comparison.npz'));
  const expected = JSON.parse(readFileSync(fixture('comparison.json'), 'utf8')) as Record<
    string,
    Record<string, Record<string, number>>
  >;

  it.each(Object.keys(expected))('agrees with numpy, by the definitions of Polygraphy: %s', (name) => {
    const result = compareFloats(
      float32Values(pairs.read(`${name}.candidate`)),
      float32Values(pairs.read(`${name}.reference`)),
      tolerance,
    );
    const numbers = result as unknown as Record<string, Record<string, number>>;
    for (const [part, statistics] of Object.entries(expected[name]!)) {
      for (const [statistic, value] of Object.entries(statistics)) {
        const actual =
          part === 'whole'
            ? (result as unknown as Record<string, number>)[statistic]
            : numbers[part]?.[statistic];
        // A deviation far smaller than its mean comes from the difference of two large sums.
        const scale =
          statistic === 'deviation' ? Math.max(value, Math.abs(statistics.mean ?? 0) / 100) : Math.abs(value);
        const error = Math.abs((actual ?? Number.NaN) - value) / Math.max(1e-30, scale);
        if (!(error < 2e-6)) expect({ part, statistic, actual }).toEqual({ part, statistic, actual: value });
      }
    }
  });

  it('finds nothing to say of equal tensors', () => {
    const result = compare([1, -2, 0], [1, -2, 0]);
    expect(result).toMatchObject({ outside: 0, finite: 3, l2: 0, cosineSimilarity: 1 });
    expect(result.signalToNoise).toBe(Number.POSITIVE_INFINITY);
    expect(result.histogram).toEqual({ bins: [], zeros: 3, nonFinite: 0 });
  });

  it('divides by 2^-52 where the reference is zero', () => {
    expect(compare([2 ** -52, 1], [0, 1]).relative).toMatchObject({ max: 1, maxIndex: 0 });
  });

  it('counts NaN and infinity on each side, matching and not, and keeps them out of the statistics', () => {
    const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
    const result = compare([nan, nan, inf, inf, -inf, 1, 2], [nan, 1, inf, -inf, 5, nan, 2.5]);
    expect(result.nonFinite).toEqual({
      nanInCandidate: 2,
      nanInReference: 2,
      infiniteInCandidate: 3,
      infiniteInReference: 2,
      matching: 2,
      mismatching: 4,
    });
    expect(result).toMatchObject({ elements: 7, finite: 1, outside: 5 });
    expect(result.absolute).toMatchObject({ max: 0.5, maxIndex: 6, median: 0.5 });
    expect(result.histogram.nonFinite).toBe(4);
  });

  it('has no statistics where nothing is finite, and none of an empty tensor', () => {
    for (const result of [compare([Number.NaN], [Number.NaN]), compare([], [])]) {
      expect(result.finite).toBe(0);
      expect(result.absolute).toMatchObject({ max: Number.NaN, maxIndex: -1, median: Number.NaN });
    }
  });

  it('says how large the absolute tolerance would have to be', () => {
    const result = compare([1.5, 10.2], [1, 10], { absolute: 0.1, relative: 0.1 });
    expect(result).toMatchObject({ outside: 1 });
    expect(result.excess).toBeCloseTo(0.4, 6);
  });

  it('tells what a candidate of zeros would get', () => {
    expect(compare([0.01, 0.02], [0.01, 0.02], { absolute: 0.05, relative: 0 }).outsideIfZeros).toBe(0);
    expect(compare([0.01, 0.2], [0.01, 0.2], { absolute: 0.05, relative: 0 }).outsideIfZeros).toBe(1);
  });

  it('puts every element into one bin', () => {
    fc.assert(
      fc.property(
        fc.float32Array({ minLength: 1, maxLength: 60 }),
        fc.infiniteStream(fc.float()),
        (reference, noise) => {
          const candidate = reference.map((value, i) => (i % 3 === 0 ? value : value + noise.next().value));
          const { histogram, nonFinite, elements } = compareFloats(candidate, reference, tolerance);
          const inBins = histogram.bins.reduce((sum, { count }) => sum + count, 0);
          const overflowed = elements - inBins - histogram.zeros - nonFinite.matching - nonFinite.mismatching;
          expect(overflowed).toBe(0);
        },
      ),
    );
  });
});

describe('quantiles', () => {
  it('are those of the sorted list, whatever the order and however many are the same', () => {
    const list = fc.oneof(
      fc.float32Array({ noNaN: true, minLength: 1, maxLength: 200 }),
      fc
        .array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 300 })
        .map((a) => Float32Array.from(a)),
    );
    fc.assert(
      fc.property(
        list,
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1 }),
        (values, quantiles) => {
          const sorted = values.slice().sort();
          const found = quantilesInPlace(values, quantiles);
          quantiles.forEach((quantile, i) => {
            const position = quantile * (sorted.length - 1);
            const low = sorted[Math.floor(position)]!;
            const high = sorted[Math.ceil(position)]!;
            const between = low === high ? low : low + (high - low) * (position - Math.floor(position));
            expect(found[i]! === between || (Number.isNaN(found[i]) && Number.isNaN(between))).toBe(true);
          });
        },
      ),
    );
  });
});
