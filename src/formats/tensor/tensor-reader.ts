import type { ByteSource } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import type { Dtype } from './dtype.js';
import type { Tensor } from './tensor.js';

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
