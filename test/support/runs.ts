/** How often a fuzz test runs: a tenth of `count` in `npm test`, and `count` in the full tier, where its file runs again. */
export const runs = (count: number): number =>
  process.env.TRTFORGE_TESTS_FULL === '1' ? count : Math.ceil(count / 10);
