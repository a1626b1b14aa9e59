import { countKeys, KEYS, type KeyCounts } from './error-sample.js';
import { neighbours, quantileAt, selectRanks } from './order-statistics.js';
import type { KernelArray, KernelBracket, PairKernel } from './pair-kernel.js';
import { type Pairs, ranksByCounting } from './rank-counting.js';

/** A sample's quantile is off by more than this many standard deviations once in 15,000 times; then the slower way is taken. */
const DEVIATIONS = 4;
/** When the brackets would hold more than this share of all values (many equal errors), counting is cheaper than keeping. */
const LARGEST_SHARE = 0.5;

/**
 * Exact quantiles of the errors of many pairs, in one pass. A sample tells in which narrow bracket of values each quantile must be; the kernel counts the
 * errors above each bracket and keeps those inside, and the quantile is chosen from these. Where a bracket turns out to miss, or would hold too much,
 * the quantile is found by counting instead, in two more passes: exact as well.
 */
export class ErrorQuantiles {
  readonly #which: KernelArray;
  readonly #fractions: readonly number[];
  readonly #brackets: readonly KernelBracket[] | undefined;
  readonly #above: Float64Array;
  #kept: Float32Array;
  #keptLength = 0;

  constructor(which: KernelArray, sample: KeyCounts, length: number, fractions: readonly number[]) {
    const brackets = bracketsOf(sample, fractions);
    const share = shareWithin(sample, brackets);
    this.#which = which;
    this.#fractions = fractions;
    this.#brackets = share > LARGEST_SHARE ? undefined : brackets;
    this.#above = new Float64Array(fractions.length);
    this.#kept = new Float32Array(this.#brackets === undefined ? 0 : Math.ceil(1.25 * share * length) + 1024);
  }

  /** Takes in the first `count` errors that lie in the kernel. */
  take(kernel: PairKernel, count: number): void {
    if (this.#brackets === undefined || count === 0) return;
    const padded = Math.ceil(count / 8) * 8;
    // Below every bracket, so neither counted nor kept.
    kernel[this.#which].fill(-1, count, padded);
    const found = kernel.classify(this.#which, padded, this.#brackets, this.#above);
    if (this.#keptLength + found > this.#kept.length) {
      const larger = new Float32Array(2 * (this.#keptLength + found));
      larger.set(this.#kept.subarray(0, this.#keptLength));
      this.#kept = larger;
    }
    this.#kept.set(kernel.collected.subarray(0, found), this.#keptLength);
    this.#keptLength += found;
  }

  /** The quantiles of `count` errors of which the largest is `max`; `pairs` are all of them, for the slower way. */
  values(pairs: Pairs, count: number, max: number): readonly number[] {
    if (count === 0) return this.#fractions.map(() => Number.NaN);
    if (max === 0) return this.#fractions.map(() => 0);
    const ranks = [...new Set(this.#fractions.flatMap((fraction) => neighbours(fraction, count)))];
    const found = this.#chosen(ranks, count) ?? ranksByCounting(this.#which, pairs, ranks);
    return this.#fractions.map((fraction) =>
      quantileAt(fraction, count, (rank) => found.get(rank) ?? Number.NaN),
    );
  }

  /** The values of the given ranks from what was kept, or undefined when one of them is not there. */
  #chosen(ranks: readonly number[], count: number): ReadonlyMap<number, number> | undefined {
    const brackets = this.#brackets;
    if (brackets === undefined) return undefined;
    const kept = this.#kept.subarray(0, this.#keptLength);
    const { counts } = countKeys(kept, kept.length);
    const wanted = new Map<number, { rank: number; within: number }[]>();
    for (const rank of ranks) {
      const place = brackets
        .map((bracket, i) => placeInBracket(bracket, rank - (count - this.#above[i]!), counts))
        .find((found) => found !== undefined);
      if (place === undefined) return undefined;
      wanted.set(place.key, [...(wanted.get(place.key) ?? []), { rank, within: place.within }]);
    }
    return selectWithin(kept, wanted, counts);
  }
}

/** Which key the value at position `within` of a bracket has, and its position among those of that key. */
function placeInBracket(
  { after, last }: KernelBracket,
  within: number,
  counts: Uint32Array,
): { readonly key: number; readonly within: number } | undefined {
  if (within < 0) return undefined;
  for (let key = after + 1; key <= last; key++) {
    const here = counts[key]!;
    if (within < here) return { key, within };
    within -= here;
  }
  return undefined;
}

/** Gathers the kept values of each wanted key and chooses among them. */
function selectWithin(
  kept: Float32Array,
  wanted: ReadonlyMap<number, readonly { readonly rank: number; readonly within: number }[]>,
  counts: Uint32Array,
): ReadonlyMap<number, number> {
  const buckets = new Map<number, { readonly values: Float32Array; length: number }>();
  for (const key of wanted.keys()) buckets.set(key, { values: new Float32Array(counts[key]!), length: 0 });
  const isWanted = new Uint8Array(KEYS);
  for (const key of wanted.keys()) isWanted[key] = 1;
  const keys = new Uint16Array(kept.buffer, kept.byteOffset, 2 * kept.length);
  for (let i = 0; i < kept.length; i++) {
    const key = keys[2 * i + 1]!;
    if (isWanted[key] === 0) continue;
    const bucket = buckets.get(key);
    if (bucket !== undefined) bucket.values[bucket.length++] = kept[i]!;
  }
  const found = new Map<number, number>();
  for (const [key, places] of wanted) {
    const values = buckets.get(key)?.values ?? new Float32Array();
    selectRanks(values, Uint32Array.from(places, ({ within }) => within).sort());
    for (const { rank, within } of places) found.set(rank, values[within] ?? Number.NaN);
  }
  return found;
}

/** For each fraction the keys that its quantile has with all but certainty, judging by the sample. */
function bracketsOf({ counts, total }: KeyCounts, fractions: readonly number[]): readonly KernelBracket[] {
  const bounds = fractions.map((fraction) => {
    const spread = DEVIATIONS * Math.sqrt(fraction * (1 - fraction) * total) + 2;
    return { low: Math.floor(fraction * total - spread), high: Math.ceil(fraction * total + spread) };
  });
  const targets = [...new Set(bounds.flatMap(({ low, high }) => [low, high]))].sort((a, b) => a - b);
  const keyAt = new Map<number, number>();
  let below = 0;
  let next = 0;
  for (let key = 0; key < KEYS && next < targets.length; key++) {
    below += counts[key]!;
    while (next < targets.length && targets[next]! < below) keyAt.set(targets[next++]!, key);
  }
  return bounds.map(({ low, high }) => ({
    after: low < 0 ? -1 : (keyAt.get(low) ?? KEYS - 1) - 1,
    last: keyAt.get(high) ?? KEYS - 1,
  }));
}

function shareWithin({ counts, total }: KeyCounts, brackets: readonly KernelBracket[]): number {
  let within = 0;
  let key = 0;
  for (const { after, last } of [...brackets].sort((a, b) => a.after - b.after)) {
    for (key = Math.max(key, after + 1); key <= last; key++) within += counts[key]!;
  }
  return total === 0 ? 0 : within / total;
}
