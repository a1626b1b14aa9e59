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
