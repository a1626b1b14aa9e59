import { Worker } from 'node:worker_threads';

const CHILD = new URL('../../../dist/store/remote/hash-child.js', import.meta.url);

/**
 * The SHA-256 of a file that is still being written, computed in a thread of its own behind the writers: when the last byte is there, little is
 * left to read.
 */
export class HashFollower {
  readonly #worker: Worker;
  readonly #digest: Promise<string>;

  constructor(path: string) {
    // Options of this process (--input-type, --inspect) are not for a thread that runs a file of ours.
    this.#worker = new Worker(CHILD, { workerData: { path }, execArgv: [] });
    this.#digest = new Promise((resolve, reject) => {
      this.#worker.once('message', (digest: string) => resolve(digest));
      this.#worker.once('error', reject);
    });
    // Whoever stops early does not ask for it.
    this.#digest.catch(() => {});
  }

  /** Says that every byte before `end` is in the file. */
  reached(end: number): void {
    this.#worker.postMessage({ end });
  }

  /** The digest of the whole file, whose bytes are all there. */
  async digest(): Promise<string> {
    this.#worker.postMessage({ last: true });
    return this.#digest;
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}
