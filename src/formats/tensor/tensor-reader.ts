import type { ByteSource } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypes, elementCount } from './dtype.js';
import { numbersOf, type Tensor } from './tensor.js';

/** A tensor whose elements are read piece by piece, wherever they are: comparing large ones takes no copy of them. */
export interface TensorReader {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  /** Fills `target` with the bytes from `position` on, little-endian and in C order. */
  readBytes(position: number, target: Uint8Array): void;
}

/** A tensor in memory as one that is read piece by piece. */
export function tensorReader({ dtype, shape, bytes }: Tensor): TensorReader {
  return {
    dtype,
    shape,
    readBytes: (position, target) => target.set(bytes.subarray(position, position + target.length)),
  };
}

/** A tensor whose bytes lie as they are in a file, from `offset` on. Reading throws TF_TENSOR_FILE_INVALID when the file has become shorter. */
export function storedTensor(
  source: ByteSource,
  offset: number,
  { dtype, shape }: { readonly dtype: Dtype; readonly shape: readonly number[] },
): TensorReader {
  return {
    dtype,
    shape,
    readBytes: (position, target) => {
      if (source.read(target, offset + position, target.length) === target.length) return;
      throw new TrtforgeError('TF_TENSOR_FILE_INVALID', `${source.path} ended before the tensor did.`);
    },
  };
}

/** Room for the one tensor of a set of files that had to be read as a whole (compressed, column-major, big-endian). */
export interface LoadedSlot {
  key: object | null;
  tensor: Tensor | null;
}

export const loadedSlot = (): LoadedSlot => ({ key: null, tensor: null });

/** A file of named tensors, opened: each tensor is read when asked for. */
export interface TensorFile {
  readonly path: string;
  readonly names: readonly string[];
  /** Type and shape without reading the elements. Throws TF_TENSOR_NOT_FOUND. */
  describe(name: string): { readonly dtype: Dtype; readonly shape: readonly number[] };
  /** Throws TF_TENSOR_NOT_FOUND, TF_TENSOR_FILE_INVALID, TF_TENSOR_UNSUPPORTED. */
  read(name: string): Tensor;
  /** The tensor to be read piece by piece while the file is open. Throws as `read`. */
  reader(name: string, slot: LoadedSlot): TensorReader;
  close(): void;
}

export function tensorNotFound(path: string, name: string, names: Iterable<string>): TrtforgeError {
  const all = [...names];
  const listed =
    all.length === 0 ? 'it has none' : `it has ${all.slice(0, 12).join(', ')}${all.length > 12 ? ', …' : ''}`;
  return new TrtforgeError('TF_TENSOR_NOT_FOUND', `${path} has no tensor ${name}; ${listed}.`);
}

/** Numbers as floats, read piece by piece. */
export interface FloatReader {
  readonly length: number;
  /** The format that holds the numbers as they are, or as nearly as a double can. */
  readonly format: FloatFormat;
  /** Fills `target` with the values from `start` on, rounded where it is the narrower. */
  read(start: number, target: FloatArray): void;
}

/** Candidate and reference, of the same length. */
export interface FloatPairs {
  readonly candidate: FloatReader;
  readonly reference: FloatReader;
}

/** Values per step of those that read a whole tensor. */
export const PIECE = 32_768;

/** The format in which both sides are compared: float64 as soon as float32 would round one of them. */
export const pairFormat = ({ candidate, reference }: FloatPairs): FloatFormat =>
  widest([candidate, reference]);

const widest = (readers: readonly FloatReader[]): FloatFormat =>
  readers.some(({ format }) => format === float64Format) ? float64Format : float32Format;

/** Whether a type has values that float32 cannot hold. */
const isWide = (dtype: Dtype): boolean =>
  dtype === 'float64' || (dtypes[dtype].bits >= 32 && ['int', 'uint'].includes(dtypes[dtype].kind));

