/** Decimal digits four at a time, as they lie in a little-endian word: the first in the lowest byte. */

/** Whether the four bytes of a little-endian word are digits: a byte above «9» or below «0» sets its highest bit in one of the two. */
export const areDigits = (word: number): boolean => othersIn(word) === 0;

const othersIn = (word: number): number => ((word + 0x46464646) | (word - 0x30303030)) & 0x80808080;

/** How many digits a little-endian word begins with, of one that begins with fewer than four. */
export function digitsIn(word: number): number {
  const others = othersIn(word);
  return (31 - Math.clz32(others & -others)) >> 3;
}

/** The number that the first `count` digits of a word write, of fewer than four. */
export const lastDigits = (word: number, count: number): number =>
  count === 0 ? 0 : numberOf((((word - 0x30303030) << (32 - 8 * count)) + 0x30303030) | 0);

/** The number that four digits write, the first in the lowest byte. */
export function numberOf(word: number): number {
  const digits = (word - 0x30303030) | 0;
  const pairs = (Math.imul(digits, 10) + (digits >>> 8)) | 0;
  return Math.imul(pairs & 0xff, 100) + ((pairs >>> 16) & 0xff);
}
