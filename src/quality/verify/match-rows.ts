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
  const all = elementCount(prefix);
  let [clear, lost, added] = [0, 0, 0];
  for (let first = 0; first < all; first += rows) {
    const found = matchBlock(columns, { first, last: first + rows - 1 }, bound);
    clear += found.clear;
    lost += found.lost;
    added += found.added;
  }
  const tensors = new Map(candidate);
  for (const column of columns) tensors.set(column.name, matchedTensor(column, candidate.get(column.name)!));
  return { tensors, rows: all, clear, lost, added };
}

type Column = ReturnType<typeof columnOf>;

/** The rows of one image, which an operator has ordered: from the first to the last. */
interface Block {
  readonly first: number;
  readonly last: number;
}

/** Puts one block of rows into the reference's order, in `matched` of the columns. */
function matchBlock(
  columns: readonly Column[],
  block: Block,
  bound: number,
): Pick<MatchedRows, 'clear' | 'lost' | 'added'> {
  const same = Math.max(SAME_ROW, 2 * bound);
  const own = new Set(Array.from({ length: block.last - block.first + 1 }, (_, row) => block.first + row));
  const free = new Set(own);
  let [clear, missing, others] = [0, 0, 0];
  for (const row of own) {
    // The choice in a near tie shows nothing about the values of its row.
    const isClear = !columns.some((one) => isTie(one, one.theirs, row, block, bound));
    const near = isClear ? nearest(columns, row, free, same) : undefined;
    if (near !== undefined) free.delete(near);
    clear += Number(isClear);
    missing += Number(isClear && near === undefined);
    for (const column of columns) takeRow(column, row, near);
  }
  const swapped = columns.map((one) => ({ ...one, ours: one.theirs, theirs: one.ours }));
  for (const row of free) {
    const isClear = !columns.some((one) => isTie(one, one.ours, row, block, bound));
    others += Number(isClear && nearest(swapped, row, own, same) === undefined);
  }
  // Rows of zeros fill up what an NMS leaves.
  const filled = (side: 'ours' | 'theirs') =>
    [...own].filter((row) => columns.some((one) => hasValue(one[side], row, one.width))).length;
  const surplus = filled('ours') - filled('theirs');
  return { clear, lost: Math.max(missing, -surplus), added: Math.max(others, surplus) };
}

/** Takes the candidate's row that is near one of the reference, or the reference's own where there is none. */
function takeRow({ width, ours, theirs, matched }: Column, row: number, near: number | undefined): void {
  const [source, from] = near === undefined ? [theirs, row] : [ours, near];
  for (let at = 0; at < width; at++) matched[row * width + at] = source[from * width + at]!;
}

const hasValue = (values: ArrayLike<number>, row: number, width: number): boolean =>
  Array.from({ length: width }, (_, at) => values[row * width + at]).some((value) => value !== 0);

function matchedTensor({ matched }: Column, { dtype, shape }: Tensor): Tensor {
  return isIntegerDtype(dtype)
    ? integerTensor(dtype, shape, matched)
    : floatTensor(dtype as Parameters<typeof floatTensor>[0], shape, Float32Array.from(matched));
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
  { width, scores }: Column,
  values: ArrayLike<number>,
  row: number,
  { first, last }: Block,
  bound: number,
): boolean {
  const of = (position: number, at: number) => values[at * width + position]!;
  return scores.some((score) => of(score, row) - of(score, last) <= 2 * bound * Math.abs(of(score, first)));
}

/** The free row that is nearest to one of the reference, where none of its numbers is further away than `same`. */
function nearest(columns: readonly Column[], row: number, free: ReadonlySet<number>, same: number) {
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
