import { create } from '@bufbuild/protobuf';
import { closing, openFile } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import { type ModelLike, viewModel } from '../../formats/onnx/model.js';
import { GraphProtoSchema, ModelProtoSchema } from '../../formats/onnx/onnx_pb.js';
import { type Dtype, elementCount } from '../../formats/tensor/dtype.js';
import { type ByteFloat, isByteFloat, smallFloatTable } from '../../formats/tensor/low-precision.js';
import { lacksVoidDtype, readNpy, readNpyHeader } from '../../formats/tensor/npy.js';
import { openNpz } from '../../formats/tensor/npz.js';
import {
  float32Values,
  integerTensor,
  isIntegerDtype,
  type NamedTensors,
  numbersOf,
  type Tensor,
} from '../../formats/tensor/tensor.js';
import { checkDims, list, rejectUnknown, same } from '../runtime/check-inputs.js';
import type { Binding } from '../runtime/session.js';
import type { EngineBinding } from '../runtime/tensorrt/engine-interface.js';
import { planInputs } from './drawn-inputs.js';
import { checkConvertible, inDtype } from './input-dtype.js';
import type { RunRequest, RunSource } from './options.js';

/** An input as a passport describes it: dimensions are numbers or open. */
export interface KnownInput extends Binding {
  readonly shape: readonly (number | null)[] | null;
}

/** A tensor as the header of a file states it; null where its type stays open until the input is known. */
interface Described {
  readonly name: string;
  /** For messages. */
  readonly from: string;
  readonly header: { readonly dtype: Dtype; readonly shape: readonly number[] } | null;
}

/**
 * Checks the sources of inputs as far as possible before anything is loaded: files exist and begin as npy or npz files do, and nothing is
 * passed twice; where the inputs are known, also names, types and fixed dimensions, and that none is left out. Reads headers, not values.
 * Throws TF_USAGE, TF_SESSION_INPUT, TF_FILE_…, TF_ARCHIVE_INVALID, TF_TENSOR_….
 */
export function checkSources(
  { sources, shapes, ranges = [] }: Pick<RunRequest, 'sources' | 'shapes' | 'ranges'>,
  inputs: readonly KnownInput[] | null,
): void {
  const given = new Map<string, string>();
  for (const source of sources) {
    for (const { name, from, header } of describe(source, inputs)) {
      rejectTwice(name, given.get(name), from);
      given.set(name, from);
      if (inputs !== null && header !== null) checkHeader(bindingOf(inputs, name, from), header, from);
    }
  }
  rejectIdleRanges(ranges, given, sources);
  if (inputs === null) return;
  rejectUnknown(inputs, [...(shapes?.keys() ?? []), ...ranges.flatMap(({ name }) => name ?? [])]);
  if (!sources.some(({ kind }) => kind === 'random')) rejectMissing(inputs, given);
}

/** The input of a name. Throws TF_SESSION_INPUT where there is none. */
function bindingOf<B extends Binding>(inputs: readonly B[], name: string, path: string): B {
  const binding = inputs.find((input) => input.name === name);
  if (binding !== undefined) return binding;
  throw new TrtforgeError('TF_SESSION_INPUT', `${path} is passed for ${name}, which is not an input.`, {
    remedy: `The inputs are ${inputs.map((input) => input.name).join(', ')}.`,
  });
}

/** Throws TF_SESSION_INPUT where an input has no source. */
export function rejectMissing(inputs: readonly Binding[], given: ReadonlyMap<string, unknown>): void {
  const names = inputs.map(({ name }) => name).filter((name) => !given.has(name));
  if (names.length === 0) return;
  throw new TrtforgeError(
    'TF_SESSION_INPUT',
    `There is no tensor for the ${names.length === 1 ? 'input' : 'inputs'} ${names.map((name) => `"${name}"`).join(', ')}.`,
    {
      remedy: `Pass ${names.length === 1 ? 'it' : 'them'}: ${names.map((name) => `${name}=@${name}.npy`).join(' ')}, or add --inputs random.`,
    },
  );
}

function describe(source: RunSource, inputs: readonly KnownInput[] | null): readonly Described[] {
  if (source.kind === 'random') return [];
  if (source.kind === 'archive') return describeArchive(source.path, inputs);
  const { name, path } = source;
  const voidDtype = inputs === null ? undefined : bindingOf(inputs, name, path).dtype;
  return [{ name, from: path, header: unlessVoid(() => inputHeader(name, path, voidDtype)) }];
}

/** Type and shape of the tensor in a file for an input (see `readInput`), from its header alone. Throws what reading the file throws. */
export function inputHeader(
  name: string,
  path: string,
  voidDtype: Dtype | undefined,
): NonNullable<Described['header']> {
  const file = path.endsWith('.npz') ? openNpz(path, { voidDtype }) : openFile(path);
  try {
    return 'describe' in file ? file.describe(name) : readNpyHeader(file, voidDtype);
  } finally {
    file.close();
  }
}

/** Types are checked where the input's is known. */
function describeArchive(path: string, inputs: readonly KnownInput[] | null): readonly Described[] {
  const voidDtypes = Object.fromEntries((inputs ?? []).map(({ name, dtype }) => [name, dtype]));
  return closing(openNpz(path, { voidDtypes }), (archive) => {
    if (archive.names.length === 0) {
      throw new TrtforgeError('TF_TENSOR_FILE_INVALID', `${path} holds no tensor: it has no .npy member.`);
    }
    return archive.names.map((name) => {
      if (inputs === null) return { name, from: path, header: null };
      bindingOf(inputs, name, path);
      return { name, from: `${name} in ${path}`, header: archive.describe(name) };
    });
  });
}

function unlessVoid(read: () => Described['header']): Described['header'] {
  try {
    return read();
  } catch (error) {
    if (lacksVoidDtype(error)) return null;
    throw error;
  }
}

function checkHeader(input: KnownInput, header: NonNullable<Described['header']>, from: string): void {
  checkConvertible(input, header.dtype, from);
  const { name, shape } = input;
  if (shape !== null) checkDims({ name, shape }, header.shape);
}

/** A range is for values that are drawn: where none is drawn it would be dropped silently. */
function rejectIdleRanges(
  ranges: NonNullable<RunRequest['ranges']>,
  given: ReadonlyMap<string, string>,
  sources: readonly RunSource[],
): void {
  if (ranges.length > 0 && !sources.some(({ kind }) => kind === 'random')) {
    throw new TrtforgeError('TF_USAGE', '--val-range has no effect: no input is drawn.', {
      remedy: 'Add --inputs random, or remove --val-range.',
    });
  }
  for (const { name } of ranges) {
    const file = name === null ? undefined : given.get(name);
    if (file === undefined) continue;
    throw new TrtforgeError(
      'TF_USAGE',
      `The input ${name} comes from ${file}, so the range of values for it has no effect.`,
      { remedy: 'Remove one of them.' },
    );
  }
}

function rejectTwice(name: string, earlier: string | undefined, from: string): void {
  if (earlier === undefined) return;
  throw new TrtforgeError('TF_USAGE', `The input ${name} is passed twice: by ${earlier} and by ${from}.`, {
    remedy: 'Remove one of them.',
  });
}

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
