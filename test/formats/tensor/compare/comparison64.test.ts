import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Comparison, comparePairs } from '../../../../src/formats/tensor/compare/comparison.js';
import {
  ErrorHistogram,
  magnitudesOf,
  WorstPairs,
} from '../../../../src/formats/tensor/compare/pair-sums.js';
import { integerTensor, tensorFrom } from '../../../../src/formats/tensor/tensor.js';
import {
  floatReader,
  floatsOf,
  joinedFloats,
  pairFormat,
  tensorReader,
} from '../../../../src/formats/tensor/tensor-reader.js';
import { fixture } from '../fixtures.js';
import { compareFloats, isQuantile, sortedQuantile } from './expected-comparison.js';

const exact = { absolute: 0, relative: 0 };

const compare = (candidate: readonly number[], reference: readonly number[], tolerance = exact): Comparison =>
  compareFloats(Float64Array.from(candidate), Float64Array.from(reference), tolerance, 'all');

describe('comparison of float64', () => {
  it('has the statistics that one has by hand, of errors that float32 does not see', () => {
    const e = 2 ** -40;
    const result = compare([1 + e, 2, -4 - 3 * e, 8], [1, 2, -4, 8], { absolute: e, relative: e / 2 });
    expect(result).toMatchObject({
      elements: 4,
      finite: 4,
      // |error| is e, 0, 3e, 0; relative e, 0, 3e/4, 0.
      absolute: { max: 3 * e, maxIndex: 2, mean: e, deviation: Math.sqrt(6 / 4) * e, median: e / 2 },
      relative: { max: e, maxIndex: 0, mean: (7 / 16) * e, median: 0.375 * e },
      candidate: { min: -4 - 3 * e, max: 8 },
      reference: { min: -4, max: 8, mean: 1.75, deviation: Math.sqrt(85 / 4 - 1.75 ** 2) },
      l2: Math.sqrt(10) * e,
      signalToNoise: 10 * Math.log10(85 / (10 * e * e)),
      peakSignalToNoise: 10 * Math.log10(64 / (2.5 * e * e)),
      // 3e - 4 * e / 2, which the absolute tolerance just allows.
      excess: e,
      outside: 0,
      beyondBoth: 1,
    });
    // The positions 2.7, 2.85 and 2.97 of e, e, e, 3e … of 0, 0, e, 3e.
    expect(result.absolute.p90).toBeCloseTo((1 + 2 * 0.7) * e, 20);
    expect(result.absolute.p95).toBeCloseTo((1 + 2 * 0.85) * e, 20);
    expect(result.absolute.p99).toBeCloseTo((1 + 2 * 0.97) * e, 20);
    expect(result.cosineSimilarity).toBeCloseTo(1, 14);
    expect(compareFloats(Float32Array.of(1 + e), Float32Array.of(1), exact).absolute.max).toBe(0);
  });

  it('takes tolerances as they are, not rounded to float32', () => {
    // 0.1 in float32 is larger than in float64.
    expect(compare([0.1 + 1e-12], [0], { absolute: 0.1, relative: 0 }).outside).toBe(1);
    const narrow = compareFloats(Float32Array.of(0.1), Float32Array.of(0), { absolute: 0.1, relative: 0 });
    expect(narrow.outside).toBe(0);
  });

  it('counts NaN and infinities on each side, and keeps them out of the statistics', () => {
    const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
    const result = compare([nan, inf, -inf, 1, 2 + 1e-15], [nan, inf, inf, nan, 2]);
    expect(result).toMatchObject({
      finite: 1,
      nonFinite: {
        nanInCandidate: 1,
        nanInReference: 2,
        infiniteInCandidate: 2,
        infiniteInReference: 2,
        matching: 2,
        mismatching: 2,
      },
      absolute: { max: 8.881784197001252e-16, maxIndex: 4 },
    });
  });

  const expected = JSON.parse(readFileSync(fixture('comparison64.json'), 'utf8')) as Record<
    string,
    Record<string, Record<string, number>>
  >;

  it.each([
    ['small', 1500, true],
    ['large', 50_003, true],
    ['no zeros', 40_000, false],
  ] as const)('agrees with numpy: %s', (name, length, zeros) => {
    const reference = Float64Array.from({ length }, (_, i) =>
      zeros && i % 500 === 0 ? 0 : ((i * 7919) % 10007) / 10007 - 0.5,
    );
    const candidate = reference.map((value, i) => value + (((i * 104729) % 1009) / 1009 - 0.5) * 1e-12);
    const result = compareFloats(candidate, reference, { absolute: 3e-13, relative: 1e-13 }, 'all');
    for (const [part, statistics] of Object.entries(expected[name]!)) {
      const ours = (part === 'whole' ? result : result[part as 'absolute']) as unknown as typeof statistics;
      for (const [statistic, value] of Object.entries(statistics)) {
        const error = Math.abs(ours[statistic]! - value) / Math.abs(value || 1);
        const isNear = /median|p9/.test(statistic) ? isQuantile(ours[statistic]!, value) : error < 2e-12;
        expect([part, statistic, ours[statistic], isNear]).toEqual([part, statistic, ours[statistic], true]);
      }
    }
  });

  it('follows the definitions for any numbers', () => {
    const number = fc.double({ noDefaultInfinity: true, noNaN: true, min: -1e150, max: 1e150 });
    fc.assert(
      fc.property(fc.array(fc.tuple(number, number), { minLength: 1, maxLength: 50 }), (pairs) => {
        const [candidate, reference] = [pairs.map(([c]) => c), pairs.map(([, r]) => r)];
        const errors = pairs.map(([c, r]) => Math.abs(c - r));
        const result = compare(candidate, reference);
        const largest = Math.max(...errors);
        expect(result.absolute.max).toBe(largest);
        expect(result.absolute.maxIndex).toBe(errors.indexOf(largest));
        expect(result.relative.max).toBe(
          Math.max(...pairs.map(([c, r]) => Math.abs(c - r) / (r === 0 ? 2 ** -52 : Math.abs(r)))),
        );
        expect(result.outside).toBe(errors.filter((error) => error > 0).length);
        const sorted = errors.toSorted((a, b) => a - b);
        const { median } = result.absolute;
        expect([median, isQuantile(median, sortedQuantile(sorted, 0.5))]).toEqual([median, true]);
      }),
    );
  });

  it.each([3, 5000])('has finite statistics of numbers whose squares are beyond a double: %d', (length) => {
    const largest = Number.MAX_VALUE;
    const reference = new Float64Array(length).fill(largest / 4).fill(1, 1);
    reference[1] = -largest / 2;
    const candidate = reference.slice();
    const same = compareFloats(candidate, reference, exact);
    expect(same).toMatchObject({ l2: 0, cosineSimilarity: 1, signalToNoise: Infinity, outside: 0 });
    candidate[0] = largest / 2;
    const {
      l2,
      cosineSimilarity,
      absolute,
      signalToNoise,
      reference: side,
    } = compareFloats(candidate, reference, exact);
    expect(l2 / largest).toBeCloseTo(1 / 4, 12);
    expect(absolute).toMatchObject({ max: largest / 4, maxIndex: 0 });
    expect((absolute.mean / largest) * length).toBeCloseTo(1 / 4, 12);
    expect(side.mean / largest).toBeCloseTo(-1 / 4 / length, 12);
    // (1/2, -1/2) and (1/4, -1/2)
    expect(cosineSimilarity).toBeCloseTo(0.375 / Math.sqrt(0.5) / Math.sqrt(0.3125), 12);
    expect(signalToNoise).toBeCloseTo(10 * Math.log10(0.3125 / 0.0625), 10);
    const { rms, peak } = magnitudesOf(floatsOf(reference));
    expect(peak).toBe(largest / 2);
    expect((rms / largest) * Math.sqrt(length)).toBeCloseTo(Math.sqrt(0.3125), 12);
  });
});

