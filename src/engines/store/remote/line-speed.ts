/** A line that brings less than this over one connection is worth several; above it the processors are the limit. In bytes a second. */
const FAST = 300e6;
const LOOK_AFTER_MS = 200;

/** Finds out, a moment after a transfer began, whether one connection uses the line up. */
export class LineSpeed {
  /** False too for what was over before it was known. */
  readonly isSlow: Promise<boolean>;
  #decide: (isSlow: boolean) => void = () => {};
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;
  #wasSlow = false;

  constructor() {
    const started = performance.now();
    this.isSlow = new Promise((resolve) => {
      this.#decide = resolve;
    });
    this.#timer = setTimeout(() => {
      this.#wasSlow = this.#bytes < (FAST * (performance.now() - started)) / 1000;
      this.#decide(this.#wasSlow);
    }, LOOK_AFTER_MS).unref();
  }

  /** Whether it was found slow by now. */
  get wasSlow(): boolean {
    return this.#wasSlow;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
  }

  /** The transfer is over: nobody needs to wait for an answer. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#decide(false);
  }
}
