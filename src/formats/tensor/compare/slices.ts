import { elementCount } from '../dtype.js';
import { eachPiece, type FloatPairs, type FloatReader } from '../float-reader.js';

/** What the pairs at each position of an axis add up to, of pairs that are finite on both sides. */
export interface SliceSums {
  readonly count: Float64Array;
  readonly reference: Float64Array;
  readonly referenceSquares: Float64Array;
  readonly errorSquares: Float64Array;
  /** Pairs that are 0 on both sides, of all positions together. */
  readonly zeros: number;
}

/** Where an element is on an axis of its tensor; the whole tensor is one position. */
export function positionsOf(shape: readonly number[], axis: number | null) {
  const size = axis === null ? 1 : (shape[axis] ?? 1);
  const stride = axis === null ? Math.max(1, elementCount(shape)) : elementCount(shape.slice(axis + 1));
  return { size, stride, at: (element: number) => Math.floor(element / stride) % size };
}

/** Sums by the position on an axis (null: one position), in one pass and in memory that grows with the axis alone. */
export function sliceSums(pairs: FloatPairs, shape: readonly number[], axis: number | null): SliceSums {
  const { size, stride, at } = positionsOf(shape, axis);
  const sums = () => new Float64Array(size);
  const [count, sum, referenceSquares, errorSquares] = [sums(), sums(), sums(), sums()];
  let zeros = 0;
  eachPiece(pairs, (ours, theirs, start) => {
    let position = at(start);
    let left = stride - (start % stride);
    for (let i = 0; i < theirs.length; i++) {
      const r = theirs[i]!;
      const error = ours[i]! - r;
      if (error - error === 0) {
        count[position]!++;
        sum[position]! += r;
        referenceSquares[position]! += r * r;
        errorSquares[position]! += error * error;
        if (r === 0 && error === 0) zeros++;
      }
      if (--left > 0) continue;
      left = stride;
      position = position + 1 === size ? 0 : position + 1;
    }
  });
  return { count, reference: sum, referenceSquares, errorSquares, zeros };
}

/** The sums of several samples together. */
export const addSlices = (samples: readonly SliceSums[]): SliceSums =>
  samples.reduce((all, one) => {
    const added = (a: Float64Array, b: Float64Array) => a.map((value, at) => value + b[at]!);
    return {
      count: added(all.count, one.count),
      reference: added(all.reference, one.reference),
      referenceSquares: added(all.referenceSquares, one.referenceSquares),
      errorSquares: added(all.errorSquares, one.errorSquares),
      zeros: all.zeros + one.zeros,
    };
  });

/** Positions whose sizes differ by more than this are judged each by its own scale: boxes in pixels beside scores (measured on 47 production models). */
const DIFFER = 30;

/** With fewer elements a position's own scale is noise: states of two elements a unit differ by 1e8 (measured likewise). */
const FEWEST_ELEMENTS = 100;

/** The axis whose positions differ most in root mean square, by more than 30 and over at least 100 elements each; null where no axis does. */
export function slicedAxis(
  samples: readonly { readonly shape: readonly number[]; readonly values: FloatReader }[],
): number | null {
  const [first] = samples;
  if (first === undefined) return null;
  let [widest, found]: [number, number | null] = [DIFFER ** 2, null];
  for (const [axis, size] of first.shape.entries()) {
    const isSame = samples.every(({ shape }) => shape.length === first.shape.length && shape[axis] === size);
    const elements = samples.reduce((sum, { shape }) => sum + elementCount(shape) / size, 0);
    if (!isSame || size < 2 || !(elements >= FEWEST_ELEMENTS)) continue;
    const sums = addSlices(
      samples.map(({ shape, values }) => sliceSums({ candidate: values, reference: values }, shape, axis)),
    );
    const squares = [...sums.referenceSquares].filter((value) => value > 0 && Number.isFinite(value));
    const ratio = Math.max(...squares) / Math.min(...squares);
    if (ratio > widest) [widest, found] = [ratio, axis];
  }
  return found;
}