/** The elements of a tensor as floats (see `numbersOf`); floats go from where they lie straight to a target of their type. */
export function floatReader(tensor: TensorReader, name = 'the tensor'): FloatReader {
  const { dtype, shape } = tensor;
  const { bits } = dtypes[dtype];
  return {
    length: elementCount(shape),
    format: isWide(dtype) ? float64Format : float32Format,
    read: (start, target) => {
      const { name: wanted, bytes: width } = formatOf(target);
      if (wanted === dtype) {
        tensor.readBytes(width * start, new Uint8Array(target.buffer, target.byteOffset, target.byteLength));
        return;
      }
      const firstByte = Math.floor((start * bits) / 8);
      // Elements of less than a byte may begin within one.
      const before = start - (firstByte * 8) / Math.max(1, bits);
      const count = before + target.length;
      const bytes = new Uint8Array(Math.ceil((count * bits) / 8));
      tensor.readBytes(firstByte, bytes);
      target.set(numbersOf({ dtype, shape: [count], bytes }, name).subarray(before));
    },
  };
}

export const floatsOf = (values: FloatArray): FloatReader => ({
  length: values.length,
  format: formatOf(values),
  read: (start, target) => target.set(values.subarray(start, start + target.length)),
});

/** Each number changed; `change` gets its index too. */
export const mappedFloats = (
  { length, format, read }: FloatReader,
  change: (value: number, index: number) => number,
): FloatReader => ({
  length,
  format,
  read: (start, target) => {
    read(start, target);
    for (let i = 0; i < target.length; i++) target[i] = change(target[i]!, start + i);
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
    format: widest(parts),
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

/** Hands over a few thousand pairs at a time, with the index of the first; the arrays are used again for the next. */
export function eachPiece(
  pairs: FloatPairs,
  take: (candidate: FloatArray, reference: FloatArray, start: number) => void,
): void {
  const { candidate, reference } = pairs;
  const format = pairFormat(pairs);
  const room = Math.min(PIECE, reference.length);
  const [ours, theirs] = [format.make(room), format.make(room)];
  for (let start = 0; start < reference.length; start += PIECE) {
    const count = Math.min(PIECE, reference.length - start);
    const [c, r] = [ours.subarray(0, count), theirs.subarray(0, count)];
    candidate.read(start, c);
    reference.read(start, r);
    take(c, r, start);
  }
}

/** Reads numbers from front to back, so many at once that memory stays small. The piece is the same array each time. */
export function eachPieceOf(values: FloatReader, visit: (piece: FloatArray, start: number) => void): void {
  const room = values.format.make(Math.min(PIECE, values.length));
  for (let start = 0; start < values.length; start += PIECE) {
    const piece = room.subarray(0, values.length - start);
    values.read(start, piece);
    visit(piece, start);
  }
}

/** Numbers as a comparison works on them. */
export type FloatArray = Float32Array | Float64Array;

/** One of the two formats in which numbers are compared (IEEE 754), and what its bits mean. */
export interface FloatFormat {
  readonly name: 'float32' | 'float64';
  readonly bytes: 4 | 8;
  readonly exponentBits: 8 | 11;
  /** The number subtracted from the exponent's bits to get the exponent. */
  readonly bias: 127 | 1023;
  /** A result of arithmetic in float64 as this format holds it. */
  readonly round: (value: number) => number;
  readonly make: (length: number) => FloatArray;
}

export const float32Format: FloatFormat = {
  name: 'float32',
  bytes: 4,
  exponentBits: 8,
  bias: 127,
  round: Math.fround,
  make: (length) => new Float32Array(length),
};

export const float64Format: FloatFormat = {
  name: 'float64',
  bytes: 8,
  exponentBits: 11,
  bias: 1023,
  round: (value) => value,
  make: (length) => new Float64Array(length),
};

export const formatOf = (values: FloatArray): FloatFormat =>
  values instanceof Float64Array ? float64Format : float32Format;
