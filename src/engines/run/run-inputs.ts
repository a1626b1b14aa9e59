import { create } from '@bufbuild/protobuf';
import { closing } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import { type ModelLike, viewModel } from '../../formats/onnx/model.js';
import { GraphProtoSchema, ModelProtoSchema } from '../../formats/onnx/onnx_pb.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import { type ByteFloat, isByteFloat, smallFloatTable } from '../../formats/tensor/low-precision.js';
import { readNpy } from '../../formats/tensor/npy.js';
import { openNpz } from '../../formats/tensor/npz.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { float32Values, integerTensor, isIntegerDtype, numbersOf } from '../../formats/tensor/values.js';
import type { Binding } from '../runtime/session.js';
import { list, same } from '../runtime/session-inputs.js';
import type { EngineBinding } from '../runtime/tensorrt/engine-interface.js';
import { bindingOf, rejectMissing } from './check-sources.js';
import { inDtype, planInputs } from './inputs.js';
import type { RunRequest } from './run-result.js';

export interface GatheredInput {
  readonly name: string;
  readonly tensor: Tensor;
  /** A file, or what the random numbers are. */
  readonly from: string;
  /** Axes whose size was guessed; absent where none was. */
  readonly guessedAxes?: readonly number[];
}

type Gathered = Omit<GatheredInput, 'name'>;

/**
 * One tensor for each input: from the files passed (floats are converted among themselves, integers too), else drawn where that was requested.
 * Throws TF_SESSION_INPUT for names that are not inputs and for inputs that have no source, TF_SHAPE_INVALID, and what reading files throws.
 */
export function gatherInputs(
  inputs: readonly Binding[],
  request: RunRequest,
  model: ModelLike = emptyModel(),
  attempt = 0,
): readonly GatheredInput[] {
  const given = readSources(inputs, request);
  if (!request.sources.some(({ kind }) => kind === 'random')) rejectMissing(inputs, given);
  const drawn = drawInputs(inputs, given, request, model, attempt);
  return inputs.map((input) => ({ name: input.name, ...(given.get(input.name) ?? drawn(input)) }));
}

/** The same for an ONNX model, whose graph suggests ranges and sizes; `attempt` counts the guesses from 0. */
export function gatherForModel(
  inputs: readonly Binding[],
  request: RunRequest,
  attempt = 0,
): readonly GatheredInput[] {
  return viewModel(request.file, (model) => gatherInputs(inputs, request, model, attempt));
}

/** As shapes are guessed and reported. */
export const shapesOf = (gathered: readonly GatheredInput[]) =>
  gathered.map(({ name, tensor, guessedAxes }) => ({ name, shape: tensor.shape, guessedAxes }));

/** As a session takes them. */
export const tensorsOf = (gathered: readonly GatheredInput[]): NamedTensors =>
  new Map(gathered.map(({ name, tensor }) => [name, tensor]));

function readSources(inputs: readonly Binding[], { sources }: RunRequest): Map<string, Gathered> {
  const given = new Map<string, Gathered>();
  for (const source of sources) {
    if (source.kind === 'random') continue;
    if (source.kind === 'tensor') {
      const binding = bindingOf(inputs, source.name, source.path);
      given.set(source.name, converted(binding, readInput(binding, source.path), source.path));
      continue;
    }
    const voidDtypes = Object.fromEntries(inputs.map(({ name, dtype }) => [name, dtype]));
    closing(openNpz(source.path, { voidDtypes }), (archive) => {
      for (const name of archive.names) {
        const binding = bindingOf(inputs, name, source.path);
        given.set(name, converted(binding, archive.read(name), `${name} in ${source.path}`));
      }
    });
  }
  return given;
}

/** A tensor for an input, as its file has it: `x=@file.npz` takes the tensor of that name from the archive. Throws what reading the file throws. */
export function readInput({ name, dtype }: Binding, path: string): Tensor {
  if (!path.endsWith('.npz')) return readNpy(path, dtype);
  return closing(openNpz(path, { voidDtypes: { [name]: dtype } }), (archive) => archive.read(name));
}

/** Names the file where a tensor cannot be the input: the user passed a file, not a shape. */
function converted(binding: Binding, given: Tensor, path: string): Gathered {
  const tensor = inDtype(binding, given, path);
  const { name, shape } = binding;
  if (shape !== null && !fitsDeclared(shape, tensor.shape)) {
    throw new TrtforgeError(
      'TF_SESSION_INPUT',
      `${path} is ${list(tensor.shape)}, but the input "${name}" is ${list(shape.map((size) => size ?? '?'))}.`,
      { remedy: 'Pass a tensor of the rank and the fixed dimensions of the input.' },
    );
  }
  return { tensor, from: `${path}${conversionNote(given, tensor)}` };
}

