/** What a cache keeps; `busy` entries are never thrown out. */
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
