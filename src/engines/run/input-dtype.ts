import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';
import { type ByteFloat, isByteFloat } from '../../formats/tensor/low-precision.js';
import {
  elementsOf,
  firstBeyond,
  float32Values,
  floatTensor,
  type IntegerDtype,
  integerTensor,
  isIntegerDtype,
  type NamedTensors,
  narrowableValues,
  numbersOf,
  type Tensor,
} from '../../formats/tensor/tensor.js';
import type { Binding } from '../runtime/session.js';

/** A tensor in the dtype of a binding: floats and integers are converted among themselves; anything else, and an integer that does not fit, is TF_SESSION_INPUT. */
export function inDtype(input: Binding, tensor: Tensor, origin: string): Tensor {
  const { dtype } = input;
  checkConvertible(input, tensor.dtype, origin);
  if (tensor.dtype === dtype) return tensor;
  if (isFloatDtype(dtype)) {
    const values = dtypes[dtype].bits < 32 ? narrowableValues(tensor) : float32Values(tensor);
    return floatTensor(dtype, tensor.shape, values);
  }
  if (!isIntegerDtype(dtype)) return tensor;
  if (dtypes[dtype].bits === 64 && dtypes[tensor.dtype].bits === 64) return otherSign(input, tensor, origin);
  return integersOf(input, dtype, tensor.shape, numbersOf(tensor), origin);
}

/** The tensors of these bindings, each in the dtype of its binding; those that are not there are left out. Throws TF_SESSION_INPUT. */
export const inTypesOf = (
  bindings: readonly Binding[],
  tensors: NamedTensors,
  origin: string,
): NamedTensors =>
  new Map(
    bindings.flatMap((binding) => {
      const tensor = tensors.get(binding.name);
      return tensor === undefined ? [] : [[binding.name, inDtype(binding, tensor, origin)]];
    }),
  );

/** int64 as uint64 or the other way, to the last bit. */
function otherSign(input: Binding, tensor: Tensor, origin: string): Tensor {
  const elements = elementsOf({ ...tensor, dtype: tensor.dtype as 'int64' | 'uint64' });
  const at = elements.findIndex((value) => BigInt.asIntN(64, value) < 0n);
  if (at >= 0) throw beyond(input, origin, elements[at]!, at);
  return { ...tensor, dtype: input.dtype };
}

/** Throws TF_SESSION_INPUT for a number out of the type's range: it would wrap around. */
function integersOf(
  input: Binding,
  dtype: IntegerDtype,
  shape: readonly number[],
  values: ArrayLike<number>,
  origin: string,
): Tensor {
  const at = firstBeyond(dtype, values);
  if (at < 0) return integerTensor(dtype, shape, values);
  throw beyond(input, origin, values[at]!, at);
}

const beyond = ({ name, dtype }: Binding, origin: string, value: number | bigint, at: number) =>
  new TrtforgeError(
    'TF_SESSION_INPUT',
    `${origin} holds ${value} (element ${at}), which the input "${name}" of type ${dtype} cannot.`,
    { remedy: `Pass values that ${dtype} can represent.` },
  );

/** Throws TF_SESSION_INPUT unless values of a dtype can be converted for an input: floats to floats, integers to integers. */
export function checkConvertible(input: Binding, dtype: Dtype, origin: string): void {
  const { kind } = dtypes[dtype];
  if (input.dtype === dtype || (isFloatDtype(input.dtype) && kind === 'float')) return;
  if (isIntegerDtype(input.dtype) && (kind === 'int' || kind === 'uint')) return;
  throw new TrtforgeError(
    'TF_SESSION_INPUT',
    `${origin} holds ${dtype}, but the input "${input.name}" is ${input.dtype}.`,
    { remedy: `Cast ${origin} to ${input.dtype}.` },
  );
}

export const isFloatDtype = (
  dtype: Dtype,
): dtype is 'float16' | 'bfloat16' | 'float32' | 'float64' | ByteFloat =>
  ['float16', 'bfloat16', 'float32', 'float64'].includes(dtype) || isByteFloat(dtype);
