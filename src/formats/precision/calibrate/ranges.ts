import type { WorkContext } from '../../../events.js';
import type { PluginTypes } from '../plugin-types.js';
import type { QuantizedDtype } from './grid.js';

/**
 * The calibrated range of one tensor, zero included: `amax` is the magnitude that the largest code stands for, by the method requested. It is 0 where every
 * value was 0, and no scale can be made of that.
 */
export interface TensorRange {
  readonly min: number;
  readonly max: number;
  readonly amax: number;
  /** Where they were asked for, and a table does not have them. */
  readonly channels?: ChannelMoments;
}

/** The source of a calibration's log events; its warnings are those of a conversion. */
export const CALIBRATION_LOG = 'calibration';

/** The method that chooses the magnitude of a tensor. */
export type CalibrationMethod = 'max' | 'percentile' | 'entropy' | 'mse';

/** Ranges by the name of the tensor in the FP32 model. */
export type CalibratedRanges = ReadonlyMap<string, TensorRange>;

/** Runs the FP32 model over the samples and gives ranges of exactly these tensors. */
export type Calibrate = (
  model: string,
  tensors: readonly string[],
  context: WorkContext & {
    readonly pluginTypes?: PluginTypes | undefined;
    /** The type that the ranges are for; only `mse` looks at it. Null: nothing is made from the ranges, which are extremes then. */
    readonly dtype: QuantizedDtype | null;
    /** The tensors whose channels are wanted too, with the axis of the channels. */
    readonly channels: ReadonlyMap<string, number>;
  },
) => Promise<CalibratedRanges>;

/** Smallest and largest value of a tensor in one sample, zero included; NaN where a value was NaN. */
export interface Extremes {
  readonly min: number;
  readonly max: number;
}

/** Bit patterns of the infinities. */
const [INFINITY, MINUS_INFINITY] = [0x7f800000, 0xff800000];

/**
 * Smallest and largest value, zero included; NaN for both where a value is NaN. Bit patterns order as their values do: as signed integers the positive
 * ones, as unsigned integers the negative ones by magnitude. Compared as floats they take three to nine times as long.
 */
export function extremesOf(values: Float32Array): Extremes {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  let positive = 0;
  let negative = 0;
  for (let at = 0; at < bits.length; at++) {
    const unsigned = bits[at]!;
    const signed = unsigned | 0;
    if (unsigned > negative) negative = unsigned;
    if (signed > positive) positive = signed;
  }
  if (positive > INFINITY || negative > MINUS_INFINITY) return { min: Number.NaN, max: Number.NaN };
  const [min = 0, max = 0] = new Float32Array(Uint32Array.of(negative, positive).buffer);
  // Without a negative value the largest pattern is that of a positive one; a negative zero becomes 0.
  return { min: Math.min(0, min) + 0, max };
}

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

/** Smallest and largest value of a tensor over all calibration samples; infinities and NaN count as values beyond every range. */
export interface ValueRange {
  readonly min: number;
  readonly max: number;
}

/** Runs a model on samples of its inputs and returns the ranges of its activations by name. */
export type ObserveRanges = (
  model: string,
  context: WorkContext & { readonly pluginTypes?: PluginTypes | undefined },
) => Promise<ReadonlyMap<string, ValueRange>>;
