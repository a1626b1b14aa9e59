import { describe, expect, test } from 'vitest';
import {
  scheduled,
  simulateLengths,
  validResultLength,
} from '../../../../src/products/streaming/contract/cache-length.js';
import { stepsOf } from '../../../../src/products/streaming/fastconformer.js';

const rule = (drop: number, capacity = 256) => ({ capacity, dropExtra: 2, drop });
const lengths = (drop: number, frames: readonly number[]) =>
  simulateLengths(rule(drop), frames).map(({ stateOut }) => stateOut);

describe('the cache-length rule', () => {
  test.each([
    [592, 74],
    [593, 75],
    [584, 73],
    [577, 73],
    [57, 8],
    [48, 6],
    [41, 6],
    [50, 7],
    [1, 1],
  ])('%i frames are %i steps', (frames, steps) => {
    expect(stepsOf(frames)).toBe(steps);
  });

  test.each([
    { what: 'chunks of 592, drop 72: empty for ever', drop: 72, frames: [592, 592, 592], out: [0, 0, 0] },
    { what: 'one more frame, drop 72: it grows', drop: 72, frames: [592, 592, 593, 593], out: [0, 0, 1, 2] },
    { what: '577 then 593, drop 71', drop: 71, frames: [577, 593, 593, 593], out: [0, 2, 4, 6] },
    { what: 'chunks of 48, drop 3', drop: 3, frames: [48, 48, 48, 48], out: [1, 2, 3, 4] },
    { what: '41 then 57, drop 3', drop: 3, frames: [41, 57, 57, 57], out: [1, 4, 7, 10] },
    { what: 'an engine stuck at 41', drop: 3, frames: [41, 41, 41], out: [1, 2, 3] },
    { what: 'chunks of 50, drop 72: below zero', drop: 72, frames: [50], out: [-67] },
  ])('gives the published lengths for $what', ({ drop, frames, out }) => {
    expect(lengths(drop, frames)).toEqual(out);
  });

  test('reaches 198 after the 200 chunks of the published log and 148 after 50 of the 41/57 schedule', () => {
    expect(lengths(72, [592, ...scheduled({ first: 592, rest: 593 }, 199)]).at(-1)).toBe(198);
    expect(lengths(3, scheduled({ first: 41, rest: 57 }, 50)).at(-1)).toBe(148);
    expect(lengths(3, scheduled({ first: 41, rest: 41 }, 50)).at(-1)).toBe(50);
  });

  test('stops at the capacity', () => {
    expect(lengths(3, scheduled({ first: 41, rest: 57 }, 300)).at(-1)).toBe(256);
  });

  test.each([
    [72, 584, 1],
    [71, 584, 2],
    [3, 48, 3],
  ])('with a drop of %i and %i frames of its own a chunk gives %i valid steps', (drop, frames, valid) => {
    expect(validResultLength(rule(drop), frames)).toBe(valid);
  });
});