const fitsDeclared = (declared: NonNullable<Binding['shape']>, shape: readonly number[]): boolean =>
  shape.length === declared.length &&
  declared.every((size, axis) => typeof size !== 'number' || size === shape[axis]);

/** Reports a conversion, and how many values were out of the new type's range. */
function conversionNote(given: Tensor, tensor: Tensor): string {
  if (given.dtype === tensor.dtype) return '';
  const note = `, converted from ${given.dtype}`;
  const { dtype } = tensor;
  if (isIntegerDtype(dtype)) return note;
  const before = numbersOf(given);
  const lost = isByteFloat(dtype) ? countBeyond(before, dtype) : countInfinite(before, float32Values(tensor));
  const fate = isByteFloat(dtype) ? `are beyond ${dtype} and became the nearest it holds` : 'became infinite';
  return lost === 0 ? note : `${note}, in which ${lost} of ${before.length} values ${fate}`;
}

function countInfinite(before: ArrayLike<number>, after: Float32Array): number {
  let count = 0;
  for (let i = 0; i < after.length; i++)
    if (!Number.isFinite(after[i]) && Number.isFinite(before[i])) count++;
  return count;
}

/** Floats of one byte hold no more than their largest number, and e8m0 nothing below its smallest. */
function countBeyond(values: ArrayLike<number>, dtype: ByteFloat): number {
  const held = smallFloatTable(dtype).filter(Number.isFinite);
  const [least, most] = [Math.min(...held), Math.max(...held)];
  let count = 0;
  for (let i = 0; i < values.length; i++) if (values[i]! < least || values[i]! > most) count++;
  return count;
}

/** Draws what is missing. An engine's open dimensions get the optimum of the profile, and values of shape tensors are that optimum. */
function drawInputs(
  inputs: readonly Binding[],
  given: ReadonlyMap<string, Gathered>,
  request: RunRequest,
  model: ModelLike,
  attempt: number,
): (input: Binding) => Gathered {
  const shapes = new Map(request.shapes);
  for (const input of inputs) {
    const optimum = isEngineInput(input) ? optimalShape(input, request.profile ?? 0) : undefined;
    if (optimum !== undefined && !shapes.has(input.name)) shapes.set(input.name, optimum);
  }
  for (const [name, { tensor, from }] of given) {
    const asked = request.shapes?.get(name);
    if (asked !== undefined && !same(asked, tensor.shape)) {
      throw new TrtforgeError(
        'TF_SHAPE_INVALID',
        `${name} should be ${list(asked)}, but it is ${list(tensor.shape)} in ${from}.`,
        { remedy: 'Shapes are for inputs that are drawn; leave out the shape or the file.' },
      );
    }
    shapes.set(name, tensor.shape);
  }
  const ranges = request.ranges ?? [];
  const planned = new Map(
    planInputs(model, inputs, { shapes, ranges }, attempt).map((plan) => [plan.name, plan] as const),
  );
  return (input) => {
    if (isEngineInput(input) && input.hostValues) return optimalValues(input, request.profile ?? 0);
    const plan = planned.get(input.name)!;
    return { tensor: plan.tensor(request.seed ?? 0, 0), from: plan.from, guessedAxes: plan.guessedAxes };
  };
}

const isEngineInput = (input: Binding): input is EngineBinding => 'profiles' in input;

function optimalShape(
  { hostValues, shape, profiles }: EngineBinding,
  profile: number,
): readonly number[] | undefined {
  if (shape.every((size) => size !== null)) return shape;
  return hostValues ? undefined : profiles[profile]?.opt;
}

function optimalValues({ name, dtype, shape, profiles }: EngineBinding, profile: number): Gathered {
  const values = profiles[profile]?.opt;
  const dims = shape.map((size) => size ?? values?.length ?? 0);
  if (values === undefined || !isIntegerDtype(dtype) || elementCount(dims) !== values.length) {
    throw new TrtforgeError(
      'TF_SESSION_INPUT',
      `The values of ${name} decide shapes, and the engine names none to take.`,
      { remedy: `Pass them: ${name}=@${name}.npy.` },
    );
  }
  return {
    tensor: integerTensor(dtype, dims, values),
    from: `the optimum of profile ${profile}, since its values decide shapes`,
  };
}

/** A plan does not describe what its inputs mean, so ranges come from their names and types alone. */
const emptyModel = (): ModelLike => ({
  proto: create(ModelProtoSchema, { graph: create(GraphProtoSchema) }),
  weight: (tensor) => {
    throw new TrtforgeError('TF_INTERNAL', `An empty model has no weight ${tensor.name}.`);
  },
  files: () => [],
});
