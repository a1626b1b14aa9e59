import { isRecord, pythonJson, replaceBare } from '../../base/files/json.js';
import { integerTensor, type Tensor, tensorFrom } from '../tensor/tensor.js';
import { LineFault } from './lines.js';

/** Deeper than any tensor. */
const MAX_DEPTH = 32;
/** A number written with a point or an exponent whose value may be whole. */
const WHOLE_FRACTION = /(?<![\d.])-?\d+(?:\.0+|(?:\.\d+)?[eE][-+]?\d+)(?![\d.eE])/g;

type ListDtype = 'int64' | 'float32';
type Side = 'inputs' | 'outputs';

/**
 * Makes tensors of nested lists of numbers: int64 when no number of the tensor is written with a point or an exponent, else float32. `JSON.parse` does
 * not keep how a number was written, so where all values are whole, the text decides once and the tensor keeps that dtype in the lines that follow.
 */
export class NumberLists {
  readonly #dtypes = new Map<string, ListDtype>();

  /** Throws LineFault for ragged lists, for anything but numbers, and for integers that a double cannot represent. */
  tensor(list: unknown, side: Side, name: string, text: string): Tensor {
    const { shape, rows } = rowsOf(typeof list === 'number' ? [list] : list);
    const { values, isWhole, isExact } = numbersIn(rows);
    const key = `${side}/${name}`;
    const known = this.#dtypes.get(key);
    const isKnown = known === 'float32' || (known === 'int64' && isExact);
    const dtype = !isWhole ? 'float32' : isKnown ? known : writtenDtype(text, side, name);
    this.#dtypes.set(key, dtype);
    const axes = typeof list === 'number' ? [] : shape;
    if (dtype === 'float32')
      return tensorFrom('float32', axes, values instanceof Float32Array ? values : new Float32Array(values));
    if (!isExact) throw new LineFault('a list has an integer beyond 2^53');
    return integerTensor('int64', axes, values);
  }
}

/** The innermost lists, all of one length, and the shape of the whole. */
function rowsOf(list: unknown): { shape: readonly number[]; rows: readonly (readonly unknown[])[] } {
  const shape: number[] = [];
  let level = [list as readonly unknown[]];
  for (;;) {
    const size = level[0]?.length ?? 0;
    const other = level.find(({ length }) => length !== size);
    if (other !== undefined)
      throw new LineFault(`its lists are ragged: ${size} elements, then ${other.length}`);
    shape.push(size);
    if (!Array.isArray(level[0]?.[0])) return { shape, rows: level };
    if (shape.length === MAX_DEPTH) throw new LineFault(`its lists are deeper than ${MAX_DEPTH} levels`);
    level = level.flat() as (readonly unknown[])[];
    if (!level.every(Array.isArray)) throw bothKinds();
  }
}

interface Numbers {
  /** Whole numbers as doubles, others as float32, to which every reader rounds them. */
  readonly values: Float64Array | Float32Array;
  readonly isWhole: boolean;
  /** Every value is a whole number that is not shared by several integers. */
  readonly isExact: boolean;
}

function numbersIn(rows: readonly (readonly unknown[])[]): Numbers {
  const isWhole = rows.every((row) =>
    row.every((value) => typeof value !== 'number' || Number.isInteger(value)),
  );
  const count = rows.length * (rows[0]?.length ?? 0);
  const values = isWhole ? new Float64Array(count) : new Float32Array(count);
  let at = 0;
  for (const row of rows) {
    for (let i = 0; i < row.length; i++) {
      const value = row[i];
      if (typeof value === 'number') values[at++] = value;
      else if (Array.isArray(value)) throw bothKinds();
      else throw new LineFault('a list has something other than numbers');
    }
  }
  return { values, isWhole, isExact: isWhole && values.every(Number.isSafeInteger) };
}

/** The dtype of a tensor whose values are whole, by how its numbers are written in the text of a valid line. */
function writtenDtype(text: string, side: Side, name: string): ListDtype {
  const marked = pythonJson(replaceBare(text, WHOLE_FRACTION, (number) => JSON.stringify(number)));
  const tensors = isRecord(marked) ? marked[side] : undefined;
  return isRecord(tensors) && hasMark(tensors[name]) ? 'float32' : 'int64';
}

const hasMark = (node: unknown): boolean =>
  Array.isArray(node) ? node.some(hasMark) : typeof node === 'string';

const bothKinds = () => new LineFault('a list has both lists and numbers');
