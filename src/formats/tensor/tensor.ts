import type { Dtype } from './dtype.js';

/** A dense tensor in C order: little-endian bytes, packed for dtypes under 8 bits. float16 and bfloat16 stay bits. */
export interface Tensor {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** The tensor with bytes of its own. Not by slice(): that of a Buffer is another view of the same memory. */
export const copiedTensor = (tensor: Tensor): Tensor => ({ ...tensor, bytes: new Uint8Array(tensor.bytes) });

type Shaped = Pick<Tensor, 'shape'>;
export const isSameShape = (a: Shaped, b: Shaped): boolean => a.shape.join() === b.shape.join();

/** Named tensors: what a session takes and gives, what an npz holds. */
export type NamedTensors = ReadonlyMap<string, Tensor>;

/** Values by name: a Map, or an object. */
export type ByName<T> = ReadonlyMap<string, T> | Readonly<Record<string, T>>;
