import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../../scripts/build-native.mjs';
import {
  type Comparison,
  comparePairs,
  fastestMeasure,
} from '../../../../src/formats/tensor/compare/comparison.js';
import { keyCount, quantilesOf } from '../../../../src/formats/tensor/compare/error-keys.js';
import {
  ErrorHistogram,
  type Histogram,
  measureChunk,
  SUM_SLOTS,
  WorstPairs,
} from '../../../../src/formats/tensor/compare/pair-sums.js';
import { openNpz } from '../../../../src/formats/tensor/npz.js';
import { float32Values } from '../../../../src/formats/tensor/tensor.js';
import {
  type FloatArray,
  type FloatFormat,
  float32Format,
  float64Format,
  floatsOf,
} from '../../../../src/formats/tensor/tensor-reader.js';
import { randomNumbers } from '../../../support/mutations.js';
import { fixture } from '../fixtures.js';
import {
  compareFloats,
  expectedComparison,
  expectSame,
  isQuantile,
  sortedQuantile,
} from './expected-comparison.js';

beforeAll(async () => {
  await buildAddon({ say: () => {} });
});

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
        const isNear = /median|p9/.test(statistic) ? isQuantile(actual ?? Number.NaN, value) : error < 2e-6;
        if (!isNear) expect({ part, statistic, actual }).toEqual({ part, statistic, actual: value });
      }
    }
  });

  it('finds no difference of equal tensors', () => {
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
      onlyInCandidate: 3,
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

  it('states how large the absolute tolerance would have to be', () => {
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

const formats = [{ format: float32Format }, { format: float64Format }] as const;
/** How near sums are that differ by the order of additions. */
const near = 1e-11;

function floatsFrom(format: FloatFormat, length: number, element: (i: number) => number): FloatArray {
  const values = format.make(length);
  for (let i = 0; i < length; i++) values[i] = element(i);
  return values;
}

describe.each(formats)('large tensors of $format.name', ({ format }) => {
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
  ])(
    'are compared by the definitions, with the addon as without: %s',
    (_case, length, referenceAt, candidateAt) => {
      const reference = floatsFrom(format, length, referenceAt);
      const candidate = floatsFrom(format, length, (i) => candidateAt(reference[i]!, i));
      const expected = expectedComparison(candidate, reference, tolerance);
      const found = compareFloats(candidate, reference, tolerance, 'all', measureChunk);
      expectSame(found, expected, near);
      expectAlike(compareFloats(candidate, reference, tolerance, 'all', fastestMeasure()), found);
      const { median, p90, p99 } = compareFloats(candidate, reference, tolerance).relative;
      expect([median, p90, p99]).toEqual([found.relative.median, null, found.relative.p99]);
    },
  );
});

/** The addon's comparison: quantiles too are the same to the last bit. */
function expectAlike(actual: Comparison, expected: Comparison): void {
  expectSame(actual, expected, near);
  const { NaN: unknown } = Number;
  for (const side of ['absolute', 'relative'] as const) {
    const bits = ({ median, p90, p95, p99 }: Comparison['absolute']) => [
      median,
      p90 ?? unknown,
      p95 ?? unknown,
      p99,
    ];
    expect(bits(actual[side])).toEqual(bits(expected[side]));
  }
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
  ])('of large tensors counts every error, and the worst pairs are the largest: %s', (_case, size) => {
    const numbers = randomNumbers(5);
    const count = 100_003;
    for (const { format } of formats) {
      const reference = floatsFrom(format, count, (at) => (size(at) < 1e-30 ? 0 : numbers() - 0.5));
      const candidate = floatsFrom(
        format,
        count,
        (at) => reference[at]! + size(at) * (numbers() < 0.5 ? 1 : numbers()),
      );
      const worst = new WorstPairs(5);
      const histogram = histogramOf(candidate, reference, worst);
      const errors = Array.from(candidate, (c, at) => format.round(Math.abs(c - reference[at]!)));
      const odd = errors.filter((error) => !Number.isFinite(error)).length;
      expect(histogram).toMatchObject({
        zeros: errors.filter((error) => error === 0).length,
        nonFinite: odd,
      });
      for (const [i, { from, to, count: binned }] of histogram.bins.entries())
        expect(errors.filter((error) => error > 0 && error < to && (i === 0 || error >= from))).toHaveLength(
          binned,
        );
      const sorted = errors.map((error) => (Number.isNaN(error) ? Infinity : error)).sort((x, y) => y - x);
      expect(worst.list().map(({ error }) => format.round(error))).toEqual(
        sorted.slice(0, 5).filter((error) => error > 0),
      );
      expect(histogram.bins.length > 0 || histogram.zeros === count).toBe(true);
    }
  });
});

