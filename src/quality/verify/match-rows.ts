import { dtypes, elementCount } from '../../formats/tensor/dtype.js';
import {
  floatTensor,
  integerTensor,
  isIntegerDtype,
  type NamedTensors,
  numbersOf,
  type Tensor,
} from '../../formats/tensor/tensor.js';

/** Rows of which a number is further apart than this, or than twice the bound, in units of the root mean square of its column, are not the same; integers are the same or not. */
const SAME_ROW = 0.1;

/** Each row is compared with each. */
const MOST_ROWS = 1024;

/** A candidate's rows in the reference's order; where it has none like a row, or a near tie chose that, the reference's own stands in its place. */
export interface MatchedRows {
  readonly tensors: NamedTensors;
  readonly rows: number;
  /** Rows of the reference whose score is clearly above that of the last row that is kept: rounding does not choose among them. */
  readonly clear: number;
  /** Clear rows that the candidate has none for, or by how many it has fewer rows that are not all zeros. */
  readonly lost: number;
  /** Rows of the candidate, as clear, that the reference has none for, or by how many it has more. */
  readonly added: number;
}

/**
 * Puts the rows of outputs that an operator like TopK orders by their values (boxes, scores and classes of detections) into the reference's order: near ties
 * fall the other way after any rounding. Each score may be off by `bound` of the highest one. Undefined where the outputs have no rows in common.
 */
export function matchRows(
  reference: NamedTensors,
  candidate: NamedTensors,
  ordered: readonly string[],
  bound: number,
): MatchedRows | undefined {
  const shapes = ordered.map((name) => reference.get(name)!.shape);
  const ranks = shapes.map(({ length }) => length);
  const deepest = shapes[ranks.indexOf(Math.max(...ranks))] ?? [];
  const axis = deepest.length > 2 || (deepest.length === 2 && !ranks.includes(1)) ? 1 : 0;
  const prefix = deepest.slice(0, axis + 1);
  const rows = prefix[axis] ?? 0;
  if (rows < 2 || rows > MOST_ROWS) return undefined;
  const columns = ordered
    .filter((_, at) => shapes[at]!.slice(0, axis + 1).join() === prefix.join())
    .map((name) => columnOf(reference.get(name)!, candidate.get(name)!, axis, name));
  let [clear, lost, added] = [0, 0, 0];
  const same = Math.max(SAME_ROW, 2 * bound);
  const all = elementCount(prefix);
  for (let first = 0; first < all; first += rows) {
    const own = new Set(Array.from({ length: rows }, (_, row) => first + row));
    const free = new Set(own);
    let [missing, others] = [0, 0];
    for (const row of own) {
      // The choice in a near tie shows nothing about the values of its row.
      const isClear = !columns.some((one) => isTie(one, one.theirs, row, first, first + rows - 1, bound));
      const near = isClear ? nearest(columns, row, free, same) : undefined;
      if (near !== undefined) free.delete(near);
      clear += Number(isClear);
      missing += Number(isClear && near === undefined);
      for (const { width, ours, theirs, matched } of columns)
        for (let at = 0; at < width; at++)
          matched[row * width + at] =
            near === undefined ? theirs[row * width + at]! : ours[near * width + at]!;
    }
    const swapped = columns.map((one) => ({ ...one, ours: one.theirs, theirs: one.ours }));
    for (const row of free) {
      const isClear = !columns.some((one) => isTie(one, one.ours, row, first, first + rows - 1, bound));
      others += Number(isClear && nearest(swapped, row, own, same) === undefined);
    }
    // Rows of zeros fill up what an NMS leaves.
    const filled = (side: 'ours' | 'theirs') =>
      [...own].filter((row) =>
        columns.some(({ width, [side]: values }) =>
          Array.from({ length: width }, (_, at) => values[row * width + at]).some((value) => value !== 0),
        ),
      ).length;
    const surplus = filled('ours') - filled('theirs');
    lost += Math.max(missing, -surplus);
    added += Math.max(others, surplus);
  }
  const tensors = new Map(candidate);
  for (const { name, matched } of columns) {
    const { dtype, shape } = candidate.get(name)!;
    tensors.set(
      name,
      isIntegerDtype(dtype)
        ? integerTensor(dtype, shape, matched)
        : floatTensor(dtype as Parameters<typeof floatTensor>[0], shape, Float32Array.from(matched)),
    );
  }
  return { tensors, rows: all, clear, lost, added };
}

function columnOf(reference: Tensor, candidate: Tensor, axis: number, name: string) {
  const theirs = numbersOf(reference);
  const isFloat = dtypes[reference.dtype].kind === 'float';
  const width = elementCount(reference.shape.slice(axis + 1));
  const rows = reference.shape[axis]!;
  const descends = (position: number) => {
    for (let at = position, row = 0; at < theirs.length; at += width, row++) {
      const isInOrder =
        row % rows === 0
          ? theirs[at]! > theirs[at + (rows - 1) * width]!
          : theirs[at]! <= theirs[at - width]!;
      if (!isInOrder) return false;
    }
    return true;
  };
  return {
    name,
    width,
    /** Positions in a row of values that sort the rows. */
    scores: isFloat ? Array.from({ length: width }, (_, position) => position).filter(descends) : [],
    ours: numbersOf(candidate),
    theirs,
    matched: new Float64Array(theirs.length),
    /** Root mean squares by position in a row; empty for integers. */
    scales: isFloat ? columnSizes(theirs, width) : [],
  };
}

const columnSizes = (values: ArrayLike<number>, width: number): readonly number[] =>
  Array.from({ length: width }, (_, position) => {
    let squares = 0;
    for (let at = position; at < values.length; at += width) squares += values[at]! ** 2;
    return Math.sqrt((squares * width) / values.length);
  });

/** Whether a row of one side is as good as the last one that is kept. */
function isTie(
  { width, scores }: ReturnType<typeof columnOf>,
  values: ArrayLike<number>,
  row: number,
  first: number,
  last: number,
  bound: number,
): boolean {
  const of = (position: number, at: number) => values[at * width + position]!;
  return scores.some((score) => of(score, row) - of(score, last) <= 2 * bound * Math.abs(of(score, first)));
}

/** The free row that is nearest to one of the reference, where none of its numbers is further away than `same`. */
function nearest(
  columns: readonly ReturnType<typeof columnOf>[],
  row: number,
  free: ReadonlySet<number>,
  same: number,
) {
  let [best, found]: [number, number | undefined] = [same, undefined];
  for (const other of free) {
    let distance = 0;
    for (const { width, ours, theirs, scales } of columns)
      for (let at = 0; at < width && distance <= best; at++) {
        const difference = Math.abs(ours[other * width + at]! - theirs[row * width + at]!);
        distance = Math.max(distance, scales[at]! > 0 ? difference / scales[at]! : Number(difference > 0));
      }
    if (distance < best) [best, found] = [distance, other];
  }
  return found;
}
