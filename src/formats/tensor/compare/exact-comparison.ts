import { dtypes, elementCount } from '../dtype.js';
import { PIECE } from '../float-reader.js';
import type { Tensor } from '../tensor.js';
import type { TensorReader } from '../tensor-reader.js';
import { elementsOf, numbersOf } from '../values.js';
import type { Tolerance } from './pair-sums.js';
import { type FarPair, WorstPairs } from './worst-pairs.js';

export interface ExactComparison {
  readonly elements: number;
  readonly different: number;
  /** Of these, elements with |candidate - reference| > absolute + relative * |reference|. */
  readonly outside: number;
  /** Largest |candidate - reference|; Infinity where one of them is not a number. */
  readonly largest: number;
  readonly worst: readonly FarPair[];
}

/** Compares element by element, 64-bit integers to their last bit. Shapes are the same. Throws TF_TENSOR_UNSUPPORTED for text and complex numbers. */
export function compareExactly(
  candidate: TensorReader,
  reference: TensorReader,
  name: string,
  most: number,
  { absolute, relative }: Tolerance = { absolute: 0, relative: 0 },
): ExactComparison {
  const elements = elementCount(reference.shape);
  const worst = new WorstPairs(most);
  let different = 0;
  let outside = 0;
  let largest = 0;
  for (let start = 0; start < elements; start += PIECE) {
    const count = Math.min(PIECE, elements - start);
    const [ours, theirs] = [piece(candidate, start, count), piece(reference, start, count)];
    if (candidate.dtype === reference.dtype && Buffer.compare(ours.bytes, theirs.bytes) === 0) continue;
    const [c, r] = [numbers(ours, name), numbers(theirs, name)];
    for (let i = 0; i < count; i++) {
      const [a, b] = [c[i]!, r[i]!];
      const error = difference(a, b);
      if (error === 0) continue;
      const size = Number.isNaN(error) ? Number.POSITIVE_INFINITY : error;
      different++;
      if (size > absolute + relative * Math.abs(Number(b))) outside++;
      largest = Math.max(largest, size);
      worst.add({ index: start + i, candidate: Number(a), reference: Number(b), error: size });
    }
  }
  return { elements, different, outside, largest, worst: worst.list() };
}

/** Number of elements of a tensor outside a tolerance when zeros replace the tensor that was to be compared with it. */
export function zerosOutside(
  reference: TensorReader,
  { absolute, relative }: Tolerance,
  name: string,
): number {
  const elements = elementCount(reference.shape);
  const { kind, bits } = dtypes[reference.dtype];
  let outside = 0;
  for (let start = 0; start < elements; start += PIECE) {
    const count = Math.min(PIECE, elements - start);
    const theirs = piece(reference, start, count);
    if (kind === 'complex') {
      outside += nonZero(theirs.bytes, bits / 8);
      continue;
    }
    const values = numbers(theirs, name);
    for (let i = 0; i < count; i++) {
      const size = Math.abs(Number(values[i]));
      if (size > absolute + relative * size) outside++;
    }
  }
  return outside;
}

/** Number of elements of `width` bytes that are not zero. */
function nonZero(bytes: Uint8Array, width: number): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at += width)
    if (bytes.subarray(at, at + width).some((byte) => byte !== 0)) count++;
  return count;
}

/** PIECE is a multiple of what shares a byte. */
function piece(reader: TensorReader, start: number, count: number): Tensor {
  const { bits } = dtypes[reader.dtype];
  const bytes = new Uint8Array(Math.ceil((count * bits) / 8));
  reader.readBytes((start * bits) / 8, bytes);
  return { dtype: reader.dtype, shape: [count], bytes };
}

const numbers = (tensor: Tensor, name: string): ArrayLike<number> | BigInt64Array | BigUint64Array =>
  tensor.dtype === 'int64' || tensor.dtype === 'uint64'
    ? elementsOf({ ...tensor, dtype: tensor.dtype })
    : numbersOf(tensor, name);

/** |a - b|, to the last bit of 64-bit integers whatever the other side is. */
function difference(a: number | bigint, b: number | bigint): number {
  if (typeof a === 'number' && typeof b === 'number') return Math.abs(a - b);
  const [one, other] = [whole(a), whole(b)];
  // A double with a fraction is small enough that nothing near it is rounded.
  if (one === undefined || other === undefined) return Math.abs(Number(a) - Number(b));
  return Number(one < other ? other - one : one - other);
}

const whole = (value: number | bigint): bigint | undefined =>
  typeof value === 'bigint' ? value : Number.isInteger(value) ? BigInt(value) : undefined;
