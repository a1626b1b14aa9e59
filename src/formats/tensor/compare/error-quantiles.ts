import {
  type FloatArray,
  type FloatFormat,
  float32Format,
  float64Format,
  KEYS,
  wordsOf,
} from '../float-format.js';
import type { FloatPairs } from '../float-reader.js';
import type { KeyCounts } from './error-sample.js';
import { neighbours, quantileAt, selectRanks } from './order-statistics.js';
import type { KernelArray, KernelBracket, PairKernel } from './pair-kernel.js';
import { BRACKETS, CHUNK_PAIRS } from './pair-kernel-layout.js';
import { ranksByCounting } from './rank-counting.js';

/** A sample's quantile is off by more than this many standard deviations once in 2,000 times; then the slower way is taken. */
const DEVIATIONS = 3.5;
/** When the brackets would hold more than this share of all values (many equal errors), counting is cheaper than keeping. */
const LARGEST_SHARE = 0.5;

/**
 * Exact quantiles of the errors of many pairs, in one pass. A sample tells in which narrow bracket of values each quantile must be; the kernel counts the
 * errors above each bracket and keeps those inside, and the quantile is chosen from these. Where a bracket turns out to miss, or would hold too much,
 * the quantile is found by counting instead, in two more passes: exact as well.
 */
export class ErrorQuantiles {
  readonly #kernel: PairKernel;
  readonly #which: KernelArray;
  readonly #fractions: readonly number[];
  readonly #brackets: readonly KernelBracket[] | undefined;
  readonly #above: Float64Array;
  readonly #kept: Kept;

  constructor(kernel: PairKernel, which: KernelArray, sample: KeyCounts, fractions: readonly number[]) {
    const brackets = bracketsOf(sample, fractions);
    this.#kernel = kernel;
    this.#which = which;
    this.#fractions = fractions;
    this.#brackets = shareWithin(sample, brackets) > LARGEST_SHARE ? undefined : brackets;
    this.#above = new Float64Array(fractions.length);
    this.#kept = keptBefore[kernel.format.name][which];
    this.#kept.clear();
  }

