import { eachPiece, type FloatPairs, pairFormat } from '../float-reader.js';
import type { KernelArray } from './pair-kernel.js';
import { absoluteError, relativeError } from './pair-sums.js';

/** A digit is 16 bits of an error's pattern; patterns are ordered as the errors, which are not negative. */
const DIGITS = 1 << 16;

/** Wanted ranks whose errors begin with the same digits. */
interface Group {
  readonly digits: readonly number[];
  /** How many errors with this beginning have which digit next. */
  readonly counts: Float64Array;
  /** Ranks, and where each is among the errors with this beginning. */
  readonly places: readonly { readonly rank: number; readonly within: number }[];
}

/**
 * The errors of the given ranks among all finite pairs, by counting bit patterns: the upper 16 bits of each error in one pass, and in each pass after it
 * (one for float32, three for float64) the next 16 of those errors that begin as a wanted one does. Exact whatever the errors are, in constant memory.
 */
export function ranksByCounting(
  which: KernelArray,
  pairs: FloatPairs,
  ranks: readonly number[],
): ReadonlyMap<number, number> {
  const format = pairFormat(pairs);
  const value = format.make(1);
  const words = new Uint16Array(value.buffer);
  let groups: readonly Group[] = [
    group(
      [],
      ranks.map((rank) => ({ rank, within: rank })),
    ),
  ];
  for (let word = words.length - 1; word >= 0; word--) {
    countDigits(which, pairs, groups, word);
    groups = groups.flatMap(split);
  }
  return new Map(
    groups.flatMap(({ digits, places }) => {
      words.set(digits.toReversed());
      const error = value[0]!;
      return places.map(({ rank }): [number, number] => [rank, error]);
    }),
  );
}

const group = (digits: Group['digits'], places: Group['places']): Group => ({
  digits,
  places,
  counts: new Float64Array(DIGITS),
});

/** The groups that the places of one belong to when the next digit is known. */
function split({ digits, counts, places }: Group): readonly Group[] {
  const next = new Map<number, Group['places'][number][]>();
  for (const { rank, within } of places) {
    const found = placeOf(within, counts);
    next.set(found.digit, [...(next.get(found.digit) ?? []), { rank, within: found.within }]);
  }
  return [...next].map(([digit, its]) => group([...digits, digit], its));
}

/** The digit that the error of a place has, and its place among those that have it. */
function placeOf(within: number, counts: Float64Array): { readonly digit: number; readonly within: number } {
  for (let digit = 0; digit < DIGITS; digit++) {
    const here = counts[digit]!;
    if (within < here) return { digit, within };
    within -= here;
  }
  return { digit: DIGITS - 1, within: 0 };
}

/** Counts the digit at `word`, the words above it being the digits of a group. */
function countDigits(which: KernelArray, pairs: FloatPairs, groups: readonly Group[], word: number): void {
  const format = pairFormat(pairs);
  const error = format.make(1);
  const words = new Uint16Array(error.buffer);
  const top = words.length - 1;
  const errorOf = which === 'absolute' ? absoluteError : relativeError;
  const [first] = groups;
  // Nearly every error is told by its first digit to be of no group.
  const byFirst = Array.from({ length: DIGITS }, (_, digit) =>
    groups.filter(({ digits }) => digits[0] === digit),
  );
  eachPiece(pairs, (candidate, reference) => {
    for (let i = 0; i < candidate.length; i++) {
      const c = candidate[i]!;
      const r = reference[i]!;
      if (c - c !== 0 || r - r !== 0) continue;
      error[0] = errorOf(format, c, r);
      if (word === top) first!.counts[words[top]!]!++;
      else
        for (const { digits, counts } of byFirst[words[top]!]!)
          if (beginsWith(words, digits)) counts[words[word]!]!++;
    }
  });
}

function beginsWith(words: Uint16Array, digits: readonly number[]): boolean {
  for (let at = 1; at < digits.length; at++) if (words[words.length - 1 - at] !== digits[at]) return false;
  return true;
}
