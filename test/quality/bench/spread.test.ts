import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { quantile } from '../../../src/base/statistics.js';
import { spreadOf, trtexecPercentile } from '../../../src/quality/bench/times.js';
import { recordedRuns } from '../../fakes/trtexec.js';

const columns = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 300 });
const sortedOf = (values: readonly number[]) => Float64Array.from(values).sort();
const percentile = (sorted: Float64Array, percent: number) => quantile(sorted, percent / 100);
const sixDigits = (value: number) => Number(value.toPrecision(6));

interface Exported {
  readonly computeMs: number;
  readonly startEnqMs: number;
  readonly endEnqMs: number;
}

describe('percentiles', () => {
  it('are what trtexec printed of its recorded run', () => {
    const text = gunzipSync(readFileSync(join(recordedRuns, '10.6-bench_r50_b64.times.json.gz'))).toString();
    const column = Float64Array.from(JSON.parse(text) as Exported[], ({ computeMs }) => computeMs);
    const spread = spreadOf(column);
    const { min, max, mean, median, p90, p95, p99 } = spread ?? expect.fail('no samples');
    expect([min, max, mean, median, p90, p95, p99].map(sixDigits)).toEqual([
      1.86023, 1.89655, 1.87829, 1.8783, 1.88574, 1.88818, 1.89185,
    ]);
  });

  it.each([
    [1, 90, 0],
    [2, 90, 1],
    // In single precision 1 - 90/100 is a little more than a tenth and 1 - 99/100 a little less than a hundredth; in double precision it is the other way.
    [10, 90, 8],
    [20, 95, 18],
    [99, 99, 98],
    [1000, 99, 990],
    [1598, 99, 1582],
  ])('of %i samples at %i %% are sample %i', (count, percent, index) => {
    const sorted = Float64Array.from({ length: count }, (_, at) => at);
    expect(trtexecPercentile(sorted, percent)).toBe(index);
  });

  it('by trtexec are samples; interpolated ones lie between neighbours; both grow with the percentage', () => {
    fc.assert(
      fc.property(columns, fc.nat(100), fc.nat(100), (values, a, b) => {
        const sorted = sortedOf(values);
        const [low, high] = [Math.min(a, b), Math.max(a, b)];
        expect(sorted).toContain(trtexecPercentile(sorted, a));
        for (const rule of [trtexecPercentile, percentile]) {
          const [below, above] = [rule(sorted, low), rule(sorted, high)];
          expect(above).toBeGreaterThanOrEqual(below - 1e-9 * Math.abs(below));
          expect(below).toBeGreaterThanOrEqual(sorted[0]! - 1e-9);
          expect(above).toBeLessThanOrEqual(sorted.at(-1)! + 1e-9);
        }
      }),
    );
  });
});

describe('the spread of a column', () => {
  it('does not depend on the order and leaves the column alone', () => {
    fc.assert(
      fc.property(columns, (values) => {
        const column = Float64Array.from(values);
        const spread = spreadOf(column);
        expect(Array.from(column)).toEqual(values);
        expect(spreadOf(column.toReversed())?.p99).toBe(spread?.p99);
        expect(spread?.count).toBe(values.length);
        expect(spread?.min).toBe(Math.min(...values));
        expect(spread?.max).toBe(Math.max(...values));
      }),
    );
  });

  it('has the percentiles that are requested, by trtexec’s rule, and no others', () => {
    const column = Float64Array.from({ length: 2000 }, (_, at) => at);
    expect(spreadOf(column, [0, 50, 99.9, 100])?.percentiles).toEqual({
      p0: 0,
      p50: 999,
      'p99.9': 1998,
      p100: 1999,
    });
    expect(spreadOf(column)).not.toHaveProperty('percentiles');
  });

  it('varies by nothing where all are equal, by a known share otherwise, and is undefined of nothing', () => {
    expect(spreadOf(Float64Array.of(3, 3, 3))?.coefficientOfVariation).toBe(0);
    expect(spreadOf(Float64Array.of(1, 3))?.coefficientOfVariation).toBe(0.5);
    expect(spreadOf(Float64Array.of(0, 0))?.coefficientOfVariation).toBeNull();
    expect(spreadOf(new Float64Array())).toBeUndefined();
  });
});
