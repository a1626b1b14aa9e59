import { type Extremes, extremesOf } from './ranges.js';

/** Magnitudes of a tensor over all samples: bin `i` counts the values from `i * width` to `(i + 1) * width`. */
export interface Histogram {
  /** 0 where every value was 0. */
  readonly width: number;
  readonly counts: Float64Array;
}

/** Bins of the first sample, as TensorRT's and pytorch-quantization's calibrators have them. */
const BINS = 2048;

/** A later sample beyond this many bins of the first one's width doubles the width, so that memory and the search stay bounded. */
const MOST_BINS = 8 * BINS;

/** Neighbours count in tables of their own: an increment that waits for the one before it takes five times as long. */
const LANES = 4;

/** Values between two transfers of the 32-bit counts. */
const MOST_PENDING = 2 ** 31;

/**
 * Counts magnitudes. The width of a bin is the largest magnitude of the first sample that is not all zeros, divided by 2048; larger values add bins of
 * the same width (pytorch-quantization's `HistogramCalibrator`), and beyond 16,384 bins pairs of neighbours become one.
 */
export class MagnitudeHistogram {
  #width = 0;
  #counts = new Float64Array(BINS);
  #lanes = new Uint32Array(LANES * BINS);
  #pending = 0;
  /** Values before the width is known, all of them 0. */
  #zeros = 0;

  /** Adds the values of one sample; with a value that is NaN or infinite nothing is counted. */
  add(values: Float32Array): Extremes {
    const extremes = extremesOf(values);
    const largest = Math.max(-extremes.min, extremes.max);
    if (!Number.isFinite(largest)) return extremes;
    this.#makeRoom(largest);
    if (this.#width === 0) this.#zeros += values.length;
    else this.#count(values);
    return extremes;
  }

  result(): Histogram {
    this.#fold();
    let used = this.#counts.length;
    while (used > BINS && this.#counts[used - 1] === 0) used--;
    const counts = this.#counts.slice(0, used);
    if (this.#width === 0) counts[0] = this.#zeros;
    return { width: this.#width, counts };
  }

  #makeRoom(largest: number): void {
    if (largest === 0) return;
    if (this.#width === 0) {
      this.#width = largest / BINS;
      this.#counts[0] = this.#zeros;
      return;
    }
    let needed = Math.ceil(largest / this.#width);
    if (needed <= this.#counts.length) return;
    this.#fold();
    while (needed > MOST_BINS) {
      this.#counts = pairs(this.#counts);
      this.#width *= 2;
      needed = Math.ceil(largest / this.#width);
    }
    const counts = new Float64Array(Math.max(needed, BINS, this.#counts.length));
    counts.set(this.#counts);
    this.#counts = counts;
    this.#lanes = new Uint32Array(LANES * counts.length);
  }

  #count(values: Float32Array): void {
    const bins = this.#counts.length;
    for (let start = 0; start < values.length; start += MOST_PENDING) {
      const part = values.subarray(start, start + MOST_PENDING);
      if (this.#pending + part.length > MOST_PENDING) this.#fold();
      countMagnitudes(part, 1 / this.#width, bins, this.#lanes);
      this.#pending += part.length;
    }
  }

  #fold(): void {
    const bins = this.#counts.length;
    if (this.#pending > 0)
      for (let at = 0; at < this.#lanes.length; at++) this.#counts[at % bins]! += this.#lanes[at]!;
    this.#lanes.fill(0);
    this.#pending = 0;
  }
}

const pairs = (counts: Float64Array): Float64Array<ArrayBuffer> =>
  Float64Array.from(
    { length: Math.ceil(counts.length / 2) },
    (_, at) => counts[2 * at]! + (counts[2 * at + 1] ?? 0),
  );

/** `lanes` holds one table of `bins` counts behind the other. The largest magnitude is in the last bin, as numpy has it. */
function countMagnitudes(values: Float32Array, scale: number, bins: number, lanes: Uint32Array): void {
  const { abs, min } = Math;
  const last = bins - 1;
  const [second, third, fourth] = [bins, 2 * bins, 3 * bins];
  const whole = values.length - (values.length % LANES);
  for (let at = 0; at < whole; at += LANES) {
    const i = (abs(values[at]!) * scale) | 0;
    const j = (abs(values[at + 1]!) * scale) | 0;
    const k = (abs(values[at + 2]!) * scale) | 0;
    const l = (abs(values[at + 3]!) * scale) | 0;
    lanes[min(i, last)]!++;
    lanes[second + min(j, last)]!++;
    lanes[third + min(k, last)]!++;
    lanes[fourth + min(l, last)]!++;
  }
  for (let at = whole; at < values.length; at++) {
    const i = (abs(values[at]!) * scale) | 0;
    lanes[min(i, last)]!++;
  }
}