  /** Takes in the first `count` errors that lie in the kernel. */
  take(count: number): void {
    if (this.#brackets === undefined || count === 0) return;
    const found = this.#kernel.classify(this.#which, count, this.#brackets, this.#above);
    this.#kept.add(this.#kernel.collected, found);
  }

  /** The quantiles of `count` errors of which the largest is `max`; `pairs` are all of them, for the slower way. */
  values(pairs: FloatPairs, count: number, max: number): readonly number[] {
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
    const kept = this.#kept.values();
    const counts = this.#kernel.countKeys(kept);
    const buckets = new Map<number, Bucket>();
    for (const rank of ranks) {
      const place = brackets
        .map((bracket, i) => placeInBracket(bracket, rank - (count - this.#above[i]!), counts))
        .find((found) => found !== undefined);
      if (place === undefined) return undefined;
      const { key, within } = place;
      const bucket = buckets.get(key) ?? {
        values: this.#kernel.format.make(counts[key]!),
        length: 0,
        places: [],
      };
      buckets.set(key, bucket);
      bucket.places.push({ rank, within });
    }
    return selectWithin(this.#kernel, kept, buckets);
  }
}

/** A rank among all errors, and where it is among those with its key. */
interface Place {
  readonly rank: number;
  readonly within: number;
}

/** The kept values that have one key, and the places that are looked for among them. */
interface Bucket {
  readonly values: FloatArray;
  length: number;
  readonly places: Place[];
}

/** Room for kept values that serves one comparison after the other, up to a size that is not worth holding. */
class Kept {
  readonly #format: FloatFormat;
  #room: FloatArray;
  #length = 0;

  constructor(format: FloatFormat) {
    this.#format = format;
    this.#room = format.make(0);
  }

  clear(): void {
    if (this.#room.length > LARGEST_ROOM) this.#room = this.#format.make(0);
    this.#length = 0;
  }

  add(values: FloatArray, count: number): void {
    if (this.#length + count > this.#room.length) {
      const larger = this.#format.make(Math.max(SMALLEST_ROOM, 2 * (this.#length + count)));
      larger.set(this.values());
      this.#room = larger;
    }
    this.#room.set(values.subarray(0, count), this.#length);
    this.#length += count;
  }

  values(): FloatArray {
    return this.#room.subarray(0, this.#length);
  }
}

const SMALLEST_ROOM = 1 << 16;
const LARGEST_ROOM = 4 << 20;
const keptOf = (format: FloatFormat) => ({ absolute: new Kept(format), relative: new Kept(format) });
const keptBefore = { float32: keptOf(float32Format), float64: keptOf(float64Format) } as const;

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

/** Picks the kept values of each bucket out, and chooses among them. */
function selectWithin(
  kernel: PairKernel,
  kept: FloatArray,
  buckets: ReadonlyMap<number, Bucket>,
): ReadonlyMap<number, number> {
  const { collected, format } = kernel;
  const words = new Uint16Array(collected.buffer, collected.byteOffset, collected.byteLength / 2);
  const stride = wordsOf(format);
  const ignored = new Float64Array(BRACKETS);
  const keys = [...buckets.keys()];
  for (let first = 0; first < keys.length; first += BRACKETS) {
    const brackets = keys.slice(first, first + BRACKETS).map((key) => ({ after: key - 1, last: key }));
    for (let start = 0; start < kept.length; start += CHUNK_PAIRS) {
      const part = kept.subarray(start, start + CHUNK_PAIRS);
      kernel.absolute.set(part);
      const found = kernel.classify('absolute', part.length, brackets, ignored);
      for (let i = 0; i < found; i++) {
        const bucket = buckets.get(words[stride * i + stride - 1]!);
        if (bucket !== undefined) bucket.values[bucket.length++] = collected[i]!;
      }
    }
  }
  const chosen = new Map<number, number>();
  for (const { values, places } of buckets.values()) {
    selectRanks(values, Uint32Array.from(places, ({ within }) => within).sort());
    for (const { rank, within } of places) chosen.set(rank, values[within] ?? Number.NaN);
  }
  return chosen;
}

/** For each fraction the keys that its quantile has with all but certainty, judging by the counts of a sample. */
function bracketsOf(sample: KeyCounts, fractions: readonly number[]): readonly KernelBracket[] {
  const { total } = sample;
  const bounds = fractions.map((fraction) => {
    const spread = DEVIATIONS * Math.sqrt(fraction * (1 - fraction) * total) + 2;
    return { low: Math.floor(fraction * total - spread), high: Math.ceil(fraction * total + spread) };
  });
  const ranks = bounds.flatMap(({ low, high }) => [low, high]).filter((rank) => rank >= 0 && rank < total);
  const keys = keysOfRanks(sample, ranks);
  return bounds.map(({ low, high }) => ({
    after: (keys.get(low) ?? (low < 0 ? 0 : KEYS - 1)) - 1,
    last: keys.get(high) ?? KEYS - 1,
  }));
}

/** The keys of sampled errors by rank, from the top down: quantiles of interest are not far from it. */
function keysOfRanks(
  { counts, total, top }: KeyCounts,
  ranks: readonly number[],
): ReadonlyMap<number, number> {
  const descending = [...new Set(ranks)].sort((a, b) => b - a);
  const keys = new Map<number, number>();
  let below = total;
  for (let key = top; key >= 0 && keys.size < descending.length; key--) {
    below -= counts[key]!;
    while (descending[keys.size]! >= below) keys.set(descending[keys.size]!, key);
  }
  return keys;
}

function shareWithin({ counts, total }: KeyCounts, brackets: readonly KernelBracket[]): number {
  let within = 0;
  let key = 0;
  for (const { after, last } of [...brackets].sort((a, b) => a.after - b.after)) {
    for (key = Math.max(key, after + 1); key <= last; key++) within += counts[key]!;
  }
  return total === 0 ? 0 : within / total;
}
