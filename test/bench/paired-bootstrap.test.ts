import { expect, test } from 'vitest';
import { differenceInterval } from '../../bench/quantisation/paired-bootstrap.js';

const phrases = (errors: (at: number) => number) => ({
  errors: Array.from({ length: 400 }, (_, at) => errors(at)),
  among: Array.from({ length: 400 }, () => 5),
});

test('a difference that every sample has is certain', () => {
  expect(
    differenceInterval(
      phrases(() => 2),
      phrases(() => 1),
    ),
  ).toEqual([0.2, 0.2]);
});

test('differences that cancel each other are within two standard errors of nothing', () => {
  const ours = phrases((at) => (at % 2 === 0 ? 1 : 0));
  const [low, high] = differenceInterval(
    ours,
    phrases((at) => (at % 2 === 0 ? 0 : 1)),
  );
  // Of 400 differences of 1/5 in size the mean has a standard error of 0.01.
  expect(low).toBeCloseTo(-0.0196, 2.5);
  expect(high).toBeCloseTo(0.0196, 2.5);
  expect(differenceInterval(ours, ours)).toEqual([0, 0]);
});
