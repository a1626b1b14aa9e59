import type { CacheEntry } from './call-cache.js';
import type { EngineCall } from './engine-call.js';
import type { CallShape } from './engine-inputs.js';

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
