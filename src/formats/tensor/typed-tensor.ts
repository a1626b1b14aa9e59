import { TrtforgeError } from '../../errors.js';
import { elementCount } from './dtype.js';
import type { Tensor } from './tensor.js';
import {
  type ArrayDtype,
  type ElementArray,
  elementsOf,
  isArrayDtype,
  isElementsOf,
  tensorFrom,
} from './values.js';

/** A tensor with its elements as a typed array, halves as bits; null for types that JavaScript has no array of. */
export interface TypedTensor extends Tensor {
  readonly data: ElementArray | null;
}

/** The type of each typed array; an `Uint16Array` of halves needs its type named. */
const dtypes: Readonly<Record<string, ArrayDtype>> = {
  ...{ Float32Array: 'float32', Float64Array: 'float64', Int8Array: 'int8', Uint8Array: 'uint8' },
  ...{ Int16Array: 'int16', Uint16Array: 'uint16', Int32Array: 'int32', Uint32Array: 'uint32' },
  ...{ BigInt64Array: 'int64', BigUint64Array: 'uint64' },
};

/**
 * A tensor over the memory of a typed array, or one that a session returned with its `data`. Not a promise. Throws TF_USAGE for what is no typed array, or does not
 * fill the shape.
 *
 * ```ts
 * const image = tensor(new Float32Array(6), [2, 3]);
 * use(tensor(image).data);
 * ```
 */
export function tensor(
  values: Tensor | ElementArray,
  shape: readonly number[] = [],
  type?: ArrayDtype,
): TypedTensor {
  // JavaScript calls it with anything, such as the type first, as onnxruntime-node takes it.
  if (typeof values === 'object' && values !== null && 'dtype' in values) {
    const { dtype } = values;
    return { ...values, data: isArrayDtype(dtype) ? elementsOf({ ...values, dtype }) : null };
  }
  const dtype = type ?? dtypes[values?.constructor?.name];
  const isShape = Array.isArray(shape) && shape.every((size) => Number.isSafeInteger(size) && size >= 0);
  if (!isShape || !isElementsOf(dtype, values) || values.length !== elementCount(shape)) {
    const named = type === undefined ? '' : ` and the type ${type}`;
    const what = ArrayBuffer.isView(values) ? `${values.length} elements` : 'Values without a typed array';
    throw new TrtforgeError('TF_USAGE', `${what} do not make a tensor of the shape [${shape}]${named}.`, {
      remedy: 'Pass a typed array and its dimensions: tensor(new Float32Array(6), [2, 3]).',
    });
  }
  return { ...tensorFrom(dtype, shape, values), data: values };
}
