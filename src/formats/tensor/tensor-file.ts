import { TrtforgeError } from '../../errors.js';
import type { Dtype } from './dtype.js';
import type { LoadedSlot } from './npy.js';
import type { Tensor } from './tensor.js';
import type { TensorReader } from './tensor-reader.js';

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
    all.length === 0
      ? 'it holds none'
      : `it holds ${all.slice(0, 12).join(', ')}${all.length > 12 ? ', …' : ''}`;
  return new TrtforgeError('TF_TENSOR_NOT_FOUND', `${path} has no tensor ${name}; ${listed}.`);
}