describe('the format of a comparison', () => {
  const reader = (tensor: Parameters<typeof tensorReader>[0]) => floatReader(tensorReader(tensor));
  const wide = reader(tensorFrom('float64', [3], Float64Array.of(1, 2 + 1e-12, 16_777_217)));
  const narrow = reader(tensorFrom('float32', [3], Float32Array.of(1, 2, 16_777_216)));

  it.each([
    ['float64 against float32', wide, narrow, [0, 1e-12, 1]],
    ['float32 against float64', narrow, wide, [0, 1e-12, 1]],
    ['float64 against int32', wide, reader(integerTensor('int32', [3], [1, 2, 16_777_216])), [0, 1e-12, 1]],
    ['uint32 against float32', reader(integerTensor('uint32', [3], [1, 2, 16_777_219])), narrow, [0, 0, 3]],
    [
      'int64, up to 2^53',
      reader(integerTensor('int64', [3], [1, 2, 2 ** 53 - 1])),
      reader(integerTensor('int64', [3], [1, 2, 2 ** 53])),
      [0, 0, 1],
    ],
    [
      'a run of float32 and one of float64',
      joinedFloats([narrow, wide]),
      joinedFloats([narrow, narrow]),
      [0, 0, 0, 0, 1e-12, 1],
    ],
  ])('is the wider one: %s', (_case, candidate, reference, errors) => {
    expect(pairFormat({ candidate, reference }).name).toBe('float64');
    const worst = new WorstPairs(6);
    comparePairs({ candidate, reference }, exact, 'none', new ErrorHistogram(worst));
    const found = errors.map((_, index) => worst.list().find((pair) => pair.index === index)?.error ?? 0);
    errors.forEach((error, index) => {
      expect(found[index]).toBeCloseTo(error, 14);
    });
  });

  it('is float32 where that holds every number', () => {
    const bytes = reader(integerTensor('int16', [3], [1, 2, 3]));
    expect(pairFormat({ candidate: narrow, reference: bytes }).name).toBe('float32');
  });
});

describe('histogram of float64 errors', () => {
  it('has octaves that float32 lacks, and an end where doubles have theirs', () => {
    const histogram = new ErrorHistogram();
    const reference = floatsOf(Float64Array.of(0, 0, 0, 0));
    const candidate = floatsOf(Float64Array.of(2 ** -200, 1.5 * 2 ** -200, 2 ** -198, 0));
    comparePairs({ candidate, reference }, exact, 'none', histogram);
    expect(histogram.histogram()).toEqual({
      bins: [
        { from: 2 ** -200, to: 2 ** -199, count: 2 },
        { from: 2 ** -199, to: 2 ** -198, count: 0 },
        { from: 2 ** -198, to: 2 ** -197, count: 1 },
      ],
      zeros: 1,
      nonFinite: 0,
    });
    const largest = new ErrorHistogram();
    const most = {
      candidate: floatsOf(Float64Array.of(Number.MAX_VALUE)),
      reference: floatsOf(Float64Array.of(0)),
    };
    comparePairs(most, exact, 'none', largest);
    expect(largest.histogram().bins).toEqual([{ from: 2 ** 1023, to: Number.MAX_VALUE, count: 1 }]);
  });
});
