/** After the longest prefix, so many single additions are tried. */
const MOST_ADDITIONS = 8;

interface Judge<T> {
  /** Whether a set keeps the budget. */
  readonly fits: (items: readonly T[]) => Promise<boolean>;
  /** How long the prefix that keeps it is likely to be. */
  readonly guess: number;
  /** Whether an addition to a set that fits is worth a trial. */
  readonly mayFit: (chosen: readonly T[], item: T) => boolean;
}

/**
 * As much of an order as fits, the most worth first: where nothing fits and everything does not, the longest prefix by halving (from the guess on), then what
 * stands behind it, one by one. What is returned has been tried, unless it is empty: answers need not agree with one another.
 */
export async function mostThatFits<T>(
  order: readonly T[],
  { fits, guess, mayFit }: Judge<T>,
): Promise<readonly T[]> {
  let [fitting, failing] = [0, order.length];
  for (let next = guess; failing - fitting > 1; next = (fitting + failing) >> 1) {
    const length = Math.min(failing - 1, Math.max(fitting + 1, next));
    if (await fits(order.slice(0, length))) fitting = length;
    else failing = length;
  }
  let chosen = order.slice(0, fitting);
  let additions = 0;
  for (const item of order.slice(failing)) {
    if (additions === MOST_ADDITIONS) break;
    if (!mayFit(chosen, item)) continue;
    additions++;
    if (await fits([...chosen, item])) chosen = [...chosen, item];
  }
  return chosen;
}
