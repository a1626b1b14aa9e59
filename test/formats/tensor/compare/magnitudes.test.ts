import { describe, expect, it } from 'vitest';
import { magnitudesOf } from '../../../../src/formats/tensor/compare/pair-sums.js';
import { floatsOf } from '../../../../src/formats/tensor/tensor-reader.js';
import { randomNumbers } from '../../../support/mutations.js';

describe('how large numbers are', () => {
  it.each([0, 1, 100, 2047, 2048, 32_768, 65_536, 65_537, 200_003])(
    'root mean square and peak of %d numbers',
    (length) => {
      const random = randomNumbers(length + 1);
      const values = Float32Array.from({ length }, () => 8 * (random() - 0.6));
      const { rms, peak } = magnitudesOf(floatsOf(values));
      const squares = values.reduce((sum, value) => sum + value * value, 0);
      expect(rms).toBeCloseTo(Math.sqrt(squares / Math.max(1, length)), 5);
      expect(peak).toBe(values.reduce((most, value) => Math.max(most, Math.abs(value)), 0));
    },
  );

  it.each([10, 100_000])(
    'leaves out what is not finite, and knows squares that float32 does not: %d',
    (length) => {
      const values = new Float32Array(length).fill(2);
      values.set([Number.NaN, Number.POSITIVE_INFINITY, 1e30], 3);
      const { rms, peak } = magnitudesOf(floatsOf(values));
      expect(peak).toBe(Math.fround(1e30));
      expect(rms).toBeCloseTo(Math.fround(1e30) / Math.sqrt(length - 2), -24);
      expect(magnitudesOf(floatsOf(values.fill(-2, 3, 6)))).toEqual({ rms: 2, peak: 2, least: -2 });
    },
  );
});
