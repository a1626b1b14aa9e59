/** Statistics of plain lists of numbers. How far tensors are apart is `formats/tensor/compare`. */
type Numbers = ArrayLike<number>;

/** NaN for none. */
export function meanOf(values: Numbers): number {
  let sum = 0;
  for (let at = 0; at < values.length; at++) sum += values[at]!;
  return values.length === 0 ? Number.NaN : sum / values.length;
}

/** The value at position q * (n - 1) of the sorted ones, linear between neighbours: numpy's percentile. NaN for none. */
export function quantile(sorted: Numbers, q: number): number {
  const position = q * (sorted.length - 1);
  const low = Math.floor(position);
  const below = sorted[low] ?? Number.NaN;
  const above = sorted[low + 1] ?? below;
  return above === below ? below : below + (above - below) * (position - low);
}

/** NaN for none. */
export const medianOf = (values: Numbers): number => quantile(Float64Array.from(values).sort(), 0.5);

/** Statistics of many numbers; NaN where there are none. Percentiles as numpy computes them. */
export interface Figures {
  readonly min: number;
  readonly mean: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

export function figuresOf(values: Numbers): Figures {
  const sorted = Float64Array.from(values).sort();
  return {
    min: sorted[0] ?? Number.NaN,
    mean: meanOf(values),
    p50: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    p99: quantile(sorted, 0.99),
    max: sorted.at(-1) ?? Number.NaN,
  };
}

/** A straight line's slope per step, and an interval that holds it. */
export interface Slope {
  readonly perStep: number;
  readonly low: number;
  readonly high: number;
}

/** The slope per step of least squares over (0, y0), (1, y1), …; 0 of fewer than two values. */
export function leastSquares(values: readonly number[]): number {
  const n = values.length;
  if (n < 2) return 0;
  const meanX = (n - 1) / 2;
  const meanY = meanOf(values);
  const sxx = (n * (n * n - 1)) / 12;
  return values.reduce((sum, value, x) => sum + (x - meanX) * (value - meanY), 0) / sxx;
}

/** More values than this are thinned out evenly: all pairs of 1500 are a million slopes. */
const MOST_POINTS = 1500;

/** 97.5 % point of the normal distribution. */
const Z = 1.959963984540054;

/** Each bound of an interval of `theilSen` holds for so many lists; the two together err once in a thousand. */
export const CERTAIN = '99.95 %';
const Z_CERTAIN = 3.290526731491926;

/**
 * Theil-Sen: the median of the slopes between all pairs, which up to 29 % of outliers do not move. The interval is Sen's, from the variance of
 * Kendall's statistic (P. K. Sen, 1968): each bound is 99.95 % certain.
 */
export function theilSen(values: readonly number[]): Slope {
  const stride = Math.max(1, Math.ceil(values.length / MOST_POINTS));
  const kept = values.filter((_, at) => at % stride === 0);
  const n = kept.length;
  if (n < 2) return { perStep: 0, low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };
  const slopes = new Float64Array((n * (n - 1)) / 2);
  let at = 0;
  for (let i = 0; i < n; i++)
    for (let j = i + 1; j < n; j++) slopes[at++] = (kept[j]! - kept[i]!) / ((j - i) * stride);
  slopes.sort();
  const width = Z_CERTAIN * Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18);
  const lower = Math.floor((slopes.length - width) / 2) - 1;
  const upper = Math.ceil((slopes.length + width) / 2);
  return {
    perStep: quantile(slopes, 0.5),
    low: slopes[lower] ?? Number.NEGATIVE_INFINITY,
    high: slopes[upper] ?? Number.POSITIVE_INFINITY,
  };
}

/** Abramowitz and Stegun, Handbook of Mathematical Functions, table 26.10, column 0.975. */
const tabled = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/** The 0.975 quantile of Student's t: tabled up to 10 degrees of freedom, above by the expansion 26.7.5 of the same book. */
export function studentT975(freedom: number): number {
  const exact = tabled[freedom - 1];
  if (exact !== undefined) return exact;
  return (
    Z +
    (Z ** 3 + Z) / (4 * freedom) +
    (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / (96 * freedom ** 2) +
    (3 * Z ** 7 + 19 * Z ** 5 + 17 * Z ** 3 - 15 * Z) / (384 * freedom ** 3)
  );
}

/** Those than which no other is at most as high in both figures and lower in one. */
export const paretoFront = <T>(all: readonly T[], figures: (each: T) => readonly [number, number]): T[] =>
  all.filter((each) => {
    const [x, y] = figures(each);
    return !all.some((other) => {
      const [a, b] = figures(other);
      return a <= x && b <= y && (a < x || b < y);
    });
  });
