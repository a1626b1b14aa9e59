import { type Dtype, elementCount, packedBytes } from './dtype.js';

/** A dense tensor in C order: little-endian bytes, packed for dtypes under 8 bits. float16 and bfloat16 stay bits. */
export interface Tensor {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** Named tensors: what a session takes and gives, what an npz holds. */
export type NamedTensors = ReadonlyMap<string, Tensor>;

export function tensorOf(dtype: Dtype, shape: readonly number[], bytes: Uint8Array): Tensor {
  const expected = packedBytes(dtype, elementCount(shape));
  if (bytes.byteLength !== expected) {
    throw new RangeError(
      `A ${dtype} tensor of shape [${shape}] has ${expected} bytes, not ${bytes.byteLength}.`,
    );
  }
  return { dtype, shape, bytes };
}
