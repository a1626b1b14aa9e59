import type { BenchAgainst } from './result.js';
import { meanOf } from './statistics.js';

/** An interval that holds 1 shows equality only when it reaches no further than this to either side. */
const EQUAL_WITHIN = 0.02;
/** Two processes with the same engine differ by this much, each steadily: where their memory lies, say. */
const SAME_ENGINE = 0.005;

export function verdictOf({ low, high }: Ratio): BenchAgainst['verdict'] {
  const within = (margin: number) => low >= 1 - margin && high <= 1 + margin;
  if (within(SAME_ENGINE)) return 'equal';
  if (high < 1) return 'faster';
  if (low > 1) return 'slower';
  return within(EQUAL_WITHIN) ? 'equal' : 'inconclusive';
}

/** Fails only when the whole interval is above the limit, passes only when none of it is. */
export function gateOf(ratio: Ratio, limit: number): NonNullable<BenchAgainst['gate']> {
  const told = `the ratio is ${told4(ratio.ratio)} (${told4(ratio.low)} to ${told4(ratio.high)})`;
  if (ratio.low > limit) return { limit, outcome: 'fail', reason: `${told}, above ${limit}` };
  if (ratio.high <= limit) return { limit, outcome: 'pass', reason: `${told}, within ${limit}` };
  return {
    limit,
    outcome: 'inconclusive',
    reason: `${told}, which holds the limit ${limit}: measure more rounds or longer`,
  };
}

const told4 = (value: number): string => String(Number(value.toPrecision(4)));

/** A ratio with the interval that holds the true one in 95 of 100 such comparisons. */
export interface Ratio {
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
}

/**
 * The ratio of two things measured in rounds, one value of each per round. Rounds are paired, so what slows both (heat, clocks) cancels:
 * Student's t interval of the mean of `ln(a / b)`, taken back by exp. Needs two rounds or more and positive values.
 */
export function pairedRatio(a: readonly number[], b: readonly number[]): Ratio {
  const logs = Float64Array.from(a, (value, round) => Math.log(value / (b[round] ?? Number.NaN)));
  const mean = meanOf(logs);
  const freedom = logs.length - 1;
  let squares = 0;
  for (const log of logs) squares += (log - mean) ** 2;
  const half = studentT975(freedom) * Math.sqrt(squares / freedom / logs.length);
  return { ratio: Math.exp(mean), low: Math.exp(mean - half), high: Math.exp(mean + half) };
}

/** Abramowitz and Stegun, Handbook of Mathematical Functions, table 26.10, column 0.975. */
const tabled = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
const NORMAL_975 = 1.959963985;

/** The 0.975 quantile of Student's t: tabled up to 10 degrees of freedom, above by the expansion 26.7.5 of the same book. */
export function studentT975(freedom: number): number {
  const exact = tabled[freedom - 1];
  if (exact !== undefined) return exact;
  const x = NORMAL_975;
  return (
    x +
    (x ** 3 + x) / (4 * freedom) +
    (5 * x ** 5 + 16 * x ** 3 + 3 * x) / (96 * freedom ** 2) +
    (3 * x ** 7 + 19 * x ** 5 + 17 * x ** 3 - 15 * x) / (384 * freedom ** 3)
  );
}
