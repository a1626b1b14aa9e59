import { elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { numbersOf } from '../../../formats/tensor/values.js';
import {
  assertTensor,
  checkDims,
  checkInputs,
  checkTensor,
  isTensor,
  list,
  mapOf,
  rejectUnknown,
  same,
  wrong,
} from '../session-inputs.js';
import type { CallShapes, EngineBinding } from './engine-interface.js';

/** The shape of a call: for each input, in the engine's order, its dimensions, and the values of those that are read on the host (else null). */
export interface CallShape {
  readonly dims: readonly (readonly number[])[];
  readonly values: readonly (readonly number[] | null)[];
}

/** Throws TF_SESSION_INPUT unless there is one tensor for each input, of its dtype, rank and fixed dimensions, and with the bytes its shape needs. */
export function callShapeOf(inputs: readonly EngineBinding[], tensors: NamedTensors): CallShape {
  checkInputs(inputs, tensors);
  const checked = inputs.map(({ name }) => tensors.get(name)!);
  return {
    dims: checked.map(({ shape }) => [...shape]),
    values: checked.map((tensor, at) => (inputs[at]?.hostValues ? valuesOf(tensor) : null)),
  };
}

/** The same from shapes alone; inputs of fixed shape may be left out. Host values need a tensor. Throws TF_SESSION_INPUT. */
export function callShapeFrom(inputs: readonly EngineBinding[], shapes: CallShapes): CallShape {
  const given: ReadonlyMap<string, unknown> = mapOf('shapes', shapes);
  rejectUnknown(inputs, given.keys());
  const dims: (readonly number[])[] = [];
  const values: (readonly number[] | null)[] = [];
  for (const input of inputs) {
    const requested = given.get(input.name);
    if (requested === undefined) {
      if (input.hostValues) throw valuesNeeded(input);
      dims.push(fixedShape(input));
      values.push(null);
    } else if (Array.isArray(requested)) {
      if (input.hostValues) throw valuesNeeded(input);
      checkDims(input, requested);
      dims.push([...requested]);
      values.push(null);
    } else {
      assertTensor(input.name, requested);
      checkTensor(input, requested);
      dims.push([...requested.shape]);
      values.push(input.hostValues ? valuesOf(requested) : null);
    }
  }
  return { dims, values };
}

/** Whether tensors are of these shapes and values, and of the inputs' dtypes and sizes: what a repeated run is recognised by. */
export function fits(inputs: readonly EngineBinding[], shape: CallShape, tensors: NamedTensors): boolean {
  if (tensors.size !== inputs.length) return false;
  for (let at = 0; at < inputs.length; at++) {
    const input = inputs[at]!;
    const tensor = tensors.get(input.name);
    if (!isTensor(tensor) || tensor.dtype !== input.dtype || !same(tensor.shape, shape.dims[at]!))
      return false;
    if (tensor.bytes.length !== packedBytes(input.dtype, elementCount(tensor.shape))) return false;
    const values = shape.values[at]!;
    if (values !== null && !same(valuesOf(tensor), values)) return false;
  }
  return true;
}

function fixedShape(input: EngineBinding): readonly number[] {
  const { name, shape } = input;
  if (shape.every((size) => size !== null)) return shape;
  throw wrong(
    `No shape is passed for ${name}, which is ${list(shape.map((size) => size ?? '?'))} in the engine.`,
  );
}

const valuesOf = (tensor: Tensor): readonly number[] => Array.from(numbersOf(tensor));

const valuesNeeded = ({ name }: EngineBinding) =>
  wrong(`The values of ${name} decide shapes: pass a tensor, not a shape.`);
