import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Comparison,
  compareFloats,
  comparePairs,
} from '../../../../src/formats/tensor/compare/comparison.js';
import { comparisonOf, fractionsOf } from '../../../../src/formats/tensor/compare/comparison-statistics.js';
import { ErrorHistogram, type Histogram } from '../../../../src/formats/tensor/compare/error-histogram.js';
import { quantilesInPlace } from '../../../../src/formats/tensor/compare/order-statistics.js';
import { gatherAtOnce } from '../../../../src/formats/tensor/compare/plain-comparison.js';
import { WorstPairs } from '../../../../src/formats/tensor/compare/worst-pairs.js';
import {
  type FloatArray,
  type FloatFormat,
  float32Format,
  float64Format,
} from '../../../../src/formats/tensor/float-format.js';
import { floatsOf } from '../../../../src/formats/tensor/float-reader.js';
import { openNpz } from '../../../../src/formats/tensor/npz.js';
import { float32Values } from '../../../../src/formats/tensor/values.js';
import { randomNumbers } from '../../../support/mutations.js';
import { fixture } from '../fixtures.js';

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
      'all',
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

  it('counts as Polygraphy does what is beyond both tolerances', () => {
    const result = compare([1.05, 0.2, 10.5], [1, 0.1, 10], { absolute: 0.1, relative: 0.07 });
    expect(result).toMatchObject({ outside: 0, beyondBoth: 0 });
    expect(compare([1.2, 0.2, 10.5], [1, 0.1, 10], { absolute: 0.1, relative: 0.07 }).beyondBoth).toBe(1);
  });
});

/** Every format that numbers are compared in, and how near sums of large tensors are to those of plain code. */
const formats = [
  { format: float32Format, near: 3e-6 },
  { format: float64Format, near: 1e-12 },
] as const;

function floatsFrom(format: FloatFormat, length: number, element: (i: number) => number): FloatArray {
  const values = format.make(length);
  for (let i = 0; i < length; i++) values[i] = element(i);
  return values;
}

describe.each(formats)('the kernel for large tensors of $format.name', ({ format, near }) => {
  const random = randomNumbers(11);
  const noise = () => (random() + random() + random() - 1.5) * 1e-3;

  it.each<[string, number, (i: number) => number, (reference: number, i: number) => number]>([
    ['noise', 100_000, () => random() * 4 - 2, (r) => r + noise()],
    ['a length that fills neither chunks nor steps', 70_001, () => random(), (r) => r + noise()],
    ['just large enough', 4096, () => random(), (r) => r + noise()],
    ['sorted by size, so that the parts differ', 90_000, (i) => i / 1000, (r) => r * (1 + noise())],
    [
      'a few values many times: ties everywhere',
      60_000,
      (i) => i % 7,
      (r) => r + Math.floor(random() * 4) / 8,
    ],
    ['mostly exact', 60_000, () => random(), (r, i) => (i % 50 === 0 ? r + noise() : r)],
    ['all exact', 20_000, () => random(), (r) => r],
    ['zeros in the reference', 50_000, () => Math.max(0, random() - 0.5), (r) => r + Math.abs(noise())],
    [
      'heavy tails over many octaves',
      80_000,
      () => 2 ** (random() * 60 - 30),
      (r) => r * (1 + 2 ** (random() * 40 - 40)),
    ],
    [
      'NaN and infinities here and there',
      60_000,
      (i) => (i % 9001 === 5 ? Number.NaN : random()),
      (r, i) => (i % 5003 === 7 ? 1 / 0 : r + noise()),
    ],
    [
      'squares that overflow',
      30_000,
      (i) => (i === 12_345 ? 3e38 : random()),
      (r) => (r > 1e38 ? -r : r + noise()),
    ],
    ['nothing finite', 10_000, () => Number.NaN, () => 1],
    ['one outlier in a period', 64_000, () => 1, (r, i) => (i % 64 === 0 ? r + 1 : r + noise())],
  ])('agrees with the plain way: %s', (_case, length, referenceAt, candidateAt) => {
    const reference = floatsFrom(format, length, referenceAt);
    const candidate = floatsFrom(format, length, (i) => candidateAt(reference[i]!, i));
    const plain = comparisonOf(gatherAtOnce(candidate, reference, tolerance, fractionsOf('all')), tolerance);
    expectSame(compareFloats(candidate, reference, tolerance, 'all'), plain, near);
    const { median, p90, p99 } = compareFloats(candidate, reference, tolerance).relative;
    expect([median, p90, p99]).toEqual([plain.relative.median, null, plain.relative.p99]);
  });
});

