import { dtypes, elementCount } from './dtype.js';
import type { TensorReader } from './tensor-reader.js';
import { float32Values } from './values.js';

/** Numbers as float32, read piece by piece. */
export interface FloatReader {
  readonly length: number;
  /** Fills `target` with the values from `start` on. */
  read(start: number, target: Float32Array): void;
}

/** Candidate and reference, of the same length. */
export interface FloatPairs {
  readonly candidate: FloatReader;
  readonly reference: FloatReader;
}

/** Values per step of those that read a whole tensor. */
export const PIECE = 32_768;

/** The elements of a tensor as float32 (see `float32Values`); float32 goes from where it lies straight to the target. */
export function floatReader(tensor: TensorReader, name = 'the tensor'): FloatReader {
  const { dtype, shape } = tensor;
  const length = elementCount(shape);
  if (dtype === 'float32') {
    return {
      length,
      read: (start, target) =>
        tensor.readBytes(4 * start, new Uint8Array(target.buffer, target.byteOffset, target.byteLength)),
    };
  }
  const { bits } = dtypes[dtype];
  return {
    length,
    read: (start, target) => {
      const firstByte = Math.floor((start * bits) / 8);
      // Elements of less than a byte may begin within one.
      const before = start - (firstByte * 8) / Math.max(1, bits);
      const count = before + target.length;
      const bytes = new Uint8Array(Math.ceil((count * bits) / 8));
      tensor.readBytes(firstByte, bytes);
      target.set(float32Values({ dtype, shape: [count], bytes }, name).subarray(before));
    },
  };
}

export const floatsOf = (values: Float32Array): FloatReader => ({
  length: values.length,
  read: (start, target) => target.set(values.subarray(start, start + target.length)),
});

/** Zeros: the candidate that every sensible tolerance must refuse. */
export const zeroFloats = (length: number): FloatReader => ({
  length,
  read: (_start, target) => {
    target.fill(0);
  },
});

/** Several, one after the other, as one. */
export function joinedFloats(parts: readonly FloatReader[]): FloatReader {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  const starts: number[] = [];
  let length = 0;
  for (const part of parts) {
    starts.push(length);
    length += part.length;
  }
  return {
    length,
    read: (start, target) => {
      for (const [index, part] of parts.entries()) {
        const first = starts[index] ?? 0;
        const from = Math.max(start, first);
        const to = Math.min(start + target.length, first + part.length);
        if (from < to) part.read(from - first, target.subarray(from - start, to - start));
      }
    },
  };
}

/** All values, in memory. */
export function allFloats(reader: FloatReader): Float32Array {
  const values = new Float32Array(reader.length);
  reader.read(0, values);
  return values;
}

/** Hands over a few thousand pairs at a time, with the index of the first; the arrays are used again for the next. */
export function eachPiece(
  { candidate, reference }: FloatPairs,
  take: (candidate: Float32Array, reference: Float32Array, start: number) => void,
): void {
  const [ours, theirs] = [new Float32Array(PIECE), new Float32Array(PIECE)];
  for (let start = 0; start < reference.length; start += PIECE) {
    const count = Math.min(PIECE, reference.length - start);
    const [c, r] = [ours.subarray(0, count), theirs.subarray(0, count)];
    candidate.read(start, c);
    reference.read(start, r);
    take(c, r, start);
  }
}
