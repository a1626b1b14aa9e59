const isFull = process.env.TRTFORGE_TESTS_FULL === '1';

/** How often a fuzz test runs: a tenth of `count` in `npm test`, and `count` in the full tier, where its file runs again. */
export const runs = (count: number): number => (isFull ? count : Math.ceil(count / 10));

/**
 * What an option does at one place, in every verb that hands it there: the first `count` rows in `npm test`, and all in the full tier, where the file runs again.
 */
export const verbs = <T>(rows: readonly T[], count = 1): readonly T[] =>
  isFull ? rows : rows.slice(0, count);
