import { types } from 'node:util';
import { TrtforgeError } from '../../errors.js';
import { elementCount, packedBytes } from '../../formats/tensor/dtype.js';
import type { ByName, NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import type { Binding } from './session.js';

/** The same for anything but a tensor. */
export function assertTensor(name: string, value: unknown): asserts value is Tensor {
  if (isTensor(value)) return;
  throw wrong(
    `The value passed for ${name} is not a tensor: that is an object with dtype, shape (an array of numbers) and bytes (a Uint8Array).`,
  );
}

export const isTensor = (value: unknown): value is Tensor =>
  typeof value === 'object' &&
  value !== null &&
  'shape' in value &&
  Array.isArray(value.shape) &&
  value.shape.every((size) => typeof size === 'number') &&
  'bytes' in value &&
  types.isUint8Array(value.bytes);

/** Throws TF_SESSION_INPUT unless there is one tensor for each input, of its dtype, of a shape that fits and with the bytes it needs; a symbol stands for one number throughout. */
export function checkInputs(inputs: readonly Binding[], tensors: NamedTensors): void {
  rejectUnknown(inputs, tensors.keys());
  const symbols = new Map<string, number>();
  for (const input of inputs) {
    const tensor = tensors.get(input.name);
    if (tensor === undefined) throw wrong(`There is no tensor for the input "${input.name}".`);
    checkTensor(input, tensor, symbols);
  }
}

/** Throws TF_SESSION_INPUT for a name that no input has. */
export function rejectUnknown(inputs: readonly { readonly name: string }[], names: Iterable<string>): void {
  for (const name of names) {
    if (inputs.some((input) => input.name === name)) continue;
    const known = inputs.map((input) => input.name).join(', ');
    throw wrong(`There is no input "${name}"; the inputs are ${known}.`);
  }
}

/** Throws TF_SESSION_INPUT for a tensor of another dtype or shape than its binding, or with too few or too many bytes. */
export function checkTensor(binding: Binding, tensor: Tensor, symbols?: Map<string, number>): void {
  const { name, dtype } = binding;
  assertTensor(name, tensor);
  if (tensor.dtype !== dtype) throw wrong(`${name} is ${dtype}, the tensor for it is ${tensor.dtype}.`);
  checkDims(binding, tensor.shape, symbols);
  const needed = packedBytes(dtype, elementCount(tensor.shape));
  if (tensor.bytes.length !== needed)
    throw wrong(
      `${name} of shape ${list(tensor.shape)} and type ${dtype} needs ${needed} bytes, the tensor for it has ${tensor.bytes.length}.`,
    );
}

/** Throws TF_SESSION_INPUT for a shape of another rank, with other fixed dimensions, or with other sizes of symbols than those before, which it adds to. */
export function checkDims(
  { name, shape }: Pick<Binding, 'name' | 'shape'>,
  dims: readonly number[],
  symbols: Map<string, number> = new Map(),
): void {
  const isShape = dims.every((size) => Number.isSafeInteger(size) && size >= 0);
  const declared = shape ?? dims;
  const sizes = declared.map((dim, axis) =>
    typeof dim === 'string' ? (symbols.get(dim) ?? dims[axis]) : (dim ?? dims[axis]),
  );
  if (!isShape || !Number.isSafeInteger(elementCount(dims)) || !same(sizes, dims)) {
    const known = declared.flatMap((dim) =>
      typeof dim === 'string' && symbols.has(dim) ? `${dim} is ${symbols.get(dim)}` : [],
    );
    const where = known.length === 0 ? '' : ` (${[...new Set(known)].join(', ')})`;
    throw wrong(
      `${name} is ${list(declared.map((dim) => dim ?? '?'))}${where}; the shape for it is ${list(dims)}.`,
    );
  }
  for (const [axis, dim] of declared.entries()) if (typeof dim === 'string') symbols.set(dim, dims[axis]!);
}

export function same<T>(a: readonly T[], b: readonly T[]): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}

export const list = (items: readonly (number | string)[]): string => `[${items.join(', ')}]`;

export const wrong = (message: string): TrtforgeError => new TrtforgeError('TF_SESSION_INPUT', message);

/** A Map of what a caller passed by name. Throws TF_SESSION_INPUT for anything but an object or a Map: a caller in JavaScript has no compiler. */
export function mapOf<T>(what: string, passed: ByName<T>): ReadonlyMap<string, T> {
  if (passed instanceof Map) return passed;
  if (typeof passed === 'object' && passed !== null && !isTensor(passed) && !Array.isArray(passed))
    return new Map(Object.entries(passed));
  throw wrong(`The ${what} are not an object with a value for each name, nor a Map.`);
}
