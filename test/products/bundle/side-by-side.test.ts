import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { availableMemory, runWithin } from '../../../src/products/bundle/side-by-side.js';

/** Tasks that note how many bytes are in use at once. */
function watched(sizes: readonly number[], fail?: number) {
  const seen = { bytes: 0, most: 0, atOnce: 0, started: [] as number[] };
  let running = 0;
  const tasks = sizes.map((bytes, index) => ({
    bytes,
    run: async () => {
      seen.started.push(index);
      running++;
      seen.bytes += bytes;
      seen.most = Math.max(seen.most, seen.bytes);
      seen.atOnce = Math.max(seen.atOnce, running);
      await setTimeout(5);
      seen.bytes -= bytes;
      running--;
      if (index === fail) throw new Error(`task ${index}`);
      return index;
    },
  }));
  return { tasks, seen };
}

describe('building within a budget of memory', () => {
  test('runs side by side what fits, and gives results in order', async () => {
    const { tasks, seen } = watched([6, 3, 3, 6]);
    expect(await runWithin(tasks, 9, 4)).toEqual([0, 1, 2, 3]);
    expect(seen.most).toBeLessThanOrEqual(9);
    expect(seen.atOnce).toBe(2);
  });

  test('runs what is larger than the budget alone', async () => {
    const { tasks, seen } = watched([100, 1, 1]);
    expect(await runWithin(tasks, 10, 3)).toEqual([0, 1, 2]);
    expect(seen.most).toBe(100);
  });

  test('runs one at a time where only one may run', async () => {
    const { tasks, seen } = watched([1, 1, 1]);
    await runWithin(tasks, 100, 1);
    expect(seen.atOnce).toBe(1);
  });

  test('starts nothing after a failure, and waits for what runs', async () => {
    const { tasks, seen } = watched([5, 5, 5, 5], 0);
    await expect(runWithin(tasks, 10, 2)).rejects.toThrow('task 0');
    expect(seen.started).toEqual([0, 1]);
    expect(seen.bytes).toBe(0);
  });

  test('reports how much there is', () => expect(availableMemory()).toBeGreaterThan(1 << 26));
});
