/** Mean and variance of each channel of a tensor over all samples. As 32-bit floats, so that a cache holds the values that were found. */
export interface ChannelMoments {
  readonly mean: Float32Array;
  readonly variance: Float32Array;
}

/** Positions of a tensor that are looked at in each sample: moments need no more. */
const POSITIONS = 128;
/** Multiples of it, modulo 1, lie evenly and on no grid: a stride would meet the same column of every image. */
const GOLDEN = (Math.sqrt(5) - 1) / 2;

/** Sums up the channels of a tensor, which lie along one of its axes. */
export class ChannelSums {
  #count = 0;
  #sums = new Float64Array(0);
  #squares = new Float64Array(0);

  /** Adds one sample. A tensor whose number of channels varies has no moments. */
  add(values: Float32Array, shape: readonly number[], axis: number): void {
    const at = axis < 0 ? shape.length + axis : axis;
    const channels = shape[at] ?? 0;
    if (this.#count === 0) {
      this.#sums = new Float64Array(channels);
      this.#squares = new Float64Array(channels);
    }
    if (channels !== this.#sums.length || values.length === 0) return;
    const inner = shape.slice(at + 1).reduce((product, size) => product * size, 1);
    const positions = values.length / channels;
    const looked = Math.min(POSITIONS, positions);
    for (let index = 0; index < looked; index++) {
      const position = positions <= POSITIONS ? index : Math.floor(((index * GOLDEN) % 1) * positions);
      const outer = Math.floor(position / inner);
      let from = outer * channels * inner + (position - outer * inner);
      for (let channel = 0; channel < channels; channel++, from += inner) {
        const value = values[from]!;
        this.#sums[channel]! += value;
        this.#squares[channel]! += value * value;
      }
    }
    this.#count += looked;
  }

  result(): ChannelMoments {
    const mean = Float32Array.from(this.#sums, (sum) => sum / this.#count);
    const variance = Float32Array.from(this.#squares, (sum, channel) =>
      Math.max(0, sum / this.#count - mean[channel]! ** 2),
    );
    return { mean, variance };
  }
}
