import { TrtforgeError } from '../../../errors.js';
import { elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import { type NamedTensors, numbersOf, type Tensor } from '../../../formats/tensor/tensor.js';
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
} from '../check-inputs.js';
import type { BindingRange, CallShapes, EngineBinding } from './engine-interface.js';

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

/**
 * The profile to run in: the one asked for, or of those that take the shapes the one with the smallest maximum (fewest elements in its largest inputs),
 * which is tuned nearest to them; of equals the first.
 * Throws TF_PROFILE_MISFIT naming the tensor, what was given and the valid range of every profile, TF_SESSION_INPUT for a profile that is not there.
 */
export function chooseProfile(inputs: readonly EngineBinding[], call: CallShape, asked?: number): number {
  const count = Math.max(1, ...inputs.map(({ profiles }) => profiles.length));
  if (asked !== undefined && !(Number.isInteger(asked) && asked >= 0 && asked < count)) {
    throw new TrtforgeError(
      'TF_SESSION_INPUT',
      `There is no profile ${asked}; the engine has ${count === 1 ? 'profile 0 alone' : `profiles 0 to ${count - 1}`}.`,
    );
  }
  const candidates = asked === undefined ? Array.from({ length: count }, (_, at) => at) : [asked];
  const taking = candidates.filter((profile) => misfit(inputs, call, profile) === undefined);
  const [chosen] = taking
    .map((profile) => ({ profile, size: largestElements(inputs, profile) }))
    .sort((a, b) => a.size - b.size);
  if (chosen !== undefined) return chosen.profile;
  throw outside(inputs, call, candidates);
}

/** The first input that a profile does not take; undefined when it takes all. */
function misfit(inputs: readonly EngineBinding[], call: CallShape, profile: number): number | undefined {
  const at = inputs.findIndex((input, index) => {
    const range = input.profiles[profile];
    const given = call.values[index] ?? call.dims[index] ?? [];
    return range !== undefined && !within(given, range);
  });
  return at < 0 ? undefined : at;
}

const within = (given: readonly number[], { min, max }: BindingRange): boolean =>
  given.length === min.length &&
  given.every((size, at) => size >= (min[at] ?? 0) && size <= (max[at] ?? Number.POSITIVE_INFINITY));

const largestElements = (inputs: readonly EngineBinding[], profile: number): number =>
  inputs.reduce((sum, input) => {
    const range = input.profiles[profile];
    return range === undefined || input.hostValues ? sum : sum + elementCount(range.max);
  }, 0);

function outside(
  inputs: readonly EngineBinding[],
  call: CallShape,
  candidates: readonly number[],
): TrtforgeError {
  const culprits = [...new Set(candidates.map((profile) => misfit(inputs, call, profile) ?? 0))];
  const sentences = culprits.map((index) => {
    const input = inputs[index]!;
    const values = call.values[index];
    const given =
      values == null ? `has the shape ${list(call.dims[index] ?? [])}` : `has the values ${list(values)}`;
    const ranges = candidates.map((profile) => `profile ${profile} takes ${rangeText(input, profile)}`);
    return `${input.name} ${given}, but ${ranges.join(', ')}`;
  });
  const joint = culprits.length > 1 ? 'No profile takes all inputs together: ' : '';
  return new TrtforgeError('TF_PROFILE_MISFIT', `${joint}${sentences.join('; ')}.`, {
    details: {
      inputs: inputs.map(({ name, profiles }, at) => ({
        name,
        shape: call.dims[at],
        values: call.values[at],
        profiles,
      })),
    },
  });
}

/** `[1..32, 64]`. */
function rangeText({ profiles }: Pick<EngineBinding, 'profiles'>, profile: number): string {
  const range = profiles[profile];
  if (range === undefined) return 'anything';
  return list(range.min.map((min, at) => (min === range.max[at] ? min : `${min}..${range.max[at]}`)));
}
