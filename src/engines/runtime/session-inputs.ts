import { types } from 'node:util';
import { TrtforgeError } from '../../errors.js';
import { elementCount, packedBytes } from '../../formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import type { Binding } from './session.js';

/** Throws TF_SESSION_INPUT for anything but a Map; a caller in JavaScript has no compiler that checks it. */
export function assertTensorMap(what: string, value: unknown): asserts value is ReadonlyMap<string, unknown> {
  if (!(value instanceof Map)) throw wrong(`The ${what} of a run are not a Map from names to tensors.`);
}

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
  assertTensorMap('inputs', tensors);
  for (const name of tensors.keys()) {
    if (!inputs.some((input) => input.name === name)) {
      throw wrong(
        `There is no input "${name}"; the inputs are ${inputs.map((input) => input.name).join(', ')}.`,
      );
    }
  }
  const symbols = new Map<string, number>();
  for (const input of inputs) {
    const tensor = tensors.get(input.name);
    if (tensor === undefined) throw wrong(`There is no tensor for the input "${input.name}".`);
    assertTensor(input.name, tensor);
    if (tensor.dtype !== input.dtype) {
      throw wrong(`The input ${input.name} is ${input.dtype}, the tensor given for it is ${tensor.dtype}.`);
    }
    checkShape(input, tensor.shape, symbols);
    const needed = packedBytes(input.dtype, elementCount(tensor.shape));
    if (tensor.bytes.length !== needed) {
      throw wrong(
        `The input ${input.name} of shape [${tensor.shape.join(', ')}] and type ${input.dtype} needs ${needed} bytes, the tensor given for it has ${tensor.bytes.length}.`,
      );
    }
  }
}

function checkShape(input: Binding, shape: readonly number[], symbols: Map<string, number>): void {
  if (input.shape === null) return;
  const given = `[${shape.join(', ')}]`;
  const declared = `[${input.shape.map((dim) => dim ?? '?').join(', ')}]`;
  if (shape.length !== input.shape.length) {
    throw wrong(`The input ${input.name} is ${declared}; the tensor given for it is ${given}.`);
  }
  input.shape.forEach((dim, axis) => {
    const size = shape[axis] ?? 0;
    const expected = typeof dim === 'string' ? (symbols.get(dim) ?? size) : (dim ?? size);
    if (expected !== size) {
      const why = typeof dim === 'string' ? ` (${dim} is ${expected})` : '';
      throw wrong(`The input ${input.name} is ${declared}${why}; the tensor given for it is ${given}.`);
    }
    if (typeof dim === 'string') symbols.set(dim, size);
  });
}

const wrong = (message: string): TrtforgeError => new TrtforgeError('TF_SESSION_INPUT', message);
