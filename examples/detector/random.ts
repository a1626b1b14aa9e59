/** Multiplier of the generator, 6364136223846793005, in halves. */
const MULTIPLIER_LOW = 0x4c957f2d;
const MULTIPLIER_HIGH = 0x5851f42d;

/** Upper 32 bits of the product of two unsigned numbers of 32 bits, from halves of 16. */
function productHigh(a: number, b: number): number {
  const [aLow, aHigh, bLow, bHigh] = [a & 0xffff, a >>> 16, b & 0xffff, b >>> 16];
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  return (aHigh * bHigh + Math.floor(middle / 65536) + ((middle & 0xffff) + aLow * bHigh) / 65536) >>> 0;
}

/** PCG32 (XSH-RR 64/32, O'Neill 2014): whole numbers only, so that a seed gives the same numbers everywhere. */
export class Pcg32 {
  #low = 0;
  #high = 0;
  readonly #stepLow: number;
  readonly #stepHigh: number;

  /** `seed` as halves of 64 bits; `stream` picks one of the independent sequences, below 2^31. */
  constructor(seedLow: number, seedHigh: number, stream: number) {
    this.#stepLow = ((stream << 1) | 1) >>> 0;
    this.#stepHigh = 0;
    this.next();
    const low = this.#low + (seedLow >>> 0);
    this.#low = low >>> 0;
    this.#high = (this.#high + (seedHigh >>> 0) + (low > 0xffffffff ? 1 : 0)) >>> 0;
    this.next();
  }

  /** The next 32 bits, unsigned. */
  next(): number {
    const [low, high] = [this.#low, this.#high];
    const sum = (Math.imul(low, MULTIPLIER_LOW) >>> 0) + this.#stepLow;
    this.#low = sum >>> 0;
    this.#high =
      (productHigh(low, MULTIPLIER_LOW) +
        Math.imul(low, MULTIPLIER_HIGH) +
        Math.imul(high, MULTIPLIER_LOW) +
        this.#stepHigh +
        (sum > 0xffffffff ? 1 : 0)) >>>
      0;
    // ((state >> 18) ^ state) >> 27, turned right by the five upper bits.
    const mixedLow = ((low >>> 18) | (high << 14)) ^ low;
    const mixedHigh = (high >>> 18) ^ high;
    const mixed = (mixedLow >>> 27) | (mixedHigh << 5);
    const turn = high >>> 27;
    return ((mixed >>> turn) | (mixed << (-turn & 31))) >>> 0;
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor((this.next() * count) / 0x1_0000_0000);
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }
}
