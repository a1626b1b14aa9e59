import type { BenchAgainst } from './against-result.js';
import type { Ratio } from './ratio.js';

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
