import { describe, expect, it } from 'vitest';
import { floatTensor } from '../../../src/formats/tensor/tensor.js';
import { tensorReader } from '../../../src/formats/tensor/tensor-reader.js';
import { errorMap } from '../../../src/quality/verify/error-map.js';

const tensor = (shape: readonly number[], valueAt: (element: number) => number) =>
  tensorReader(
    floatTensor(
      'float32',
      shape,
      Float32Array.from({ length: shape.reduce((product, size) => product * size, 1) }, (_, i) => valueAt(i)),
    ),
  );

describe('a map of errors', () => {
  it('averages all but the two longest axes, and samples', () => {
    const shape = [2, 3, 4];
    const zeros = tensor(shape, () => 0);
    // Off by 1 + the place on the last axis in the first sample, by nothing in the second.
    const off = tensor(shape, (element) => 1 + (element % 4));
    const map = errorMap('t', [off, zeros], [zeros, zeros]);
    expect(map).toMatchObject({ rows: { axis: 1, size: 3 }, columns: { axis: 2, size: 4 } });
    expect(map.cells).toEqual(Array.from({ length: 3 }, () => [0.5, 1, 1.5, 2]));
  });

  it('puts neighbours of a long axis together', () => {
    const shape = [480];
    const map = errorMap(
      't',
      [tensor(shape, (element) => Math.floor(element / 10))],
      [tensor(shape, () => 0)],
    );
    expect(map).toMatchObject({ rows: { axis: null, size: 1 }, columns: { axis: 0, size: 480 } });
    expect(map.cells).toEqual([Array.from({ length: 48 }, (_, cell) => cell)]);
  });

  it('marks what is not finite on one side only', () => {
    const infinity = Number.POSITIVE_INFINITY;
    const map = errorMap('t', [tensor([3], () => infinity)], [tensor([3], (i) => (i === 0 ? infinity : i))]);
    expect(map.cells).toEqual([[0, null, null]]);
  });

  it('has one cell for a number', () => {
    expect(errorMap('t', [tensor([], () => 3)], [tensor([], () => 1)]).cells).toEqual([[2]]);
  });
});
