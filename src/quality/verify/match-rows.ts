import { magnitudesOf } from '../../formats/tensor/compare/magnitudes.js';
import { dtypes, elementCount } from '../../formats/tensor/dtype.js';
import { floatReader } from '../../formats/tensor/float-reader.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { tensorReader } from '../../formats/tensor/tensor-reader.js';
import { floatTensor, integerTensor, isIntegerDtype, numbersOf } from '../../formats/tensor/values.js';

/** Rows that are further apart than this, in units of each output's root mean square, are not the same; integers are the same or not. */
const SAME_ROW = 0.1;

/** Each row is compared with each. */
const MOST_ROWS = 1024;

/** A candidate's rows in the reference's order; where it has none like a row, or a near tie chose that, the reference's own stands in its place. */
export interface MatchedRows {
  readonly tensors: NamedTensors;
  readonly rows: number;
  /** Rows of the reference whose score is clearly above that of the last row that is kept: rounding does not choose among them. */
  readonly clear: number;
  /** Clear rows that the candidate has none for. */
  readonly lost: number;
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
  let [clear, lost] = [0, 0];
  const all = elementCount(prefix);
  for (let first = 0; first < all; first += rows) {
    const free = new Set(Array.from({ length: rows }, (_, row) => first + row));
    for (let row = first; row < first + rows; row++) {
      // What a near tie chose says nothing about the values of its row.
      const isClear = !columns.some((column) => isTie(column, row, first, first + rows - 1, bound));
      const near = isClear ? nearest(columns, row, free) : undefined;
      if (near !== undefined) free.delete(near);
      clear += Number(isClear);
      lost += Number(isClear && near === undefined);
      for (const { width, ours, theirs, matched } of columns)
        for (let at = 0; at < width; at++)
          matched[row * width + at] =
            near === undefined ? theirs[row * width + at]! : ours[near * width + at]!;
    }
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
  return { tensors, rows: all, clear, lost };
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
    scale: isFloat ? magnitudesOf(floatReader(tensorReader(reference))).rms : 0,
  };
}

/** Whether a row is as good as the last one that is kept. */
function isTie(
  { theirs, width, scores }: ReturnType<typeof columnOf>,
  row: number,
  first: number,
  last: number,
  bound: number,
): boolean {
  const of = (position: number, at: number) => theirs[at * width + position]!;
  return scores.some((score) => of(score, row) - of(score, last) <= 2 * bound * Math.abs(of(score, first)));
}

/** The free row that is nearest to one of the reference, where it is the same. */
function nearest(columns: readonly ReturnType<typeof columnOf>[], row: number, free: ReadonlySet<number>) {
  let [best, found]: [number, number | undefined] = [SAME_ROW, undefined];
  for (const other of free) {
    let distance = 0;
    for (const { width, ours, theirs, scale } of columns) {
      let sum = 0;
      for (let at = 0; at < width; at++) {
        const difference = Math.abs(ours[other * width + at]! - theirs[row * width + at]!);
        sum += scale > 0 ? difference / scale : Number(difference > 0);
      }
      distance = Math.max(distance, sum / width);
      if (distance > best) break;
    }
    if (distance < best) [best, found] = [distance, other];
  }
  return found;
}
