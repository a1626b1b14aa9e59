import type { ActivationPool } from './activation-pool.js';

const nothing = () => {};

/** Counts work under way, so that closing can wait for it; work that shares its activations goes one at a time. */
export class PendingWork {
  readonly #memory: ActivationPool | undefined;
  #count = 0;
  #idle: (() => void)[] = [];

  constructor(memory?: ActivationPool) {
    this.#memory = memory;
  }

  get count(): number {
    return this.#count;
  }

  /** Throws TF_SESSION_BUSY. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const end = this.#memory?.take() ?? nothing;
    this.#count++;
    try {
      return await work();
    } finally {
      end();
      this.#count--;
      if (this.#count === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  /** The same for work that blocks. */
  duringSync<T>(work: () => T): T {
    const end = this.#memory?.take() ?? nothing;
    try {
      return work();
    } finally {
      end();
    }
  }

  /** Settles when nothing is under way. */
  idle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }
}
