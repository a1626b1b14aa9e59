import { TrtforgeError } from '../../errors.js';
import { type Dtype, elementCount, packedBytes } from '../tensor/dtype.js';
import type { NamedTensors, Tensor } from '../tensor/tensor.js';
import { float32Values, floatTensor, integerTensor, isIntegerDtype, numbersOf } from '../tensor/values.js';
import type { Contract, ContractBinding, StatePair } from './contract.js';

/** A tensor of `shape` with every element `value`. Throws TF_CONTRACT_INVALID for a dtype that has no such value. */
export function filledTensor(dtype: Dtype, shape: readonly number[], value: number): Tensor {
  const count = elementCount(shape);
  if (value === 0) return { dtype, shape, bytes: new Uint8Array(packedBytes(dtype, count)) };
  if (isIntegerDtype(dtype)) return integerTensor(dtype, shape, new Float64Array(count).fill(value));
  if (dtype === 'float16' || dtype === 'bfloat16' || dtype === 'float32' || dtype === 'float64') {
    return floatTensor(dtype, shape, new Float32Array(count).fill(value));
  }
  if (dtype === 'bool' && value === 1) return { dtype, shape, bytes: new Uint8Array(count).fill(1) };
  throw new TrtforgeError('TF_CONTRACT_INVALID', `State of ${dtype} cannot begin as ${value}.`, {
    remedy: 'State of this type can begin as 0 only.',
  });
}

type TypedInput = Pick<ContractBinding, 'name' | 'dtype'>;

/**
 * The state of the next step, by input name: each output cut or filled up to its capacity, and in the dtype of the input it becomes.
 * `inputs` are the session's: TensorRT before 10 takes int32 where the contract has int64.
 * Throws TF_SESSION_INPUT when an output is missing or too small to hold positions.
 */
export function nextState(
  { state, inputs }: Pick<Contract, 'state'> & { readonly inputs: readonly TypedInput[] },
  outputs: NamedTensors,
): ReadonlyMap<string, Tensor> {
  return new Map(
    state.map((pair): [string, Tensor] => {
      const tensor = outputs.get(pair.output);
      if (tensor === undefined) {
        throw new TrtforgeError(
          'TF_SESSION_INPUT',
          `There is no output ${pair.output} for the next ${pair.input}.`,
        );
      }
      const dtype = inputs.find(({ name }) => name === pair.input)?.dtype ?? tensor.dtype;
      return [pair.input, inDtype(fitToCapacity(pair, tensor), dtype)];
    }),
  );
}

/** A position of a state without a length is in use when any element of it is larger than this in the reference. */
const IN_USE = 1e-6;

/** Number of positions, counted from the side that is not padded, that include the last one in use. */
export function lastInUse(tensor: Tensor, axis: number, padSide: StatePair['padSide']): number {
  const values = float32Values(tensor);
  const size = tensor.shape[axis] ?? 0;
  const inner = elementCount(tensor.shape.slice(axis + 1));
  const isUsed = new Uint8Array(size);
  for (let at = 0, position = 0, left = inner; at < values.length; at++) {
    // Written so that NaN counts as in use.
    if (!(Math.abs(values[at]!) <= IN_USE)) isUsed[position] = 1;
    if (--left > 0) continue;
    left = inner;
    position = position + 1 === size ? 0 : position + 1;
  }
  const outermost = padSide === 'right' ? isUsed.lastIndexOf(1) : isUsed.indexOf(1);
  if (outermost < 0) return 0;
  return padSide === 'right' ? outermost + 1 : size - outermost;
}

/** Cut or filled up along the state's axis so that exactly `capacity` positions are there; untouched where it fits already. */
export function fitToCapacity({ axis, capacity, padSide, fillValue }: StatePair, tensor: Tensor): Tensor {
  const found = axis === null ? undefined : tensor.shape[axis];
  if (axis === null || capacity === null || found === undefined || found === capacity) return tensor;
  const shape = tensor.shape.with(axis, capacity);
  const filled = filledTensor(tensor.dtype, shape, fillValue);
  const rows = elementCount(tensor.shape.slice(0, axis));
  const rowBytes = packedBytes(tensor.dtype, elementCount(tensor.shape.slice(axis + 1)));
  const kept = Math.min(found, capacity) * rowBytes;
  // On the right the beginning of both stays together, on the left the end does.
  const from = padSide === 'right' ? 0 : found * rowBytes - kept;
  const to = padSide === 'right' ? 0 : capacity * rowBytes - kept;
  for (let row = 0; row < rows; row++) {
    const start = row * found * rowBytes + from;
    filled.bytes.set(tensor.bytes.subarray(start, start + kept), row * capacity * rowBytes + to);
  }
  return filled;
}

function inDtype(tensor: Tensor, dtype: Dtype): Tensor {
  if (tensor.dtype === dtype) return tensor;
  if (isIntegerDtype(dtype)) return integerTensor(dtype, tensor.shape, numbersOf(tensor));
  if (dtype === 'float16' || dtype === 'bfloat16' || dtype === 'float32' || dtype === 'float64') {
    return floatTensor(dtype, tensor.shape, float32Values(tensor));
  }
  throw new TrtforgeError(
    'TF_SESSION_INPUT',
    `An output of ${tensor.dtype} cannot become an input of ${dtype}.`,
  );
}
