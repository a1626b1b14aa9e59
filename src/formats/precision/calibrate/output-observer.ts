import { type Extremes, extremesOf, type Histogram, MagnitudeHistogram } from './histogram.js';

/** Keeps what the outputs of runs were, in the process that has them. */
export class OutputObserver {
  readonly #histograms = new Map<string, MagnitudeHistogram>();

  add(name: string, values: Float32Array, histograms: boolean): Extremes {
    if (!histograms) return extremesOf(values);
    let histogram = this.#histograms.get(name);
    if (histogram === undefined) {
      histogram = new MagnitudeHistogram();
      this.#histograms.set(name, histogram);
    }
    return histogram.add(values);
  }

  result(): ReadonlyMap<string, Histogram> {
    return new Map([...this.#histograms].map(([name, histogram]) => [name, histogram.result()]));
  }
}
