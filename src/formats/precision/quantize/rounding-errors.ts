import type { QuantizedFormat } from '../formats/format.js';

/** What the values that are multiplied by a weight were, by their place along the sum. */
export interface InputMoments {
  /** Zeros where a bias takes up the mean of the error. */
  readonly mean: Float32Array;
  readonly variance: Float32Array;
}

/** Adding this times a step and taking it away rounds a 32-bit float to a multiple of the step, ties to even. */
const WHOLE_STEPS = 1.5 * 2 ** 23;

const EXPONENT = 0x7f800000;
const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);

/**
 * The sums, in 32 bits, of variance * d^2 and of mean * d, for differences d between the codes and the `rows` values from `from` on, in units of the scale. The inputs have the moments
 * from `place` on.
 */
export function roundingErrors(
  values: Float32Array,
  from: number,
  rows: number,
  scale: number,
  { grid }: QuantizedFormat,
  { mean, variance }: InputMoments,
  place: number,
): { readonly squares: number; readonly sum: number } {
  const { lowest, highest } = grid;
  const reciprocal = Math.fround(1 / scale);
  const share = grid.share * WHOLE_STEPS;
  const step = grid.step * WHOLE_STEPS;
  let squares = 0;
  let sum = 0;
  for (let row = 0; row < rows; row++) {
    const scaled = Math.fround(values[from + row]! * reciprocal);
    let steps = step;
    if (share > 0) {
      float[0] = scaled;
      bits[0]! &= EXPONENT;
      steps = Math.max(Math.fround(float[0] * share), step);
    }
    const rounded = Math.fround(Math.fround(scaled + steps) - steps);
    const error = Math.fround(Math.min(Math.max(rounded, lowest), highest) - scaled);
    squares = Math.fround(squares + Math.fround(Math.fround(error * error) * variance[place + row]!));
    sum = Math.fround(sum + Math.fround(error * mean[place + row]!));
  }
  return { squares, sum };
}
