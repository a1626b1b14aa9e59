import { TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';

/** The event loop gets a turn (progress, Ctrl-C) after this many bytes. */
const TURN_BYTES = 64 << 20;

/** Counts written bytes, tells about them, and lets the event loop run now and then. */
export class WriteProgress {
  #done = 0;
  #untilTurn = TURN_BYTES;
  readonly #total: number;
  readonly #emit: EventListener;
  readonly #signal: AbortSignal | undefined;

  constructor(total: number, emit: EventListener, signal: AbortSignal | undefined) {
    this.#total = total;
    this.#emit = emit;
    this.#signal = signal;
  }

  async advance(bytes: number): Promise<void> {
    this.#done += bytes;
    this.#untilTurn -= bytes;
    if (this.#untilTurn > 0) return;
    this.#untilTurn = TURN_BYTES;
    this.#emit({ type: 'progress', phase: 'write', done: this.#done, total: this.#total });
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#signal?.aborted) throw new TrtforgeError('TF_CANCELLED', 'Writing the model was cancelled.');
  }
}
