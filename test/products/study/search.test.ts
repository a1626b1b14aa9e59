import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Outcome, smallestPassing } from '../../../src/products/study/search.js';

const units = (count: number) => Array.from({ length: count }, (_, index) => index);

/** Searches where exactly these are needed, and counts the different sets that were tried. */
async function searched(count: number, culprits: ReadonlySet<number>, budget = Number.POSITIVE_INFINITY) {
  const tried = new Set<string>();
  const oracle = async (changes: readonly number[]): Promise<Outcome | null> => {
    const key = [...changes].sort((a, b) => a - b).join();
    // Nothing at all was tried before the search.
    if (key !== '' && !tried.has(key)) {
      if (tried.size === budget) return null;
      tried.add(key);
    }
    return [...culprits].every((each) => changes.includes(each)) ? 'pass' : 'fail';
  };
  return { ...(await smallestPassing(units(count), oracle)), tried: tried.size };
}

const problems = fc
  .integer({ min: 1, max: 300 })
  .chain((count) =>
    fc.tuple(
      fc.constant(count),
      fc.uniqueArray(fc.integer({ min: 0, max: count - 1 }), { minLength: 1, maxLength: Math.min(6, count) }),
    ),
  );

describe('the smallest set that passes', () => {
  it('is exactly what is needed, within k log2 n answers', async () => {
    await fc.assert(
      fc.asyncProperty(problems, async ([count, culprits]) => {
        const found = await searched(count, new Set(culprits));
        expect([...found.changes].sort((a, b) => a - b)).toEqual(culprits.sort((a, b) => a - b));
        expect(found.isMinimal).toBe(true);
        const log = Math.ceil(Math.log2(count + 1));
        expect(found.tried).toBeLessThanOrEqual(culprits.length * (2 * log + 2));
      }),
    );
  });

  it.each([
    [1, 1],
    [432, 18],
    [10_000, 28],
  ])('of %i costs at most %i answers for one culprit, wherever it stands', async (count, most) => {
    for (const culprit of [0, 1, Math.floor(count / 3), Math.floor(count / 2), count - 1])
      expect((await searched(count, new Set([culprit]))).tried).toBeLessThanOrEqual(most);
  });

  it('costs one answer each where all are needed', async () => {
    expect((await searched(12, new Set(units(12)))).tried).toBeLessThanOrEqual(17);
  });

  it('is found after a few answers where the likely ones stand first', async () => {
    expect((await searched(400, new Set([0, 1]))).tried).toBeLessThanOrEqual(4);
  });

  it('is what passed so far where the budget ends', async () => {
    await fc.assert(
      fc.asyncProperty(problems, fc.integer({ min: 0, max: 12 }), async ([count, culprits], budget) => {
        const { changes, isMinimal, tried } = await searched(count, new Set(culprits), budget);
        expect(tried).toBeLessThanOrEqual(budget);
        for (const culprit of culprits) expect(changes).toContain(culprit);
        if (isMinimal) expect(changes).toHaveLength(culprits.length);
      }),
    );
  });

  it('passes and has no change too many although answers contradict each other', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), fc.integer(), async (count, seed) => {
        const all = units(count);
        // Any answer but those for nothing and for everything.
        const outcomes = new Map<string, Outcome>([[all.join(), 'pass']]);
        let state = seed | 1;
        const oracle = async (changes: readonly number[]): Promise<Outcome> => {
          const key = [...changes].sort((a, b) => a - b).join();
          state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
          const drawn: Outcome = (['pass', 'fail', 'unresolved'] as const)[(state >>> 16) % 3] ?? 'fail';
          const outcome = outcomes.get(key) ?? drawn;
          outcomes.set(key, outcome);
          return outcome;
        };
        const { changes } = await smallestPassing(all, oracle);
        expect(await oracle(changes)).toBe('pass');
      }),
    );
  });

  it('takes what could not be tried for what does not pass', async () => {
    const oracle = async (changes: readonly number[]): Promise<Outcome> =>
      changes.length % 2 === 1 ? 'unresolved' : changes.includes(5) ? 'pass' : 'fail';
    const { changes, isMinimal } = await smallestPassing(units(8), oracle);
    expect(changes).toContain(5);
    expect(await oracle(changes)).toBe('pass');
    expect(isMinimal).toBe(false);
  });

  it('is found although one response on the way was empty', async () => {
    for (let lost = 1; lost <= 12; lost++) {
      const answers = new Map<string, Outcome>();
      const oracle = async (changes: readonly number[]): Promise<Outcome> => {
        const key = changes.join();
        const isLost = !answers.has(key) && answers.size + 1 === lost;
        const outcome = isLost
          ? 'unresolved'
          : [3, 9].every((each) => changes.includes(each))
            ? 'pass'
            : 'fail';
        if (!answers.has(key)) answers.set(key, outcome);
        return answers.get(key) ?? outcome;
      };
      const { changes, isMinimal } = await smallestPassing(units(12), oracle);
      if (isMinimal) expect([...changes].sort()).toEqual([3, 9]);
      else expect([...answers.values()]).toContain('unresolved');
    }
  });
});
