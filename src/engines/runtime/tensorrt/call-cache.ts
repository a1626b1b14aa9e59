import type { EngineCall } from './engine-call.js';
import type { CallShape } from './engine-inputs.js';

/** An entry of a cache; `busy` entries are never removed. */
export interface CacheEntry {
  readonly bytes: number;
  readonly busy: boolean;
  discard(): void;
}

export interface CacheBounds {
  readonly count: number;
  readonly bytes: number;
}

/**
 * The most recently used calls, bounded in number and in pinned memory. A linear search over a few entries costs less than making a key of shapes,
 * and a repeated call is found at the first look.
 */
export class CallCache<E extends CacheEntry> {
  readonly #bounds: CacheBounds;
  /** Most recent first. */
  readonly #entries: E[] = [];

  constructor(bounds: CacheBounds) {
    this.#bounds = bounds;
  }

  /** The first entry that matches, now the most recent. */
  find(matches: (entry: E) => boolean): E | undefined {
    const entries = this.#entries;
    for (let at = 0; at < entries.length; at++) {
      const entry = entries[at]!;
      if (!matches(entry)) continue;
      if (at > 0) {
        entries.splice(at, 1);
        entries.unshift(entry);
      }
      return entry;
    }
    return undefined;
  }

  add(entry: E): void {
    this.#entries.unshift(entry);
    this.trim();
  }

  remove(entry: E): void {
    const at = this.#entries.indexOf(entry);
    if (at >= 0) this.#entries.splice(at, 1);
  }

  /** Discards the least recent idle entries until the rest is within bounds; the most recent always stays. */
  trim(): void {
    const { count, bytes } = this.#bounds;
    let held = this.#entries.reduce((sum, entry) => sum + entry.bytes, 0);
    for (let at = this.#entries.length - 1; at > 0; at--) {
      if (this.#entries.length <= count && held <= bytes) return;
      const entry = this.#entries[at]!;
      if (entry.busy) continue;
      this.#entries.splice(at, 1);
      held -= entry.bytes;
      entry.discard();
    }
  }

  get size(): number {
    return this.#entries.length;
  }
}

/** A call that `run` keeps for its shapes: not there yet, without a CUDA graph, or with one. */
export class CachedCall implements CacheEntry {
  readonly shape: CallShape;
  readonly profile: number;
  /** The profile that was asked for; undefined when it was chosen by shape. */
  readonly asked: number | undefined;
  graphTried = false;
  call: EngineCall | undefined;
  /** Settles, never rejecting, when the call that is being made is there or has failed. */
  making: Promise<void> | undefined;
  #uses = 0;
  #users = 0;
  #discarded = false;

  constructor(shape: CallShape, profile: number, asked: number | undefined) {
    this.shape = shape;
    this.profile = profile;
    this.asked = asked;
  }

  get bytes(): number {
    return this.call?.bytes ?? 0;
  }

  get busy(): boolean {
    return this.#users > 0;
  }

  /** Counts a use; true from the second on. */
  repeats(): boolean {
    return ++this.#uses > 1;
  }

  /** While `work` goes on, the entry stays. */
  async use<T>(work: () => Promise<T>): Promise<T> {
    this.#users++;
    try {
      return await work();
    } finally {
      this.#users--;
    }
  }

  /** Takes a call when it is made, in place of the one there is, which is closed after its last run. */
  async make(call: Promise<EngineCall>): Promise<void> {
    const taken = call.then((made) => {
      this.call?.close();
      this.call = made;
      if (this.#discarded) made.close();
    });
    this.making = taken.catch(() => {});
    try {
      await taken;
    } finally {
      this.making = undefined;
    }
  }

  discard(): void {
    this.#discarded = true;
    this.call?.close();
  }
}
