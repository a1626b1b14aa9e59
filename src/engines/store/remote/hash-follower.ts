import { Worker } from 'node:worker_threads';

const CHILD = new URL('../../../../dist/engines/store/remote/hash-child.js', import.meta.url);

/** Pieces of memory that both threads see. Large reads cost least; all of them together stay in the processor's cache. */
const SLOT_BYTES = 1 << 20;
const SLOTS = 16;

/** A piece of the shared memory, and where in the file its bytes belong. */
export interface SharedPiece {
  readonly at: number;
  readonly offset: number;
  readonly length: number;
}

export interface HashChildData {
  readonly path: string;
  readonly memory: SharedArrayBuffer;
  /** How many pieces the thread is done with; and at which count it is to say so, 0 for never. */
  readonly counts: Int32Array<SharedArrayBuffer>;
}

/**
 * The SHA-256 of a file that is still being written, computed in a thread of its own behind the writers: when the last byte is there, little is
 * left. What arrives in the file's order is handed over in shared memory, everything else is read from the file.
 */
export class HashFollower {
  readonly #worker: Worker;
  readonly #digest: Promise<string>;
  readonly #memory = new SharedArrayBuffer(SLOT_BYTES * SLOTS);
  readonly #counts = new Int32Array(new SharedArrayBuffer(8));
  #handed = 0;
  #isGone = false;
  #roomAgain: () => void = () => {};

  constructor(path: string) {
    const data: HashChildData = { path, memory: this.#memory, counts: this.#counts };
    // Options of this process (--input-type, --inspect) are not for a thread that runs a file of ours.
    this.#worker = new Worker(CHILD, { workerData: data, execArgv: [] });
    this.#digest = new Promise((resolve, reject) => {
      this.#worker.on('message', (message: { readonly digest: string } | 'room') => {
        if (message === 'room') this.#roomAgain();
        else resolve(message.digest);
      });
      this.#worker.once('error', reject);
    });
    // Whoever stops early does not ask for it.
    this.#digest.catch(() => {
      this.#isGone = true;
      this.#roomAgain();
    });
  }

  /** Memory for the next bytes; the same again until they are handed over. */
  slot(): Uint8Array {
    return new Uint8Array(this.#memory, (this.#handed % SLOTS) * SLOT_BYTES, SLOT_BYTES);
  }

  /** Whether bytes lie in memory of `slot()`. */
  shares(bytes: Uint8Array): boolean {
    return bytes.buffer === this.#memory;
  }

  /**
   * Hands over bytes in memory of `slot()` that belong at `at`; every byte before is in the file or was handed over. Gives a promise when the
   * next slot is not free yet: until it resolves nothing may be written there.
   */
  hand(bytes: Uint8Array, at: number): Promise<void> | undefined {
    const piece: SharedPiece = { at, offset: bytes.byteOffset, length: bytes.length };
    this.#worker.postMessage(piece);
    this.#handed++;
    if (this.#isGone || this.#handed - Atomics.load(this.#counts, 0) < SLOTS) return undefined;
    const room = new Promise<void>((resolve) => {
      this.#roomAgain = resolve;
    });
    // Half of them, so that the two threads do not wake each other for every piece.
    Atomics.store(this.#counts, 1, this.#handed - SLOTS / 2);
    if (Atomics.load(this.#counts, 0) >= this.#handed - SLOTS / 2) this.#roomAgain();
    return room;
  }

  /** Says that every byte before `end` is in the file. */
  reached(end: number): void {
    this.#worker.postMessage({ end });
  }

  /** The digest of the whole file, whose bytes are all there. */
  async digest(): Promise<string> {
    this.#worker.postMessage('last');
    return this.#digest;
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}
