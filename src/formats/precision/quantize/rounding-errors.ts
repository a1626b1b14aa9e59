import { optionalExport } from '../../../addon/addon.js';
import type { QuantizedFormat } from '../formats/format.js';
import type { Tiles } from './tiles.js';

/** The moments of the values that are multiplied by a weight, by their place along the sum. */
export interface InputMoments {
  /** Zeros where a bias takes up the mean of the error. */
  readonly mean: Float32Array;
  readonly variance: Float32Array;
}

/** By clip and lane the sums, in 32 bits, of variance * d^2 and of mean * d, for differences d between codes and values, in units of the scale. */
export interface RoundingErrors {
  readonly squares: Float32Array;
  readonly sums: Float32Array;
}

/** Writes `squares` and `sums` for each of the `reciprocals` of scales, which have those of all lanes for one clip after those for another. `grid`: `gridOf`. */
export type MeasureRounding = (
  values: Float32Array,
  tiles: Omit<Tiles, 'values'>,
  reciprocals: Float32Array,
  grid: Float32Array,
  mean: Float32Array,
  variance: Float32Array,
  squares: Float32Array,
  sums: Float32Array,
) => void;

/** Adding this times a step and taking it away rounds a 32-bit float to a multiple of the step, ties to even. */
const WHOLE_STEPS = 1.5 * 2 ** 23;

/** Share and step, each times `WHOLE_STEPS`, lowest and highest. */
export const gridOf = ({ grid }: QuantizedFormat): Float32Array =>
  Float32Array.of(grid.share * WHOLE_STEPS, grid.step * WHOLE_STEPS, grid.lowest, grid.highest);

const EXPONENT = 0x7f800000;
const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);

/** The plain pass; native/src/rounding.cpp computes the same bits. */
export const measureRounding: MeasureRounding = (
  values,
  { first, laneStride, rowStride, lanes, rows, place },
  reciprocals,
  [share = 0, step = 0, lowest = 0, highest = 0],
  mean,
  variance,
  squares,
  sums,
) => {
  for (let at = 0; at < reciprocals.length; at++) {
    const from = first + (at % lanes) * laneStride;
    const reciprocal = reciprocals[at]!;
    let square = 0;
    let sum = 0;
    for (let row = 0; row < rows; row++) {
      const scaled = Math.fround(values[from + row * rowStride]! * reciprocal);
      let steps = step;
      if (share > 0) {
        float[0] = scaled;
        bits[0]! &= EXPONENT;
        steps = Math.max(Math.fround(float[0] * share), step);
      }
      const rounded = Math.fround(Math.fround(scaled + steps) - steps);
      const error = Math.fround(Math.min(Math.max(rounded, lowest), highest) - scaled);
      square = Math.fround(square + Math.fround(Math.fround(error * error) * variance[place + row]!));
      sum = Math.fround(sum + Math.fround(error * mean[place + row]!));
    }
    squares[at] = square;
    sums[at] = sum;
  }
};

let fastest: MeasureRounding | undefined;

/** Measures tiles for the scales of each lane, all of one clip after those of another, by the addon where there is one. The result holds until the next call. */
export function roundingErrors(
  format: QuantizedFormat,
  { mean, variance }: InputMoments,
): (tiles: Tiles, scales: Float64Array) => RoundingErrors {
  fastest ??= optionalExport<MeasureRounding>('measureRounding') ?? measureRounding;
  const measure = fastest;
  const grid = gridOf(format);
  let [reciprocals, squares, sums] = [0, 0, 0].map((length) => new Float32Array(length)) as Three;
  return (tiles, scales) => {
    if (reciprocals.length !== scales.length)
      [reciprocals, squares, sums] = [1, 2, 3].map(() => new Float32Array(scales.length)) as Three;
    for (let at = 0; at < scales.length; at++) reciprocals[at] = 1 / scales[at]!;
    measure(tiles.values, tiles, reciprocals, grid, mean, variance, squares, sums);
    return { squares, sums };
  };
}

type Three = [Float32Array, Float32Array, Float32Array];
