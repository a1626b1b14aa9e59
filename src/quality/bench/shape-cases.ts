import type { NativeShape } from '../../addon/native-engine.js';
import { inputHeader, readInput } from '../../engines/run/gather-inputs.js';
import type { EngineBinding } from '../../engines/runtime/tensorrt/engine-interface.js';
import { TrtforgeError } from '../../errors.js';
import { numbersOf } from '../../formats/tensor/tensor.js';
import type { BenchRequest, ShapeRequest } from './options.js';

/** One thing to measure: an optimization profile, and every input's shape in it. */
export interface ShapeCase {
  readonly profile: number;
  readonly batch: number;
  readonly shapes: readonly NativeShape[];
}

/**
 * The cases to measure of an engine with these inputs. Without a request: the optimum of the first profile. A batch goes into the first axis of every
 * input where the profile leaves it open, and into other axes with the same range (`[layers, batch, …]`); the rest is at its optimum.
 * Throws TF_USAGE for no batch, TF_SESSION_INPUT for an input that is not there, TF_PROFILE_MISFIT where no profile takes the shapes.
 */
export function shapeCases(
  inputs: readonly EngineBinding[],
  request: ShapeRequest,
): readonly [ShapeCase, ...ShapeCase[]] {
  if (request.kind === 'batches') {
    const [first, ...others] = request.batches.map((batch) => batchCase(inputs, batch));
    if (first === undefined) throw new TrtforgeError('TF_USAGE', 'There is no batch to measure.');
    return [first, ...others];
  }
  const asked = request.kind === 'shapes' ? request.shapes : new Map<string, readonly number[]>();
  for (const name of asked.keys()) {
    if (inputs.some((input) => input.name === name)) continue;
    throw new TrtforgeError(
      'TF_SESSION_INPUT',
      `There is no input "${name}"; the inputs are ${inputs.map((input) => input.name).join(', ')}.`,
    );
  }
  return [inFirstProfile(inputs, (input, profile) => asked.get(input.name) ?? optimum(input, profile))];
}

/** First dimension of the first input that has one. */
function batchOf(inputs: readonly EngineBinding[], shapes: readonly NativeShape[]): number {
  const first = inputs.find((input) => !input.hostValues && input.shape.length > 0);
  return shapes.find(({ name }) => name === first?.name)?.shape[0] ?? 1;
}

const optimum = (input: EngineBinding, profile: number): readonly number[] =>
  input.profiles[profile]?.opt ?? [];

function batchCase(inputs: readonly EngineBinding[], batch: number): ShapeCase {
  return inFirstProfile(
    inputs,
    (input, profile) => {
      const axes = batchAxes(inputs, profile);
      const shape = optimum(input, profile);
      if (input.hostValues) return shape;
      return shape.map((size, axis) => (axes(input, axis) ? batch : size));
    },
    `a batch of ${batch}`,
    (shapes) => batchOf(inputs, shapes) === batch,
  );
}

/** Reports the axes that hold the batch: open first axes, and open axes with the range of the first of them. */
function batchAxes(
  inputs: readonly EngineBinding[],
  profile: number,
): (input: EngineBinding, axis: number) => boolean {
  const rangeOf = (input: EngineBinding, axis: number): string => {
    const { min, opt, max } = input.profiles[profile] ?? { min: [], opt: [], max: [] };
    return [min[axis], opt[axis], max[axis]].join('/');
  };
  const leader = inputs.find((input) => !input.hostValues && input.shape[0] === null);
  const range = leader === undefined ? undefined : rangeOf(leader, 0);
  return (input, axis) => input.shape[axis] === null && (axis === 0 || rangeOf(input, axis) === range);
}

/** The first profile that takes the shapes chosen for it. */
function inFirstProfile(
  inputs: readonly EngineBinding[],
  choose: (input: EngineBinding, profile: number) => readonly number[],
  what = 'these shapes',
  fits: (shapes: readonly NativeShape[]) => boolean = () => true,
): ShapeCase {
  const count = Math.max(1, ...inputs.map(({ profiles }) => profiles.length));
  const misfits: string[] = [];
  for (let profile = 0; profile < count; profile++) {
    const shapes = inputs.map((input) => nativeShape(input, choose(input, profile)));
    const misfit = inputs
      .map((input) => misfitOf(input, profile, choose(input, profile)))
      .find((text) => text !== undefined);
    if (misfit === undefined && fits(shapes)) return { profile, batch: batchOf(inputs, shapes), shapes };
    misfits.push(misfit ?? `the batch is fixed at ${batchOf(inputs, shapes)}`);
  }
  throw new TrtforgeError(
    'TF_PROFILE_MISFIT',
    `No optimization profile takes ${what}: ${[...new Set(misfits)].join('; ')}.`,
  );
}

/** A shape tensor's own shape is fixed; what is asked for are its values. */
function nativeShape(input: EngineBinding, chosen: readonly number[]): NativeShape {
  if (!input.hostValues) return { name: input.name, shape: chosen, values: null };
  return { name: input.name, shape: input.shape.map((size) => size ?? chosen.length), values: chosen };
}

function misfitOf(input: EngineBinding, profile: number, chosen: readonly number[]): string | undefined {
  const range = input.profiles[profile];
  if (range === undefined) return undefined;
  const { min, max } = range;
  const fits =
    chosen.length === min.length &&
    chosen.every((size, axis) => size >= (min[axis] ?? 0) && size <= (max[axis] ?? 0));
  if (fits) return undefined;
  const text = (dims: readonly number[]) => `[${dims.join(', ')}]`;
  return `${input.name} is ${text(chosen)}, profile ${profile} takes ${text(min)} to ${text(max)}`;
}

/**
 * The shapes asked for, and those of the files provided for other inputs, from their headers; of a shape tensor its values. Batches are for all inputs alike, so a file of
 * another batch is rejected where it is read. Throws TF_USAGE for values of a shape tensor beside batches, and what reading a file throws.
 */
export function withFileShapes(
  bindings: readonly EngineBinding[],
  { shapes, inputs: { files } }: Pick<BenchRequest, 'shapes' | 'inputs'>,
): ShapeRequest {
  const named = files.flatMap((file) => bindings.find(({ name }) => name === file.name) ?? []);
  if (shapes.kind === 'batches') {
    const values = named.find(({ hostValues }) => hostValues);
    if (values === undefined) return shapes;
    throw new TrtforgeError(
      'TF_USAGE',
      `A list of batches takes the values of ${values.name}, which decide shapes, from the profile; a file has them as well.`,
      { remedy: 'Pass --shapes in place of --batch, or leave the file out.' },
    );
  }
  const asked = new Map(shapes.kind === 'shapes' ? shapes.shapes : []);
  for (const { name, path } of files) {
    const binding = named.find((each) => each.name === name);
    if (binding === undefined || asked.has(name)) continue;
    asked.set(
      name,
      binding.hostValues
        ? Array.from(numbersOf(readInput(binding, path)))
        : inputHeader(name, path, binding.dtype).shape,
    );
  }
  return asked.size === 0 ? shapes : { kind: 'shapes', shapes: asked };
}