/** Sums agree as nearly as their format lets them, to a millionth in float32 blocks; everything else is the same number. */
function expectSame(actual: Comparison, expected: Comparison, near: number): void {
  const approximate = /mean|deviation|l2|cosineSimilarity|signalToNoise|peakSignalToNoise/;
  const visit = (path: string, a: unknown, e: unknown) => {
    if (typeof e === 'object' && e !== null) {
      for (const key of Object.keys(e)) {
        visit(`${path}.${key}`, (a as Record<string, unknown>)[key], (e as Record<string, unknown>)[key]);
      }
    } else if (approximate.test(path) && typeof e === 'number' && Number.isFinite(e)) {
      // What comes from sums with cancellation is as exact as the terms are large.
      const terms = /deviation/.test(path) ? 1e-4 : /(reference|candidate).mean/.test(path) ? 0.05 : 0;
      const scale = Math.abs(e) + terms * Math.abs(expected.reference.max || 0) + near / 3000;
      expect([path, Math.abs((a as number) - e) <= near * scale]).toEqual([path, true]);
    } else expect([path, a]).toEqual([path, e]);
  };
  visit('', actual, expected);
}

function histogramOf(candidate: FloatArray, reference: FloatArray, worst = new WorstPairs(0)): Histogram {
  const histogram = new ErrorHistogram(worst);
  const pairs = { candidate: floatsOf(candidate), reference: floatsOf(reference) };
  comparePairs(pairs, tolerance, 'none', histogram);
  return histogram.histogram();
}

describe('histogram of errors', () => {
  it('has one bin an octave', () => {
    const reference = new Float32Array(6);
    const candidate = Float32Array.of(0, 0.25, -0.3, 0.5, 1, Number.NaN);
    expect(histogramOf(candidate, reference)).toEqual({
      bins: [
        { from: 0.25, to: 0.5, count: 2 },
        { from: 0.5, to: 1, count: 1 },
        { from: 1, to: 2, count: 1 },
      ],
      zeros: 1,
      nonFinite: 1,
    });
  });

  it('shows forty octaves and puts what is smaller into the first', () => {
    const { bins } = histogramOf(Float32Array.of(1, 1e-30, 1e-20), new Float32Array(3));
    expect(bins).toHaveLength(41);
    expect(bins[0]).toMatchObject({ count: 2 });
  });

  it('puts every element into one bin', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.float(), fc.float()), { maxLength: 60 }), (pairs) => {
        const histogram = histogramOf(
          Float32Array.from(pairs, ([c]) => c),
          Float32Array.from(pairs, ([, r]) => r),
        );
        const binned = histogram.bins.reduce((sum, { count }) => sum + count, 0);
        expect(binned + histogram.zeros + histogram.nonFinite).toBe(pairs.length);
      }),
    );
  });

  it.each([
    ['normal errors', () => 1],
    ['mostly none', (at: number) => (at % 7 === 0 ? 1e-3 : 0)],
    ['none at all', () => 0],
    ['the tiniest there are', (at: number) => (at % 3 === 0 ? 2 ** -149 : at % 3 === 1 ? 2 ** -126 : 0)],
    [
      'NaN and infinities in one chunk',
      (at: number) => (at === 40_000 ? Number.NaN : at === 40_001 ? Infinity : 1),
    ],
  ])('of large tensors is that of plain code, and so are the worst pairs: %s', (_case, size) => {
    const numbers = randomNumbers(5);
    const count = 100_003;
    for (const { format } of formats) {
      const reference = floatsFrom(format, count, (at) => (size(at) < 1e-30 ? 0 : numbers() - 0.5));
      const candidate = floatsFrom(
        format,
        count,
        (at) => reference[at]! + size(at) * (numbers() < 0.5 ? 1 : numbers()),
      );
      const [worst, plainWorst] = [new WorstPairs(5), new WorstPairs(5)];
      const plain = new ErrorHistogram(plainWorst);
      plain.show(candidate, reference, 0);
      expect(histogramOf(candidate, reference, worst)).toEqual(plain.histogram());
      expect(worst.list()).toEqual(plainWorst.list());
      expect(plain.histogram().bins.length > 0 || plain.histogram().zeros === count).toBe(true);
    }
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
