import { quantile } from '../../../base/statistics.js';
import { type FloatArray, type FloatFormat, formatOf } from '../tensor-reader.js';

/** Bits of the fraction in a key: 256 keys to the octave. native/src/compare.cpp has the same number. */
const KEY_FRACTION = 8;
/** Bits of a pattern's upper word that a key lacks, and what rounds them up. */
const DROPPED32 = 23 - KEY_FRACTION;
const DROPPED64 = 20 - KEY_FRACTION;
const BELOW32 = (1 << DROPPED32) - 1;
const BELOW64 = (1 << DROPPED64) - 1;

/** Number of keys that errors of a format can have, that of infinity included. */
export const keyCount = ({ exponentBits }: FloatFormat): number => 1 << (exponentBits + KEY_FRACTION);

/**
 * Adds to `keys`, from `offset` on, how many of the first `count` errors have which key: the upper bits of the number, rounded up. So the key of 0 is 0's
 * alone, and a number of up to KEY_FRACTION + 1 digits in binary, as small integers and powers of two are, is its key's own number.
 */
export function countKeys(errors: FloatArray, count: number, keys: Float64Array, offset: number): void {
  const words = wordsOf(errors);
  if (formatOf(errors).bytes === 4)
    for (let i = 0; i < count; i++) keys[offset + ((words[i]! + BELOW32) >> DROPPED32)]!++;
  else
    for (let i = 0; i < count; i++) {
      const low = words[2 * i] === 0 ? 0 : 1;
      keys[offset + (((words[2 * i + 1]! | low) + BELOW64) >> DROPPED64)]!++;
    }
}

/** Bits of numbers that are not negative, in words of 32. */
export const wordsOf = ({ buffer, byteOffset, byteLength }: FloatArray): Int32Array =>
  new Int32Array(buffer, byteOffset, byteLength / 4);

/**
 * Quantiles of `count` errors that `keys` counts and of which the largest is `max`: linear between neighbours as numpy's, where each neighbour is rounded up to
 * its key. So a quantile is at most 1/256 (0.4 %) too large and never too small; 0, the maximum, small integers and powers of two are exact.
 * Errors below the format's smallest normal number are off by 1/256 of that number at most.
 */
export function quantilesOf(
  keys: Float64Array,
  format: FloatFormat,
  count: number,
  max: number,
  fractions: readonly number[],
): readonly number[] {
  if (count === 0) return fractions.map(() => Number.NaN);
  const ranks = fractions.flatMap((fraction) => neighbours(fraction, count));
  const values = valuesOfRanks(keys, format, count, max, ranks);
  return fractions.map((fraction) => {
    const [low, high] = neighbours(fraction, count).map((rank) => values.get(rank) ?? Number.NaN);
    return quantile([low!, high!], (fraction * (count - 1)) % 1);
  });
}

/** Exact quantiles of all errors, which are sorted in place. */
export function sortedQuantiles(errors: FloatArray, fractions: readonly number[]): readonly number[] {
  errors.sort();
  return fractions.map((fraction) => quantile(errors, fraction));
}

/** The ranks that a quantile lies between. */
const neighbours = (fraction: number, count: number): readonly [number, number] => {
  const position = fraction * (count - 1);
  return [Math.floor(position), Math.ceil(position)];
};

/** The errors of given ranks, looked for from the largest down: few keys below the wanted ones are touched. */
function valuesOfRanks(
  keys: Float64Array,
  format: FloatFormat,
  count: number,
  max: number,
  ranks: readonly number[],
): ReadonlyMap<number, number> {
  const descending = [...new Set(ranks)].sort((a, b) => b - a);
  const values = new Map<number, number>();
  let below = count;
  // No key is above the power of two that is not below the largest error.
  const top = Math.max(2, Math.ceil(Math.log2(max)) + format.bias + 1) * 2 ** KEY_FRACTION;
  for (let key = Math.min(keys.length - 1, top); values.size < descending.length; key--) {
    below -= keys[key]!;
    while (descending[values.size]! >= below)
      values.set(descending[values.size]!, Math.min(max, edgeOf(format, key)));
  }
  return values;
}

/** The largest number with a key. */
function edgeOf({ bias }: FloatFormat, key: number): number {
  const [exponent, fraction] = [key >> KEY_FRACTION, (key & (2 ** KEY_FRACTION - 1)) / 2 ** KEY_FRACTION];
  return exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias);
}
