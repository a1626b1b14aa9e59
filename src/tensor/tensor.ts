import type { Dtype } from './dtype.js';

/** A dense tensor in C order: little-endian bytes, packed for dtypes under 8 bits. float16 and bfloat16 stay bits. */
export interface Tensor {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** Named tensors: what a session takes and gives, what an npz holds. */
export type NamedTensors = ReadonlyMap<string, Tensor>;
