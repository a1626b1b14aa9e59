import { TrtforgeError } from '../../errors.js';
import { type Dtype, elementCount, packedBytes } from '../tensor/dtype.js';
import {
  float32Values,
  floatTensor,
  integerTensor,
  isIntegerDtype,
  type NamedTensors,
  numbersOf,
  type Tensor,
} from '../tensor/tensor.js';
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

/** An input or output, as far as it is known. */
export interface Named {
  readonly name: string;
  readonly dtype: string | null;
  /** Symbols of open axes, null for those without. */
  readonly shape: readonly (number | string | null)[] | null;
}

/** Parts that exporters add to the name of a state, to distinguish its input from its output. */
const AFFIX =
  /^(?:in|input|prev|previous|last|past|old|init|initial|out|output|next|new|updated|present|cur|current|n)$/;
/** Parts of a name that only states have, and those that only what is streamed has. */
const STATE =
  /^(?:.*(?:states?|cache[sd]?|hidden|memory)|mem|past|prev|previous|rnn|lstm|gru|buf|buffers?|[hc][nx]?)$/;
const SIGNAL =
  /^(?:audio|signal|wave(?:form)?|wav|pcm|speech|noisy|mix(?:ture)?|feats?|features?|frames?|mels?|fbank|spec(?:trogram)?|stft|images?|tokens?|ids|text|src|source|chunk|samples?|sr|x|y|len(?:gth)?s?)$/;

/** `past_key_values.0.key` is past, 0, key; `stateN` state, n; `h0` h, 0. */
const partsOf = (name: string): readonly string[] =>
  name
    .replace(/(past|present)_key_values?/i, '$1')
    .replace(/([a-z])([A-Z\d])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/);

/** The common part of a state's names on both sides; empty where they have nothing else than affixes. */
function stemOf(name: string): string {
  const parts = partsOf(name).filter((part) => !AFFIX.test(part));
  const kept = parts.length > 1 && parts.at(-1) === '0' ? parts.slice(0, -1) : parts;
  return kept.map((part) => part.replace(/^([a-z])n$/, '$1')).join('_');
}

export const isStateLike = (name: string): boolean => partsOf(name).some((part) => STATE.test(part));
const isSignalLike = (name: string): boolean =>
  !isStateLike(name) && partsOf(name).some((part) => SIGNAL.test(part));

/** An output that becomes an input of the next step as it is; zeros before the first. */
export const statePair = (input: string, output: string): StatePair => ({
  ...{ input, output, initial: 0, axis: null, capacity: null },
  ...{ padSide: 'right', fillValue: 0, validLength: null },
});

/**
 * Pairs inputs with outputs by type, shape and the stem of their names; no output feeds two inputs. A name that does not read like a state counts only where
 * the shapes are the same and another input is left that is streamed. `feeds`: by default also outputs that must be cut or filled up between steps.
 */
export function pairStates(
  inputs: readonly Named[],
  outputs: readonly Named[],
  feeds = mayFeed,
): readonly StatePair[] {
  const fed = new Map<Named, Named>();
  const pair = (input: Named) => {
    const found = sameStem(input, outputs, feeds).find((output) => ![...fed.values()].includes(output));
    if (found !== undefined) fed.set(input, found);
  };
  const isState = ({ name }: Named) => isStateLike(name);
  for (const input of inputs.filter(isState)) pair(input);
  for (const input of inputs.filter((each) => !isState(each) && !isSignalLike(each.name)))
    if (inputs.some((each) => each !== input && !isLength(each) && !fed.has(each))) pair(input);
  return inputs.flatMap((input) => (fed.has(input) ? [fittedPair(input, fed.get(input)!)] : []));
}

/** Filled up along the axis on which the input has a number and the output has not. */
function fittedPair(input: Named, output: Named): StatePair {
  const pair = statePair(input.name, output.name);
  const sizes = isLength(input) || output.shape === null ? [] : (input.shape ?? []);
  const axis = sizes.findIndex(
    (size, at) => typeof size === 'number' && typeof output.shape?.[at] !== 'number',
  );
  return axis < 0 ? pair : { ...pair, axis, capacity: sizes[axis] as number };
}

/** Outputs that an input may come back as by its name, the one with most affixes first: `h_in` is the next `h_out`, not `h`. */
export const sameStem = (
  input: Named,
  outputs: readonly Named[],
  feeds: typeof mayFeed = mayFeed,
): readonly Named[] =>
  outputs
    .filter(({ name }) => name !== input.name && stemOf(name) !== '' && stemOf(name) === stemOf(input.name))
    .filter((output) => feeds(output, input))
    .toSorted((a, b) => partsOf(b.name).length - partsOf(a.name).length);

/** As `canFeed`; a state may have another size along the axis of its positions, and is cut or filled up. */
export const mayFeed = (output: Named, input: Named): boolean =>
  unequalSizes(output, input) <= (isStateLike(input.name) ? 1 : 0);

/** Whether an output is the next content of an input as it is: one type, rank and size, where they are known. */
export const canFeed = (output: Named, input: Named): boolean => unequalSizes(output, input) === 0;

/** Axes whose sizes are known and differ; infinitely many where types or ranks do. */
function unequalSizes(output: Named, input: Named): number {
  if (output.dtype !== null && input.dtype !== null && output.dtype !== input.dtype) return Infinity;
  const { shape } = input;
  if (output.shape === null || shape === null) return 0;
  if (output.shape.length !== shape.length) return Infinity;
  return output.shape.filter(
    (size, at) => typeof size === 'number' && typeof shape[at] === 'number' && size !== shape[at],
  ).length;
}

export const isLength = ({ name, dtype }: Named): boolean =>
  /len(?:gth)?s?(?:_(?:in|out|next))?$/i.test(name) && (dtype === null || /^u?int/.test(dtype));
