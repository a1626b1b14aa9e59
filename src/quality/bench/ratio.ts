import { meanOf, studentT975 } from '../../base/statistics.js';
import type { BenchComparison } from './result.js';

/** An interval that holds 1 shows equality only when it reaches no further than this to either side. */
const EQUAL_WITHIN = 0.02;
/** Two processes with the same engine differ by this much, each steadily: where their memory lies, say. */
const SAME_ENGINE = 0.005;

export function verdictOf({ low, high }: Ratio): BenchComparison['verdict'] {
  const within = (margin: number) => low >= 1 - margin && high <= 1 + margin;
  if (within(SAME_ENGINE)) return 'equal';
  if (high < 1) return 'faster';
  if (low > 1) return 'slower';
  return within(EQUAL_WITHIN) ? 'equal' : 'inconclusive';
}

/** Fails only when the whole interval is above the limit, passes only when none of it is. */
export function gateOf(ratio: Ratio, limit: number): NonNullable<BenchComparison['gate']> {
  const range = `the ratio is ${fourDigits(ratio.ratio)} (${fourDigits(ratio.low)} to ${fourDigits(ratio.high)})`;
  if (ratio.low > limit) return { limit, outcome: 'fail', reason: `${range}, above ${limit}` };
  if (ratio.high <= limit) return { limit, outcome: 'pass', reason: `${range}, within ${limit}` };
  return {
    limit,
    outcome: 'inconclusive',
    reason: `${range}, which includes the limit ${limit}: measure more rounds or longer`,
  };
}

const fourDigits = (value: number): string => String(Number(value.toPrecision(4)));

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
