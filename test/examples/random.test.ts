import { describe, expect, it } from 'vitest';
import { RandomStream } from '../../examples/models/random.js';

const draw = (seed: number, name: string, count: number, mean = 0, deviation = 1): Float32Array => {
  const values = new Float32Array(count);
  new RandomStream(seed, name).fillNormal(values, mean, deviation);
  return values;
};

describe('RandomStream', () => {
  it('depends on nothing but seed and name', () => {
    expect(draw(1, 'conv1.weight', 100)).toEqual(draw(1, 'conv1.weight', 100));
    expect(draw(1, 'conv1.weight', 100)).not.toEqual(draw(2, 'conv1.weight', 100));
    expect(draw(1, 'conv1.weight', 100)).not.toEqual(draw(1, 'conv2.weight', 100));
  });

  it('gives the same values in one piece and in many', () => {
    const whole = draw(7, 'w', 1000);
    const pieces = new Float32Array(1000);
    const stream = new RandomStream(7, 'w');
    for (let from = 0; from < 1000; from += 125) stream.fillNormal(pieces.subarray(from, from + 125), 0, 1);
    expect(pieces).toEqual(whole);
  });

  it('is normal: moments, quantiles and tails of a million values', () => {
    const values = draw(3, 'w', 1_000_000);
    const moment = (power: number) => values.reduce((sum, x) => sum + x ** power, 0) / values.length;
    expect(moment(1)).toBeCloseTo(0, 2);
    expect(moment(2)).toBeCloseTo(1, 2);
    expect(moment(3)).toBeCloseTo(0, 1);
    expect(moment(4)).toBeCloseTo(3, 1);
    const sorted = values.slice().sort();
    for (const [p, quantile] of [
      [0.025, -1.959964],
      [0.25, -0.67449],
      [0.5, 0],
      [0.75, 0.67449],
      [0.999, 3.090232],
    ] as const) {
      expect(sorted[Math.floor(p * sorted.length)]).toBeCloseTo(quantile, 1);
    }
    expect(Math.max(-sorted[0]!, sorted.at(-1)!)).toBeLessThanOrEqual(4);
  });

  it('applies mean and deviation', () => {
    const values = draw(5, 'gain', 200_000, 1, 0.02);
    const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
    expect(mean).toBeCloseTo(1, 3);
    expect(Math.max(...values.subarray(0, 50_000))).toBeLessThanOrEqual(1.0801);
  });

  it('uses the whole mantissa, so that a conversion to FP16 has something to round', () => {
    const values = draw(9, 'w', 10_000);
    const fp16Exact = values.filter((x) => Math.fround(x * 2 ** 13) % 1 === 0 && Math.abs(x) < 1);
    expect(fp16Exact.length).toBeLessThan(20);
  });
});
