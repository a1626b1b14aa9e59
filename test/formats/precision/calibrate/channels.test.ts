import { describe, expect, test } from 'vitest';
import { ChannelSums } from '../../../../src/formats/precision/calibrate/ranges.js';

const momentsOf = (samples: readonly (readonly number[])[], shape: readonly number[], axis: number) => {
  const sums = new ChannelSums();
  for (const sample of samples) sums.add(Float32Array.from(sample), shape, axis);
  return sums.result();
};

describe('the moments of channels', () => {
  test('are of the last axis, over all positions and samples', () => {
    const { mean, variance } = momentsOf(
      [
        [1, 10, 3, 10],
        [5, 10, 7, 14],
      ],
      [1, 2, 2],
      -1,
    );
    expect([...mean]).toEqual([4, 11]);
    expect([...variance]).toEqual([5, 3]);
  });

  test('are of the second axis of images', () => {
    const { mean, variance } = momentsOf([[1, 2, 3, 4, -5, -5, -5, -5]], [1, 2, 2, 2], 1);
    expect([...mean]).toEqual([2.5, -5]);
    expect([...variance]).toEqual([1.25, 0]);
  });

  test('of large tensors are those of some positions, in all rows and columns', () => {
    const [height, width] = [64, 64];
    const image = Array.from({ length: height * width }, (_, at) => Math.floor(at / width) + (at % width));
    const { mean, variance } = momentsOf([image], [1, 1, height, width], 1);
    expect(mean[0]).toBeGreaterThan(61);
    expect(mean[0]).toBeLessThan(65);
    // Twice the variance of 0 to 63.
    expect(variance[0]! / ((2 * (64 ** 2 - 1)) / 12)).toBeCloseTo(1, 0);
  });

  test('a sample with another number of channels does not count', () => {
    const sums = new ChannelSums();
    sums.add(Float32Array.of(1, 2), [1, 2], -1);
    sums.add(Float32Array.of(9, 9, 9), [1, 3], -1);
    expect([...sums.result().mean]).toEqual([1, 2]);
  });
});
