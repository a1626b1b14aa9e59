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
  /** The error that a pair must exceed to be among them. */
  threshold = 0;

  constructor(most: number) {
    this.#most = most;
    if (most === 0) this.threshold = Number.POSITIVE_INFINITY;
  }

  /** Takes in a pair of numbers that are not the same. */
  show(index: number, candidate: number, reference: number): void {
    const error = Math.abs(candidate - reference);
    // NaN is what numbers and things that are no numbers leave between them.
    this.add({ index, candidate, reference, error: Number.isNaN(error) ? Number.POSITIVE_INFINITY : error });
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
