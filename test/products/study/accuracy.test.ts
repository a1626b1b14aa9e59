import { expect, test } from 'vitest';
import { AccuracySums } from '../../../src/products/study/accuracy.js';
import { floats } from '../../formats/precision/judge.js';

const named = (tensors: Readonly<Record<string, readonly number[]>>) =>
  new Map(Object.entries(tensors).map(([name, values]) => [name, floats([values.length], values)]));

test('signal to noise and cosine are those of the worst tensor, over all samples', () => {
  const sums = new AccuracySums(['a', 'b']);
  sums.add(named({ a: [3, 4], b: [10, 0] }), named({ a: [3, 5], b: [10, 0] }));
  sums.add(named({ a: [0, 5], b: [0, 10] }), named({ a: [0, 5], b: [0, 9.9] }));
  const { sqnrDb, cosineMin, cosineMean, tensors } = sums.result();
  // 50 over 1 for a; 200 over 0.01 for b.
  expect(sqnrDb).toBeCloseTo(10 * Math.log10(50), 6);
  expect(tensors.map((tensor) => tensor.sqnrDb)).toEqual([
    sqnrDb,
    expect.closeTo(10 * Math.log10(20_000), 3),
  ]);
  expect(cosineMin).toBeCloseTo(29 / (5 * Math.sqrt(34)), 6);
  expect(cosineMean).toBeCloseTo((1 + 29 / (5 * Math.sqrt(34))) / 2, 6);
});

test('equal values have no noise, values that are not finite no signal, and zeros do not count', () => {
  const sums = new AccuracySums(['zero', 'same']);
  sums.add(named({ zero: [0, 0], same: [1, 2] }), named({ zero: [0, 0], same: [1, 2] }));
  expect(sums.result()).toMatchObject({ sqnrDb: Number.POSITIVE_INFINITY, cosineMin: 1 });
  const broken = new AccuracySums(['a']);
  broken.add(named({ a: [1, 2] }), named({ a: [1, Number.NaN] }));
  expect(broken.result().sqnrDb).toBe(Number.NEGATIVE_INFINITY);
});

test('figures of values that are not finite are not finite either, but for equal infinities', () => {
  const { NaN: nan, POSITIVE_INFINITY: infinity } = Number;
  const of = (reference: readonly number[], candidate: readonly number[]) => {
    const sums = new AccuracySums(['a']);
    sums.add(named({ a: reference }), named({ a: candidate }));
    return sums.result();
  };
  expect(of([3, -infinity, 4], [3, -infinity, 5]).sqnrDb).toBeCloseTo(10 * Math.log10(25), 6);
  expect(of([1, -infinity], [1, -infinity])).toMatchObject({ sqnrDb: infinity, cosineMin: 1 });
  for (const [reference, candidate] of [
    [
      [nan, 1],
      [1, 1],
    ],
    [
      [nan, nan],
      [nan, nan],
    ],
    [
      [1, 2],
      [nan, 2.5],
    ],
    [
      [1, 2],
      [1, infinity],
    ],
    [
      [1, -infinity],
      [1, -65504],
    ],
    [[1, 2], [1]],
  ] as const)
    expect(of(reference, candidate).sqnrDb).toBe(-infinity);
});
