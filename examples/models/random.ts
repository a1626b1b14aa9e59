import { createHash } from 'node:crypto';

/** Segments of the quantile table: 2^12 floats stay in the first-level cache; the other 20 random bits place the value inside its segment. */
const SEGMENT_BITS = 12;
const SEGMENTS = 1 << SEGMENT_BITS;
const INSIDE_BITS = 32 - SEGMENT_BITS;

/** The tails end here, in standard deviations: a bounded weight keeps every conversion to FP16 finite. */
const TAIL = 4;

/**
 * Quantiles of the standard normal distribution at k/SEGMENTS, by integrating dx/dp = 1/φ(x) = √(2π)·exp(x²/2) outward from the median
 * (Runge-Kutta, 8 steps a segment); the two outermost entries, which are infinite, become ±TAIL.
 */
function normalQuantiles(): Float32Array {
  const slope = (x: number) => Math.sqrt(2 * Math.PI) * Math.exp((x * x) / 2);
  const table = new Float32Array(SEGMENTS + 1);
  const step = 1 / SEGMENTS / 8;
  const middle = SEGMENTS / 2;
  let x = 0;
  for (let k = 1; k < middle; k++) {
    for (let i = 0; i < 8; i++) {
      const a = slope(x);
      const b = slope(x + (step / 2) * a);
      const c = slope(x + (step / 2) * b);
      const d = slope(x + step * c);
      x += (step / 6) * (a + 2 * b + 2 * c + d);
    }
    table[middle + k] = x;
    table[middle - k] = -x;
  }
  table[SEGMENTS] = TAIL;
  table[0] = -TAIL;
  return table;
}

let quantiles: Float32Array | undefined;

/** Pseudo-random numbers that depend on nothing but the seed and the name: xoshiro128** (Blackman and Vigna, 2018), its state the SHA-256 of both. */
export class RandomStream {
  readonly #state: Int32Array;

  constructor(seed: number, name: string) {
    const digest = createHash('sha256').update(`${seed}/${name}`).digest();
    this.#state = Int32Array.from({ length: 4 }, (_, i) => digest.readInt32LE(4 * i));
    this.#state[0] = this.#state[0]! | 1;
  }

  /** An integer from 0 to `count` - 1; `count` is small, so that the remainder of 32 bits prefers none to speak of. */
  below(count: number): number {
    const state = this.#state;
    const product = Math.imul(state[1]!, 5);
    const bits = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const shifted = state[1]! << 9;
    state[2]! ^= state[0]!;
    state[3]! ^= state[1]!;
    state[1]! ^= state[2]!;
    state[0]! ^= state[3]!;
    state[2]! ^= shifted;
    state[3] = (state[3]! << 11) | (state[3]! >>> 21);
    return bits % count;
  }

  oneOf<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }

  /** Fills `target` with normal values of the given mean and standard deviation, cut off at ±4 standard deviations. */
  fillNormal(target: Float32Array, mean: number, deviation: number): void {
    quantiles ??= normalQuantiles();
    const table = quantiles;
    const state = this.#state;
    let a = state[0]!;
    let b = state[1]!;
    let c = state[2]!;
    let d = state[3]!;
    const mask = (1 << INSIDE_BITS) - 1;
    const scale = 1 / (1 << INSIDE_BITS);
    for (let i = 0; i < target.length; i++) {
      const product = Math.imul(b, 5);
      const bits = Math.imul((product << 7) | (product >>> 25), 9);
      const shifted = b << 9;
      c ^= a;
      d ^= b;
      b ^= c;
      a ^= d;
      c ^= shifted;
      d = (d << 11) | (d >>> 21);
      const segment = bits >>> INSIDE_BITS;
      const low = table[segment]!;
      const inside = (bits & mask) * scale;
      target[i] = mean + deviation * (low + (table[segment + 1]! - low) * inside);
    }
    state[0] = a;
    state[1] = b;
    state[2] = c;
    state[3] = d;
  }
}
