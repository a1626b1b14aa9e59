import type { WeightStream } from '../../onnx/weight.js';
import type { QuantizedFormat } from '../formats/format.js';
import { CHUNK_BYTES, floatsOf, type ScaleLayout } from './scale-layout.js';

/** What the values that are multiplied by a weight were, by their place along the sum. */
export interface InputMoments {
  /** Zeros where a bias takes up the mean of the error. */
  readonly mean: Float32Array;
  readonly variance: Float32Array;
}

/** Blocks beside each other that are copied out of a matrix together, so that its rows are read in whole cache lines. */
const BESIDE = 16;

/**
 * For each block the share of its largest magnitude whose scale leaves the least error; one more reading of the weight. Without `inputs` the error is the sum
 * of the squared differences d of the weights; with them the mean square of the sum over x * d, x independent: sum of variance * d^2, plus the square of
 * the sum of mean * d.
 */
export function leastError(
  source: WeightStream,
  layout: ScaleLayout,
  count: number,
  format: QuantizedFormat,
  scaleOf: (index: number, share: number) => number,
  inputs?: InputMoments,
): Float32Array {
  const best = new Float32Array(count);
  const size = layout.kind === 'runs' ? layout.run : layout.rows;
  const terms = inputs?.mean.length ?? size;
  const mean = inputs?.mean ?? new Float32Array(size);
  const variance = inputs?.variance ?? new Float32Array(size).fill(1);
  const levels = levelsOf(format);
  const { clips } = format;
  const errors = new Float64Array(2);
  const choose = (block: Float32Array, at: number, index: number, place: number) => {
    let least = Number.POSITIVE_INFINITY;
    for (let clip = 0; clip < clips.length; clip += 2) {
      const [first, second] = [clips[clip]!, clips[Math.min(clip + 1, clips.length - 1)]!];
      const [wide, narrow] = [scaleOf(index, first), scaleOf(index, second)];
      errorsOf(block, at, size, wide, narrow, levels, mean, variance, place, errors);
      if (errors[0]! < least) [least, best[index]] = [errors[0]!, first];
      if (errors[1]! < least) [least, best[index]] = [errors[1]!, second];
    }
  };
  if (layout.kind === 'runs') {
    // Whole groups of four runs: chunks are multiples of 16 bytes.
    const runs = Math.max(4, Math.floor((CHUNK_BYTES >> 2) / size / 4) * 4);
    let index = 0;
    for (const chunk of source.chunks(4 * size * runs)) {
      const values = floatsOf(chunk);
      for (let at = 0; at < values.length; at += size, index++)
        choose(values, at, index, (index * size) % terms);
    }
    return best;
  }
  const { columns } = layout;
  const beside = new Float32Array(BESIDE * size);
  let first = 0;
  for (const chunk of source.chunks(4 * columns * size)) {
    const values = floatsOf(chunk);
    const place = ((first / columns) * size) % terms;
    for (let from = 0; from < columns; from += BESIDE) {
      const width = Math.min(BESIDE, columns - from);
      for (let row = 0; row < size; row++)
        for (let column = 0; column < width; column++)
          beside[column * size + row] = values[row * columns + from + column]!;
      for (let column = 0; column < width; column++)
        choose(beside, column * size, first + from + column, place);
    }
    first += columns;
  }
  return best;
}

/** Four cells a unit, from -16 on: the borders between the codes of the formats with blocks are multiples of a quarter. */
const CELLS = 4;
const LOWEST = 16;

/** The value of the nearest code by cell; a table, because a branch on the sign is mispredicted every other time. */
const levelsOf = ({ nearest }: QuantizedFormat): Float64Array =>
  Float64Array.from({ length: 2 * LOWEST * CELLS }, (_, cell) => nearest((cell + 0.5) / CELLS - LOWEST));

/** The errors with two scales, which are computed together because each waits for its table; NaN where a value is beyond the cells. */
function errorsOf(
  values: Float32Array,
  at: number,
  size: number,
  first: number,
  second: number,
  levels: Float64Array,
  mean: Float32Array,
  variance: Float32Array,
  place: number,
  errors: Float64Array,
): void {
  const [firstCells, secondCells] = [CELLS / first, CELLS / second];
  let [firstSquares, firstSum, secondSquares, secondSum] = [0, 0, 0, 0];
  for (let i = 0; i < size; i++) {
    const value = values[at + i]!;
    const [spread, centre] = [variance[place + i]!, mean[place + i]!];
    const one = levels[(value * firstCells + LOWEST * CELLS) | 0]! * first - value;
    const other = levels[(value * secondCells + LOWEST * CELLS) | 0]! * second - value;
    firstSquares += spread * one * one;
    firstSum += centre * one;
    secondSquares += spread * other * other;
    secondSum += centre * other;
  }
  errors[0] = firstSquares + firstSum * firstSum;
  errors[1] = secondSquares + secondSum * secondSum;
}
