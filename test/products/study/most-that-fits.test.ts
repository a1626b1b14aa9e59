import { describe, expect, test } from 'vitest';
import { mostThatFits } from '../../../src/products/study/search.js';

/** Items whose errors add up. */
function searched(noises: readonly number[], limit: number, guess = 0) {
  const tried: number[][] = [];
  const sum = (items: readonly number[]) => items.reduce((total, item) => total + noises[item]!, 0);
  const found = mostThatFits(
    noises.map((_, index) => index),
    {
      guess,
      fits: async (items) => {
        tried.push([...items]);
        return sum(items) <= limit;
      },
      mayFit: (chosen, item) => sum([...chosen, item]) <= 1.1 * limit,
    },
  );
  return { found, tried, sum };
}

describe('as much of an order as fits', () => {
  test('is its longest prefix, whatever the guess, and what still fits behind it', async () => {
    const noises = [1, 2, 3, 10, 4, 9, 1];
    for (let guess = -1; guess <= noises.length; guess++) {
      const { found, tried } = searched(noises, 11, guess);
      expect(await found).toEqual([0, 1, 2, 4, 6]);
      expect(tried.length).toBeLessThanOrEqual(3 + 3);
    }
  });

  test('is found in few trials where the guess is right', async () => {
    const { found, tried } = searched(
      Array.from({ length: 64 }, () => 1),
      20.5,
      20,
    );
    expect(await found).toHaveLength(20);
    expect(tried.length).toBeLessThanOrEqual(8 + 6);
  });

  test('is nothing where no single item fits', async () => {
    expect(await searched([5, 6, 7], 4).found).toEqual([]);
  });

  test('has always been tried itself, although answers contradict each other', async () => {
    let state = 7;
    for (let round = 0; round < 200; round++) {
      const passed = new Set<string>();
      const chosen = await mostThatFits([0, 1, 2, 3, 4, 5, 6, 7, 8], {
        guess: round % 9,
        fits: async (items) => {
          state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
          const passes = state > 2 ** 31;
          if (passes) passed.add(items.join());
          return passes;
        },
        mayFit: () => true,
      });
      if (chosen.length > 0) expect(passed).toContain(chosen.join());
    }
  });
});
