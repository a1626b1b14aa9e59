/** The outcome of a candidate; `unresolved`: it could not be built or run, which shows nothing about its change. */
export type Outcome = 'pass' | 'fail' | 'unresolved';

/** Tries a set of changes; null: the budget is spent. */
export type Oracle<T> = (changes: readonly T[]) => Promise<Outcome | null>;

export interface Smallest<T> {
  /** A set that passes. */
  readonly changes: readonly T[];
  /** Whether none of its changes can be left out: without any of them it failed. False where the budget ended before, or that was unresolved. */
  readonly isMinimal: boolean;
}

/**
 * A set of changes that passes and of which none can be left out, where all together pass and none at all fails. `order` puts the likely ones first: the
 * fewer stand before the last one that is needed, the cheaper the search. Not every answer needs to agree with the others: what is returned has passed.
 *
 * The shortest prefix that passes ends with a change that is needed; it is kept, and the search goes on before it. One of n costs about 2 log2 n answers,
 * k of n about k log2(n/k) + k: steps double from the front, and where one needed change followed another the next is looked for right before it.
 * Where answers contradict each other (more changes fail although fewer passed), or where one was unresolved, each change in doubt is left out once more, as delta
 * debugging does (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).
 */
export async function smallestPassing<T>(order: readonly T[], oracle: Oracle<T>): Promise<Smallest<T>> {
  const answers: Answer<T>[] = [];
  let isSpent = false;
  const passes = async (changes: readonly T[]): Promise<boolean> => {
    if (isSpent) return false;
    const outcome = await oracle(changes);
    if (outcome === null) isSpent = true;
    else if (outcome !== 'unresolved')
      answers.push({ changes: new Set(changes), passes: outcome === 'pass' });
    return outcome === 'pass';
  };
  const needed: T[] = [];
  let rest = order;
  let isDense = false;
  while (rest.length > 0) {
    const group = rest;
    const enough = (length: number) => passes([...group.slice(0, length), ...needed]);
    // Nothing at all is known to fail.
    const least = needed.length === 0 ? 1 : 0;
    const length = await shortestPrefix(group.length, least, isDense, enough);
    const last = group[length - 1];
    if (last === undefined) break;
    if (isSpent) return { changes: [...group.slice(0, length), ...needed], isMinimal: false };
    isDense = length === group.length;
    needed.unshift(last);
    rest = group.slice(0, length - 1);
  }
  const isDoubtful = contradict(answers);
  let kept: readonly T[] = needed;
  for (const change of needed) {
    if (!isDoubtful && isNeeded(change, kept, answers)) continue;
    const without = kept.filter((other) => other !== change);
    if (await passes(without)) kept = without;
  }
  return { changes: kept, isMinimal: !isSpent && kept.every((change) => isNeeded(change, kept, answers)) };
}

interface Answer<T> {
  readonly changes: ReadonlySet<T>;
  readonly passes: boolean;
}

/** Whether something failed without a change although it had all others of a set. */
const isNeeded = <T>(change: T, kept: readonly T[], answers: readonly Answer<T>[]): boolean =>
  answers.some(
    ({ changes, passes }) =>
      !passes && !changes.has(change) && kept.every((other) => other === change || changes.has(other)),
  );

/** A length that passes although one less does not, from `least` to `all`, which is known to pass; what is shorter than `least` is known to fail. */
async function shortestPrefix(
  all: number,
  least: number,
  isDense: boolean,
  passes: (length: number) => Promise<boolean>,
): Promise<number> {
  let [failing, passing] = [least - 1, all];
  if (isDense && passing - failing > 1) {
    if (await passes(all - 1)) passing = all - 1;
    else return all;
  }
  for (let step = 1; passing - failing > 1; step *= 2) {
    const at = failing + step;
    if (at >= passing) break;
    if (await passes(at)) passing = at;
    else failing = at;
  }
  return (await border(failing, passing, passes)) + 1;
}

/** The last number before an answer changes, by halving: that of `low` is no, that of `high` is yes. `guess` is asked first. */
async function border(
  low: number,
  high: number,
  ask: (at: number) => Promise<boolean>,
  guess = (low + high) >> 1,
): Promise<number> {
  let [no, yes] = [low, high];
  for (let next = guess; yes - no > 1; next = (no + yes) >> 1) {
    const at = Math.min(yes - 1, Math.max(no + 1, next));
    if (await ask(at)) yes = at;
    else no = at;
  }
  return no;
}

/** Whether more changes failed where fewer of them passed. */
const contradict = <T>(answers: readonly Answer<T>[]): boolean =>
  answers.some(
    (more) =>
      !more.passes &&
      answers.some(
        ({ changes, passes }) => passes && [...changes].every((change) => more.changes.has(change)),
      ),
  );

/** After the longest prefix, so many single additions are tried. */
const MOST_ADDITIONS = 8;

interface Fit<T> {
  /** Whether a set keeps the budget. */
  readonly fits: (items: readonly T[]) => Promise<boolean>;
  /** The likely length of the prefix that keeps it. */
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
  { fits, guess, mayFit }: Fit<T>,
): Promise<readonly T[]> {
  const isBeyond = async (length: number) => !(await fits(order.slice(0, length)));
  const fitting = await border(0, order.length, isBeyond, guess);
  let chosen = order.slice(0, fitting);
  let additions = 0;
  for (const item of order.slice(fitting + 1)) {
    if (additions === MOST_ADDITIONS) break;
    if (!mayFit(chosen, item)) continue;
    additions++;
    if (await fits([...chosen, item])) chosen = [...chosen, item];
  }
  return chosen;
}
