import { describe, expect, test } from 'vitest';
import { MagnitudeHistogram } from '../../../../src/formats/precision/calibrate/histogram.js';
import { extremesOf } from '../../../../src/formats/precision/calibrate/ranges.js';

const of = (...samples: readonly (readonly number[])[]) => {
  const histogram = new MagnitudeHistogram();
  for (const sample of samples) histogram.add(Float32Array.from(sample));
  return histogram.result();
};
const filled = (counts: Float64Array) =>
  Object.fromEntries([...counts.entries()].filter(([, count]) => count > 0));

describe('the extremes of a tensor', () => {
  test.each([
    [[], 0, 0],
    [[3], 0, 3],
    [[-3], -3, 0],
    [[2, -1, 5, -7, 0.5], -7, 5],
    [[-0, 0], 0, 0],
    [[1e-42, -1e-42], Math.fround(-1e-42), Math.fround(1e-42)],
    [[1, Number.POSITIVE_INFINITY], 0, Number.POSITIVE_INFINITY],
    [[1, Number.NEGATIVE_INFINITY], Number.NEGATIVE_INFINITY, 1],
    [[1, Number.NaN, 2], Number.NaN, Number.NaN],
  ])('%j are %d and %d', (values, min, max) => {
    expect(extremesOf(Float32Array.from(values))).toEqual({ min, max });
  });

  test('a NaN with a sign is one', () => {
    const values = new Float32Array(Uint32Array.of(0x3f800000, 0xffc00000).buffer);
    expect(extremesOf(values).max).toBeNaN();
  });
});

describe('a histogram of magnitudes', () => {
  test('has 2,048 bins up to the largest of the first sample, which is in the last', () => {
    const { width, counts } = of([0, -1, 2047.5, -2048, 0.5]);
    expect({ width, bins: counts.length }).toEqual({ width: 1, bins: 2048 });
    expect(filled(counts)).toEqual({ 0: 2, 1: 1, 2047: 2 });
  });

  test('grows by whole bins of the same width', () => {
    const { width, counts } = of([2048], [3000.5, 1]);
    expect({ width, bins: counts.length }).toEqual({ width: 1, bins: 3001 });
    expect(filled(counts)).toEqual({ 1: 1, 2047: 1, 3000: 1 });
  });

  test('has wider bins where it would have too many of them', () => {
    const { width, counts } = of([2048, 3.5], [40_000]);
    expect(width).toBe(4);
    expect(filled(counts)).toEqual({ 0: 1, 511: 1, 9999: 1 });
  });

  test('begins with the first sample that is not all zeros, and counts the zeros before it', () => {
    const { width, counts } = of([0, 0, 0], [], [0, 2048]);
    expect(width).toBe(1);
    expect(filled(counts)).toEqual({ 0: 4, 2047: 1 });
    expect(of([0, 0])).toMatchObject({ width: 0 });
    expect(filled(of([0, 0]).counts)).toEqual({ 0: 2 });
  });

  test('counts every value of tensors whose length is no multiple of anything', () => {
    const random = Array.from({ length: 1001 }, (_, at) => Math.sin(at * at) * 3);
    const { width, counts } = of(random, random.slice(0, 7), random.slice(3, 13));
    const direct = new Map<number, number>();
    for (const value of [...random, ...random.slice(0, 7), ...random.slice(3, 13)]) {
      const bin = Math.min(2047, Math.floor(Math.abs(Math.fround(value)) / width));
      direct.set(bin, (direct.get(bin) ?? 0) + 1);
    }
    const different = [...counts].reduce(
      (sum, count, bin) => sum + Math.abs(count - (direct.get(bin) ?? 0)),
      0,
    );
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1018);
    // A value on an edge may be counted on either side of it.
    expect(different).toBeLessThanOrEqual(2);
  });

  test('counts nothing of a sample with NaN or an infinity, which its extremes show', () => {
    const histogram = new MagnitudeHistogram();
    expect(histogram.add(Float32Array.of(1, Number.NaN)).min).toBeNaN();
    expect(histogram.add(Float32Array.of(1, Number.POSITIVE_INFINITY)).max).toBe(Number.POSITIVE_INFINITY);
    expect(histogram.result().counts.every((count) => count === 0)).toBe(true);
  });
});
