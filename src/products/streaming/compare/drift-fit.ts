/** A straight line's slope per step, and the interval that holds it with 95 % confidence. */
export interface Slope {
  readonly perChunk: number;
  readonly low: number;
  readonly high: number;
}

/** 97.5 % point of the normal distribution. */
const Z = 1.959963984540054;

/** 99.95 % point: an interval that errs once in a thousand streams. */
export const Z_CERTAIN = 3.290526731491926;

/** More values than this are thinned out evenly: all pairs of 1500 are a million slopes. */
const MOST_POINTS = 1500;

/**
 * Least squares over (0, y0), (1, y1), …; the interval is that of the usual estimate of the slope's error, with Student's quantile.
 * Fewer than three values give an interval without bounds.
 */
export function leastSquares(values: readonly number[]): Slope {
  const n = values.length;
  if (n < 2) return { perChunk: 0, low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };
  const meanX = (n - 1) / 2;
  const meanY = values.reduce((sum, value) => sum + value, 0) / n;
  const sxx = (n * (n * n - 1)) / 12;
  const sxy = values.reduce((sum, value, x) => sum + (x - meanX) * (value - meanY), 0);
  const perChunk = sxy / sxx;
  if (n < 3) return { perChunk, low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };
  const residual = values.reduce((sum, value, x) => sum + (value - meanY - perChunk * (x - meanX)) ** 2, 0);
  const half = student(n - 2) * Math.sqrt(residual / (n - 2) / sxx);
  return { perChunk, low: perChunk - half, high: perChunk + half };
}

/**
 * Theil-Sen: the median of the slopes between all pairs, which up to 29 % of outliers do not move. The interval is Sen's, from the variance of
 * Kendall's statistic (P. K. Sen, 1968), for 95 % unless another point of the normal distribution is given.
 */
export function theilSen(values: readonly number[], z = Z): Slope {
  const stride = Math.max(1, Math.ceil(values.length / MOST_POINTS));
  const kept = values.filter((_, at) => at % stride === 0);
  const n = kept.length;
  if (n < 2) return { perChunk: 0, low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };
  const slopes = new Float64Array((n * (n - 1)) / 2);
  let at = 0;
  for (let i = 0; i < n; i++)
    for (let j = i + 1; j < n; j++) slopes[at++] = (kept[j]! - kept[i]!) / ((j - i) * stride);
  slopes.sort();
  const middle = slopes.length >> 1;
  const perChunk = slopes.length % 2 === 1 ? slopes[middle]! : (slopes[middle - 1]! + slopes[middle]!) / 2;
  const width = z * Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18);
  const lower = Math.floor((slopes.length - width) / 2) - 1;
  const upper = Math.ceil((slopes.length + width) / 2);
  return {
    perChunk,
    low: slopes[lower] ?? Number.NEGATIVE_INFINITY,
    high: slopes[upper] ?? Number.POSITIVE_INFINITY,
  };
}

/** Student's 97.5 % quantile by the Cornish-Fisher expansion around the normal one; within 1 % from 3 degrees of freedom on. */
function student(freedom: number): number {
  if (freedom === 1) return 12.706;
  if (freedom === 2) return 4.303;
  const z3 = Z ** 3;
  return (
    Z +
    (z3 + Z) / (4 * freedom) +
    (5 * Z ** 5 + 16 * z3 + 3 * Z) / (96 * freedom ** 2) +
    (3 * Z ** 7 + 19 * Z ** 5 + 17 * z3 - 15 * Z) / (384 * freedom ** 3)
  );
}

/** What is reported of many numbers; NaN for none. Percentiles as numpy has them. */
export interface Figures {
  readonly min: number;
  readonly mean: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

export function figuresOf(values: readonly number[]): Figures {
  const sorted = values.toSorted((a, b) => a - b);
  return {
    min: sorted[0] ?? Number.NaN,
    mean: meanOf(values),
    p50: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    p99: quantile(sorted, 0.99),
    max: sorted.at(-1) ?? Number.NaN,
  };
}

/** The value at position q * (n - 1) of the sorted ones, linear between neighbours: numpy's percentile. NaN for none. */
export function quantile(sorted: readonly number[], q: number): number {
  if (sorted.length === 0) return Number.NaN;
  const position = q * (sorted.length - 1);
  const low = Math.floor(position);
  const below = sorted[low]!;
  return below + ((sorted[low + 1] ?? below) - below) * (position - low);
}

export const meanOf = (values: readonly number[]): number =>
  values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0) / values.length;
