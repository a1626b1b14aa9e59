import { describe, expect, it } from 'vitest';
import { randomStream } from '../../../src/formats/tensor/random.js';
import { gateOf, pairedRatio, verdictOf } from '../../../src/quality/bench/compare.js';

describe('the interval of a ratio', () => {
  it.each([3, 5, 10, 30])('holds the true ratio in about 95 of 100 comparisons of %i rounds', (rounds) => {
    const trials = 3000;
    const truth = 1.03;
    const random = randomStream(rounds, 'coverage');
    let held = 0;
    for (let trial = 0; trial < trials; trial++) {
      const heat = Array.from({ length: rounds }, () => Math.exp(0.05 * random.normal()));
      const side = (time: number) => heat.map((factor) => time * factor * Math.exp(0.01 * random.normal()));
      const { low, high } = pairedRatio(side(truth), side(1));
      if (low <= truth && truth <= high) held++;
    }
    expect(held / trials).toBeGreaterThan(0.935);
    expect(held / trials).toBeLessThan(0.965);
  });

  it('cancels what slows both in a round', () => {
    const heat = [1, 1.5, 2, 1.2];
    const { ratio, low, high } = pairedRatio(
      heat.map((factor) => 2 * factor),
      heat,
    );
    for (const number of [ratio, low, high]) expect(number).toBeCloseTo(2, 12);
  });
});

describe('verdict and gate', () => {
  it.each([
    [0.9, 0.95, 'faster'],
    [1.05, 1.1, 'slower'],
    [0.999, 1.001, 'equal'],
    [1.001, 1.003, 'equal'],
    [0.985, 1.015, 'equal'],
    [0.97, 1.01, 'inconclusive'],
    [0.8, 1.3, 'inconclusive'],
  ] as const)('between %f and %f is %s', (low, high, verdict) => {
    expect(verdictOf({ ratio: (low + high) / 2, low, high })).toBe(verdict);
  });

  it.each([
    [1.03, 1.05, 'fail'],
    [0.99, 1.02, 'pass'],
    [1.01, 1.03, 'inconclusive'],
  ] as const)('%f to %f against a limit of 1.02: %s', (low, high, outcome) => {
    expect(gateOf({ ratio: (low + high) / 2, low, high }, 1.02)).toMatchObject({ limit: 1.02, outcome });
  });
});