describe('quantiles', () => {
  const list = fc.oneof(
    fc.float32Array({ noNaN: true, min: 0, minLength: 1, maxLength: 200 }),
    fc.float32Array({ noNaN: true, min: 0, max: 2 ** -120, minLength: 1, maxLength: 50 }),
    fc.float64Array({ noNaN: true, min: 0, minLength: 1, maxLength: 200 }),
    fc
      .array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 300 })
      .map((a) => Float32Array.from(a)),
  );
  const fractions = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1 });

  it('are those of the sorted list or up to 1/256 larger, whatever the order and however many are the same', () => {
    fc.assert(
      fc.property(list, fractions, (errors, quantiles) => {
        const format = errors instanceof Float64Array ? float64Format : float32Format;
        const keys = new Float64Array(2 * keyCount(format));
        measureChunk(
          errors,
          format.make(errors.length),
          format.make(errors.length),
          format.make(errors.length),
          new Float64Array(SUM_SLOTS),
          0,
          0,
          keys,
        );
        fc.pre(errors.every(Number.isFinite));
        const sorted = Array.from(errors).sort((a, b) => a - b);
        const found = quantilesOf(
          keys.subarray(0, keys.length / 2),
          format,
          errors.length,
          sorted.at(-1)!,
          quantiles,
        );
        quantiles.forEach((quantile, i) => {
          expect([quantile, found[i], isQuantile(found[i]!, sortedQuantile(sorted, quantile))]).toEqual([
            quantile,
            found[i],
            true,
          ]);
        });
      }),
    );
  });

  it('are exact where errors are small integers or powers of two, and at both ends', () => {
    const errors = Float32Array.of(3, 0, 1, 2, 0.25, 100, 7);
    const { absolute } = compareFloats(errors, new Float32Array(7), tolerance, { fraction: 1 });
    expect(absolute).toMatchObject({ median: 2, asked: 100 });
    expect(compareFloats(errors, new Float32Array(7), tolerance, { fraction: 0 }).absolute.asked).toBe(0);
  });
});

/** Place and count of what is not zero in a table. */
function nonZero(table: Float64Array): readonly (readonly [number, number])[] {
  const found: [number, number][] = [];
  for (let at = 0; at < table.length; at++) if (table[at] !== 0) found.push([at, table[at]!]);
  return found;
}

describe('the addon', () => {
  const odd = fc.constantFrom(
    Number.NaN,
    Infinity,
    -Infinity,
    0,
    -0,
    2 ** -149,
    2 ** -1074,
    3e38,
    -3e38,
    1e308,
  );
  const number = fc.oneof(
    { weight: 9, arbitrary: fc.double({ noNaN: true, min: -1e3, max: 1e3 }) },
    { weight: 1, arbitrary: odd },
  );

  it.each(formats)(
    'measures a chunk of $format.name as the loop in TypeScript does, sums within 1e-12 of their terms',
    ({ format }) => {
      const addon = fastestMeasure();
      expect(addon).not.toBe(measureChunk);
      fc.assert(
        fc.property(
          fc.array(fc.tuple(number, number), { maxLength: 70 }),
          fc.boolean(),
          (pairs, counting) => {
            const measured = [measureChunk, addon].map((measure) => {
              const [candidate, reference] = [format.make(pairs.length), format.make(pairs.length)];
              pairs.forEach(([c, r], i) => {
                candidate[i] = c;
                reference[i] = r;
              });
              const [absolute, relative] = [format.make(pairs.length), format.make(pairs.length)];
              const sums = new Float64Array(SUM_SLOTS);
              const keys = new Float64Array(counting ? 2 * keyCount(format) : 0);
              const counted = measure(candidate, reference, absolute, relative, sums, 1e-3, 1e-2, keys);
              expect(counted).toBe([...candidate, ...reference].every(Number.isFinite));
              const counts = nonZero(keys);
              return { sums, rest: counted ? { absolute, relative, counts } : counts };
            });
            const [plain, compiled] = measured;
            expect(compiled!.rest).toEqual(plain!.rest);
            // Only sums of numbers of either sign cancel; their terms are as large as the root of the squares.
            for (let at = 0; at < SUM_SLOTS; at++) {
              const [one, other] = [plain!.sums[at]!, compiled!.sums[at]!];
              const size =
                Math.abs(one) + pairs.length * Math.sqrt(Math.max(plain!.sums[2]!, plain!.sums[6]!));
              const near =
                one === other ||
                Math.abs(one - other) <= 1e-12 * size ||
                (Number.isNaN(one) && Number.isNaN(other)) ||
                size === Infinity;
              expect([at, one, other, near]).toEqual([at, one, other, true]);
            }
          },
        ),
      );
    },
  );

  it('rejects arrays that do not belong together', () => {
    const [four, three] = [new Float32Array(4), new Float32Array(3)];
    const [sums, none] = [new Float64Array(SUM_SLOTS), new Float64Array(0)];
    const measure = fastestMeasure();
    expect(() => measure(four, three, four, four, sums, 0, 0, none)).toThrow();
    expect(() => measure(four, four, four, new Float64Array(4), sums, 0, 0, none)).toThrow();
    expect(() => measure(four, four, four, four, none, 0, 0, none)).toThrow();
    expect(() => measure(four, four, four, four, sums, 0, 0, sums)).toThrow();
  });
});
