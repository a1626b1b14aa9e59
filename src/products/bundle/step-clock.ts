import type { BundleStep } from './report-schema.js';

/** The clock of a run over a bundle: when each of its steps began and how long it took, also of the one that failed. */
export class StepClock {
  readonly #began = performance.now();
  readonly #steps: BundleStep[] = [];

  /** Steps in the order they began. */
  get steps(): readonly BundleStep[] {
    return [...this.#steps].sort((a, b) => a.start_sec - b.start_sec);
  }

  async time<T>(step: BundleStep['step'], component: string | null, work: () => Promise<T>): Promise<T> {
    const started = performance.now();
    let failed = true;
    try {
      const result = await work();
      failed = false;
      return result;
    } finally {
      this.#steps.push({
        step,
        component,
        start_sec: seconds(started - this.#began),
        sec: seconds(performance.now() - started),
        failed,
      });
    }
  }
}

/** To the microsecond. */
const seconds = (ms: number): number => Math.round(ms * 1000) / 1e6;
