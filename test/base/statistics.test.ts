import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  figuresOf,
  leastSquares,
  meanOf,
  medianOf,
  paretoFront,
  quantile,
  studentT975,
  theilSen,
} from '../../src/base/statistics.js';
import { randomStream } from '../../src/formats/tensor/random.js';

const line = (length: number) => Array.from({ length }, (_, at) => 3 + 0.25 * at);

describe('figures of a list', () => {
  it('are numpy’s: np.percentile([1, 2, 4, 8], …)', () => {
    expect([0, 0.25, 0.5, 0.75, 1].map((q) => quantile([1, 2, 4, 8], q))).toEqual([1, 1.75, 3, 5, 8]);
    expect(figuresOf([8, 1, 4, 2])).toMatchObject({ min: 1, mean: 3.75, p50: 3, max: 8 });
    expect(medianOf(Float64Array.of(3, 1, 2))).toBe(2);
  });

  it('are NaN for none, and infinite where a neighbour is', () => {
    expect([meanOf([]), medianOf([]), figuresOf([]).p99]).toEqual([Number.NaN, Number.NaN, Number.NaN]);
    expect(medianOf([1, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY])).toBe(Number.POSITIVE_INFINITY);
  });

  it('stay within the values, and do not reorder them', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ noNaN: true, min: -1e9, max: 1e9 }), { minLength: 1 }), (values) => {
        const before = [...values];
        const { min, p50, p95, max } = figuresOf(values);
        expect(min <= p50 && p50 <= p95 && p95 <= max).toBe(true);
        expect(values).toEqual(before);
      }),
    );
  });

  it.each([
    [1, 12.706],
    [9, 2.262],
    [11, 2.201],
    [15, 2.131],
    [20, 2.086],
    [30, 2.042],
    [60, 2.0],
    [120, 1.98],
  ])('have Student’s t: at %i degrees of freedom %f', (freedom, quantile) => {
    expect(studentT975(freedom)).toBeCloseTo(quantile, 3);
  });
});

describe('lines through values', () => {
  it('find an exact slope', () => {
    expect(leastSquares(line(50))).toBeCloseTo(0.25, 12);
    const { perStep, low, high } = theilSen(line(50));
    for (const slope of [perStep, low, high]) expect(slope).toBeCloseTo(0.25, 9);
  });

  it('agree with numbers worked out by hand: scipy.stats.linregress and theilslopes of 1 3 2 5 4', () => {
    expect(leastSquares([1, 3, 2, 5, 4])).toBeCloseTo(0.8, 12);
    // Slopes of all pairs, sorted: -1 -1 0.5 0.5 0.75 1 1 4/3 2 3; their median is 0.875.
    expect(theilSen([1, 3, 2, 5, 4]).perStep).toBeCloseTo(0.875, 12);
  });

  it('have an interval that hardly ever misses the true slope', () => {
    let [held, width] = [0, 0];
    for (let seed = 0; seed < 400; seed++) {
      const stream = randomStream(seed);
      const values = Array.from({ length: 30 }, (_, at) => 0.5 * at + stream.normal());
      const { low, high } = theilSen(values);
      if (low <= 0.5 && high >= 0.5) held++;
      width += (high - low) / 400;
    }
    expect(held).toBeGreaterThanOrEqual(397);
    // Least squares' own standard error is 0.021 here: 3.29 of it on each side.
    expect(width).toBeCloseTo(2 * 3.29 * 0.021, 1);
  });

  it('are without bounds for too few values', () => {
    expect(theilSen([1, 2]).low).toBe(Number.NEGATIVE_INFINITY);
    expect(theilSen([]).high).toBe(Number.POSITIVE_INFINITY);
  });

  it('thin long streams out: all pairs of these would be 40 GB', () => {
    expect(theilSen(line(100_000)).perStep).toBeCloseTo(0.25, 10);
  });
});

describe('the Pareto front', () => {
  const front = (points: readonly (readonly [number, number])[]) => paretoFront(points, (point) => point);

  it('is what no other beats in both figures', () => {
    const points = [
      [4, 0],
      [2, 0.3],
      [3, 0.4],
      [1, 0.9],
      [2, 0.5],
    ] as const;
    expect(front(points)).toEqual([points[0], points[1], points[3]]);
  });

  it('has all that are equal, and one alone', () => {
    const equal = [
      [1, 1],
      [1, 1],
      [1, 2],
    ] as const;
    expect(front(equal)).toEqual(equal.slice(0, 2));
    expect(front([])).toEqual([]);
  });
});
