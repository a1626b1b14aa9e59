import { meanOf, quantile } from '../../base/statistics.js';

/** Milliseconds of one column of a measurement, as trtexec reports them and as numpy does. */
export interface Spread {
  readonly count: number;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly median: number;
  /** Percentiles by trtexec's rule: always a time that was measured, the pessimistic neighbour. */
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  /** Standard deviation over mean, a share of one; null where the mean is 0. */
  readonly coefficientOfVariation: number | null;
  /** The same percentiles, linear between neighbours (numpy's default). */
  readonly interpolated: { readonly p90: number; readonly p95: number; readonly p99: number };
  /** Those that were requested, `p50`, `p99.9`, by trtexec's rule; absent without any. */
  readonly percentiles?: Readonly<Record<string, number>>;
}

/** The spread of a column, with more percentiles (0 to 100) where they are requested; undefined for an empty one. The column is not changed. */
export function spreadOf(column: Float64Array, percentiles: readonly number[] = []): Spread | undefined {
  const sorted = Float64Array.from(column).sort();
  const count = sorted.length;
  const [min, max] = [sorted[0], sorted[count - 1]];
  if (min === undefined || max === undefined) return undefined;
  const mean = meanOf(sorted);
  return {
    count,
    min,
    max,
    mean,
    median: quantile(sorted, 0.5),
    p90: trtexecPercentile(sorted, 90),
    p95: trtexecPercentile(sorted, 95),
    p99: trtexecPercentile(sorted, 99),
    coefficientOfVariation: mean === 0 ? null : deviationOf(sorted, mean) / mean,
    interpolated: {
      p90: quantile(sorted, 0.9),
      p95: quantile(sorted, 0.95),
      p99: quantile(sorted, 0.99),
    },
    ...(percentiles.length === 0
      ? {}
      : {
          percentiles: Object.fromEntries(
            percentiles.map((percent) => [`p${percent}`, trtexecPercentile(sorted, percent)]),
          ),
        }),
  };
}

/** Percentiles of a spread by name, the usual ones and those that were requested, in order. */
export function percentilesOf(
  spread: Spread,
  usual: readonly ('p90' | 'p95' | 'p99')[] = ['p90', 'p95', 'p99'],
): readonly (readonly [string, number])[] {
  const all = { ...Object.fromEntries(usual.map((name) => [name, spread[name]])), ...spread.percentiles };
  return Object.entries(all).sort(([a], [b]) => Number(a.slice(1)) - Number(b.slice(1)));
}

/**
 * The percentile as trtexec 8.6 to 11 print it: element `n - 1 - int((1 - p/100) * n)` of the sorted times, not below the first.
 * It computes in single precision, which decides the index where the product is a whole number, so this does too.
 */
export function trtexecPercentile(sorted: Float64Array, percent: number): number {
  const excludedShare = Math.fround(1 - Math.fround(Math.fround(percent) / 100));
  const excluded = Math.trunc(Math.fround(excludedShare * sorted.length));
  return sorted[Math.max(sorted.length - 1 - excluded, 0)] ?? Number.NaN;
}

/** Over all values, as trtexec computes it: the divisor is n. */
function deviationOf(column: Float64Array, mean: number): number {
  let squares = 0;
  for (const value of column) squares += (value - mean) ** 2;
  return Math.sqrt(squares / column.length);
}
