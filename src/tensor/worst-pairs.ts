import { eachPiece, type FloatPairs } from './float-reader.js';

/** A pair of elements that are far apart. */
export interface FarPair {
  /** Into the flattened tensor. */
  readonly index: number;
  readonly candidate: number;
  readonly reference: number;
  /** |candidate - reference|; Infinity where only one of them is a number, or they are different infinities. */
  readonly error: number;
}

/** Keeps the worst few of all pairs it is shown; of equally bad ones the first. */
export class WorstPairs {
  readonly #most: number;
  readonly #pairs: FarPair[] = [];
  /** What a pair must exceed to be among them. */
  threshold = 0;

  constructor(most: number) {
    this.#most = most;
    if (most === 0) this.threshold = Number.POSITIVE_INFINITY;
  }

  add(pair: FarPair): void {
    if (!(pair.error > this.threshold)) return;
    const place = this.#pairs.findIndex(({ error }) => error < pair.error);
    this.#pairs.splice(place < 0 ? this.#pairs.length : place, 0, pair);
    if (this.#pairs.length > this.#most) this.#pairs.pop();
    if (this.#pairs.length === this.#most) this.threshold = this.#pairs.at(-1)?.error ?? 0;
  }

  list(): readonly FarPair[] {
    return this.#pairs;
  }
}

/** The `most` pairs with the largest absolute errors, the worst first; pairs without any error are never among them. */
export function worstPairs(pairs: FloatPairs, most: number): readonly FarPair[] {
  const worst = new WorstPairs(most);
  eachPiece(pairs, (candidate, reference, start) => {
    for (let i = 0; i < candidate.length; i++) {
      const c = candidate[i]!;
      const r = reference[i]!;
      const error = Math.abs(c - r);
      if (error <= worst.threshold) continue;
      // NaN is what two different kinds of «no number» leave, and two of the same kind as well.
      if (Number.isNaN(error) && Object.is(c, r)) continue;
      worst.add({
        index: start + i,
        candidate: c,
        reference: r,
        error: Number.isNaN(error) ? Number.POSITIVE_INFINITY : error,
      });
    }
  });
  return worst.list();
}
