import { elementCount } from '../dtype.js';
import { eachPiece, type FloatPairs, type FloatReader } from '../float-reader.js';

/** Sums over the pairs at each position of an axis. */
interface Sums {
  readonly count: Float64Array;
  readonly referenceSquares: Float64Array;
  readonly errorSquares: Float64Array;
}

/** The sums over the pairs at each position of an axis, of pairs that are finite on both sides. */
export interface SliceSums extends Sums {
  readonly reference: Float64Array;
  /** Without pairs that are negligible on both sides; `count` is of references that are not. The same sums where nothing is negligible. */
  readonly judged: Sums;
  /** The largest and the least reference at each position. */
  readonly peaks: Float64Array;
  readonly leasts: Float64Array;
  /** Of all positions together: pairs that are 0 on both sides, that are finite, the largest reference, the largest error and where it is. */
  readonly zeros: number;
  readonly peak: number;
  readonly finite: number;
  readonly largest: number;
  readonly largestAt: number;
}

/** Where an element is on an axis of its tensor; the whole tensor is one position. */
export function positionsOf(shape: readonly number[], axis: number | null) {
  const size = axis === null ? 1 : (shape[axis] ?? 1);
  const stride = axis === null ? Math.max(1, elementCount(shape)) : elementCount(shape.slice(axis + 1));
  return { size, stride, at: (element: number) => Math.floor(element / stride) % size };
}

/**
 * Sums by the position on an axis (null: one position), in one pass and in memory that grows with the axis alone. `negligible`: the size below which a
 * value at a position means nothing.
 */
export function sliceSums(
  pairs: FloatPairs,
  shape: readonly number[],
  axis: number | null,
  negligible?: Float64Array,
): SliceSums {
  const { size, stride, at } = positionsOf(shape, axis);
  const sums = () => new Float64Array(size);
  const all = { count: sums(), referenceSquares: sums(), errorSquares: sums() };
  const judged =
    negligible === undefined ? all : { count: sums(), referenceSquares: sums(), errorSquares: sums() };
  const [reference, peaks] = [sums(), sums()];
  const leasts = sums().fill(Number.POSITIVE_INFINITY);
  let [zeros, finite, largest, largestAt] = [0, 0, 0, -1];
  eachPiece(pairs, (ours, theirs, start) => {
    let position = at(start);
    let left = stride - (start % stride);
    for (let i = 0; i < theirs.length; i++) {
      const r = theirs[i]!;
      const error = ours[i]! - r;
      if (error - error === 0) {
        const [size, distance] = [Math.abs(r), Math.abs(error)];
        finite++;
        all.count[position]!++;
        reference[position]! += r;
        all.referenceSquares[position]! += r * r;
        all.errorSquares[position]! += error * error;
        if (negligible !== undefined) {
          const least = negligible[position]!;
          if (size >= least) {
            judged.count[position]!++;
            judged.referenceSquares[position]! += r * r;
          }
          if (size >= least || Math.abs(ours[i]!) >= least) judged.errorSquares[position]! += error * error;
        }
        if (size > peaks[position]!) peaks[position] = size;
        if (r < leasts[position]!) leasts[position] = r;
        if (distance > largest) [largest, largestAt] = [distance, start + i];
        if (size === 0 && distance === 0) zeros++;
      }
      if (--left > 0) continue;
      left = stride;
      position = position + 1 === size ? 0 : position + 1;
    }
  });
  const peak = peaks.reduce((most, one) => Math.max(most, one), 0);
  return { ...all, reference, judged, peaks, leasts, zeros, peak, largest, largestAt, finite };
}

/** The sums of several samples together; `largestAt` is that of the one that has the largest error. */
export const addSlices = (samples: readonly SliceSums[]): SliceSums =>
  samples.reduce((all, one) => {
    const joined = (a: Float64Array, b: Float64Array, join: (x: number, y: number) => number) =>
      a.map((value, at) => join(value, b[at]!));
    const added = (a: Float64Array, b: Float64Array) => joined(a, b, (x, y) => x + y);
    const sums = (a: Sums, b: Sums): Sums => ({
      count: added(a.count, b.count),
      referenceSquares: added(a.referenceSquares, b.referenceSquares),
      errorSquares: added(a.errorSquares, b.errorSquares),
    });
    return {
      ...sums(all, one),
      judged: sums(all.judged, one.judged),
      reference: added(all.reference, one.reference),
      peaks: joined(all.peaks, one.peaks, Math.max),
      leasts: joined(all.leasts, one.leasts, Math.min),
      zeros: all.zeros + one.zeros,
      finite: all.finite + one.finite,
      peak: Math.max(all.peak, one.peak),
      largest: Math.max(all.largest, one.largest),
      largestAt: all.largest >= one.largest ? all.largestAt : one.largestAt,
    };
  });

/** Positions whose sizes differ by more than this are judged each by its own scale: boxes in pixels beside scores (measured on 47 production models). */
const DIFFER = 30;

/** With fewer elements a position's own scale is noise: states of two elements a unit differ by 1e8 (measured likewise). */
const FEWEST_ELEMENTS = 100;

/** Root mean squares by position of what was summed, `errorSquares` say. */
export const rootsOf = (squares: Float64Array, { count }: Sums): Float64Array =>
  squares.map((sum, at) => Math.sqrt(sum / Math.max(1, count[at]!)));

/** Of squares that are not 0. */
function largestRatio(squares: Iterable<number>): number {
  const sizes = [...squares].filter((value) => value > 0 && Number.isFinite(value));
  return sizes.length === 0 ? 1 : Math.max(...sizes) / Math.min(...sizes);
}

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
    // Rows and columns of a map have the size of what is in them.
    const isMap = first.shape.length > 3 && axis !== 1;
    if (!isSame || isMap || size < 2 || !(elements >= FEWEST_ELEMENTS)) continue;
    const bySample = samples.map(({ shape, values }) =>
      sliceSums({ candidate: values, reference: values }, shape, axis),
    );
    const ratio = largestRatio(addSlices(bySample).referenceSquares);
    if (ratio > widest) [widest, found] = [ratio, axis];
  }
  return found;
}
