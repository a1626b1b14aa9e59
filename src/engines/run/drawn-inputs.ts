import type { OptionsOf } from '../../base/options/option.js';
import { TrtforgeError } from '../../errors.js';
import type { ModelLike } from '../../formats/onnx/model.js';
import { type AxisPlace, openDimensions, requestedSizes } from '../../formats/onnx/open-dimensions.js';
import type { ValueUses } from '../../formats/onnx/value-uses.js';
import { usesOf } from '../../formats/precision/normalise.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import { readNpy } from '../../formats/tensor/npy.js';
import {
  eachOnce,
  isRandomDtype,
  type RandomDtype,
  type RandomStream,
  randomStream,
  randomTensor,
} from '../../formats/tensor/random.js';
import {
  firstBeyond,
  float32Values,
  floatTensor,
  type IntegerDtype,
  integerTensor,
  isIntegerDtype,
  type NamedTensors,
  type Tensor,
  tensorFrom,
} from '../../formats/tensor/tensor.js';
import type { Binding } from '../runtime/session.js';
import { blankRow, edgeValue, type Sample } from './edge-samples.js';
import { inDtype, isFloatDtype } from './input-dtype.js';
import { chooseRange, type InputRange } from './input-range.js';
import type { drawOptions } from './options.js';
import type { DescribedInput } from './result.js';

/** The user's options for inputs; all of them can be omitted. */
interface InputOptions extends OptionsOf<typeof drawOptions> {
  /** The size of an open batch that no shape states; default 1. */
  readonly batch?: number;
  /** npy files to take instead of random numbers. */
  readonly files?: readonly { readonly name: string; readonly path: string }[];
}

/** One input as it will be filled. */
export interface PlannedInput {
  readonly name: string;
  readonly dtype: Binding['dtype'];
  readonly shape: readonly number[];
  /** Where its elements come from, in one phrase. */
  readonly from: string;
  /** Axes whose size was guessed; absent where none was. */
  readonly guessedAxes?: readonly number[];
  /** The distribution of its elements; absent where a file has them. */
  readonly range?: InputRange;
  readonly tensor: (seed: number, sample: Sample) => Tensor;
}

/**
 * Plans every input of a model from its graph and the options. `attempt` counts from 0: sizes that are guessed are others with each.
 * Throws TF_SHAPE_INVALID, TF_SESSION_INPUT (unknown names, types that cannot be drawn), and what reading a file throws.
 */
export function planInputs(
  model: ModelLike,
  inputs: readonly Binding[],
  options: InputOptions = {},
  attempt = 0,
): readonly PlannedInput[] {
  assertKnownNames(inputs, options);
  const files = new Map(
    (options.files ?? []).map(({ name, path }) => [name, { path, tensor: readNpy(path) }]),
  );
  const asked = new Map(options.shapes);
  for (const [name, { tensor }] of files) asked.set(name, tensor.shape);
  const uses = usesOf(model);
  const { shapes, sizes, guessedAxes } = resolveShapes(inputs, asked, uses, attempt, options.batch);
  const longest = longestAxis(inputs, shapes);

  return inputs.map((input): PlannedInput => {
    const { name, dtype } = input;
    const shape = shapes.get(name) ?? [];
    const file = files.get(name);
    if (file !== undefined) {
      const tensor = inDtype(input, file.tensor, file.path);
      return { name, dtype, shape, from: file.path, tensor: () => tensor };
    }
    const range = requestedRange(input, options) ?? chooseRange(input, uses, { shapes, sizes, longest });
    return {
      name,
      dtype,
      shape,
      from: range.reason,
      guessedAxes: guessedAxes.get(name),
      range,
      tensor: (seed, sample) => drawInput(input, shape, range, seed, sample),
    };
  });
}

/** An input as results describe it. */
export const describedInput = ({
  name,
  dtype,
  shape,
  from,
  guessedAxes,
}: Omit<PlannedInput, 'range' | 'tensor'>): DescribedInput => ({
  name,
  dtype,
  shape: [...shape],
  from,
  ...(guessedAxes === undefined ? {} : { guessedAxes: [...guessedAxes] }),
});

/** The size that lengths refer to: of the longest axis that the model leaves open, or else of the longest of all; the batch does not count. */
function longestAxis(inputs: readonly Binding[], shapes: ReadonlyMap<string, readonly number[]>): number {
  const axes = inputs.flatMap((input) =>
    (shapes.get(input.name) ?? []).map((size, axis) => ({
      size,
      axis,
      open: typeof input.shape?.[axis] !== 'number',
    })),
  );
  const inner = axes.filter(({ axis }) => axis > 0);
  const open = inner.filter((axis) => axis.open);
  return Math.max(1, ...(open.length > 0 ? open : inner).map(({ size }) => size));
}

/** All inputs of one sample: a random one by its number, or one at the edges of what is drawn. */
export const sampleOf = (plan: readonly PlannedInput[], seed: number, sample: Sample): NamedTensors =>
  new Map(plan.map((input) => [input.name, input.tensor(seed, sample)]));

function assertKnownNames(inputs: readonly Binding[], { ranges = [], files = [] }: InputOptions): void {
  for (const { name } of [...ranges, ...files]) {
    if (name === null || inputs.some((input) => input.name === name)) continue;
    throw new TrtforgeError('TF_SESSION_INPUT', `There is no input "${name}".`, {
      remedy: `The inputs are ${inputs.map((input) => input.name).join(', ')}.`,
    });
  }
}

function requestedRange({ name, dtype }: Binding, { ranges = [] }: InputOptions): InputRange | undefined {
  const range =
    ranges.findLast((candidate) => candidate.name === name) ??
    ranges.findLast((candidate) => candidate.name === null);
  if (range === undefined) return undefined;
  const { low, high } = range;
  if (isIntegerDtype(dtype)) checkIntegerRange(name, dtype, low, high);
  return { spread: { kind: 'uniform', low, high }, reason: `${low} to ${high}, as requested` };
}

/** Throws TF_SESSION_INPUT for a range without an integer, and for one with integers out of the type's range. */
function checkIntegerRange(name: string, dtype: IntegerDtype, low: number, high: number): void {
  const [least, most] = [Math.ceil(low), Math.floor(high)];
  if (least <= most && firstBeyond(dtype, [least, most]) < 0) return;
  const why = least <= most ? 'cannot hold all of that' : 'has no number in it';
  throw new TrtforgeError(
    'TF_SESSION_INPUT',
    `The values of the input "${name}" are to be ${low} to ${high}, but its type, ${dtype}, ${why}.`,
    { remedy: `Pass a range for this input: --val-range ${name}:[0,1].` },
  );
}

/** Draws one input, the same on every machine. A mistyped shape needs more memory than there can be: TF_SHAPE_INVALID. */
export function drawInput(
  input: Omit<Binding, 'shape'>,
  shape: readonly number[],
  range: InputRange,
  seed: number,
  sample: Sample,
): Tensor {
  try {
    return drawn(input, shape, range, seed, sample);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new TrtforgeError(
      'TF_SHAPE_INVALID',
      `The input ${input.name} of shape [${shape.join(', ')}] is too large to be drawn.`,
      { cause, remedy: 'Pass a smaller shape: --shapes name:1x3x224x224.' },
    );
  }
}

function drawn(
  { name, dtype }: Omit<Binding, 'shape'>,
  shape: readonly number[],
  range: InputRange,
  seed: number,
  sample: Sample,
): Tensor {
  if (!isRandomDtype(dtype)) {
    throw new TrtforgeError(
      'TF_SESSION_INPUT',
      `The input ${name} is ${dtype}, for which no numbers can be drawn.`,
      {
        remedy: `Pass its elements: --inputs ${name}=@file.npy.`,
      },
    );
  }
  const { spread } = range;
  const value = edgeValue({ dtype, range }, sample);
  if (value !== undefined) return tensorOf(dtype, shape, new Float64Array(elementCount(shape)).fill(value));
  const number = typeof sample === 'number' ? sample : 0;
  const stream = randomStream(seed, `${name}/${number}`);
  if (spread.kind === 'mask') return tensorOf(dtype, shape, maskOf(shape, stream));
  const once = spread.kind === 'uniform' ? eachOnce(spread, randomStream(seed, name)) : undefined;
  const before = number * elementCount(shape);
  const tensor = randomTensor(dtype, shape, spread, stream, (element) => once?.(before + element));
  if (sample !== 'one zero row' || !isFloatDtype(dtype)) return tensor;
  const values = float32Values(tensor);
  blankRow(values, shape, range);
  return floatTensor(dtype, shape, values);
}

function tensorOf(dtype: RandomDtype, shape: readonly number[], values: Float32Array | Float64Array): Tensor {
  if (dtype === 'bool') return tensorFrom(dtype, shape, Uint8Array.from(values));
  if (isIntegerDtype(dtype)) return integerTensor(dtype, shape, values);
  return floatTensor(dtype, shape, Float32Array.from(values));
}

/** Along the last axis ones, at least half of them, then zeros: as a padded batch has it. */
function maskOf(shape: readonly number[], stream: RandomStream): Float32Array {
  const length = shape.at(-1) ?? 1;
  const mask = new Float32Array(elementCount(shape));
  for (let start = 0; start < mask.length; start += length) {
    mask.fill(1, start, start + stream.integer(Math.ceil(length / 2), length));
  }
  return mask;
}

export interface ResolvedShapes {
  /** Input name to dimensions, every one a number. */
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  /** Symbol to number; the same symbol has the same size everywhere. */
  readonly sizes: ReadonlyMap<string, number>;
  /** Input name to the axes with a guessed size; only inputs that have some. */
  readonly guessedAxes: ReadonlyMap<string, readonly number[]>;
}

/**
 * Chooses a shape for every input: as requested, else as declared, with open dimensions set by the requested shapes and the rest guessed (`openDimensions`);
 * `attempt` counts from 0 and chooses among the likely sizes, `batch` is that of an open one. Throws TF_SHAPE_INVALID when a requested shape does not fit, or an input has no rank and no
 * shape was requested.
 */
export function resolveShapes(
  inputs: readonly Binding[],
  asked: ReadonlyMap<string, readonly number[]>,
  uses?: ValueUses,
  attempt = 0,
  batch?: number,
): ResolvedShapes {
  const sizes = requestedSizes(inputs, asked);
  const guessedAxes = new Map<string, number[]>();
  const sizeAt = new Map<string, number>();
  const at = ({ input, axis }: AxisPlace) => `${axis} ${input}`;
  for (const { places, symbol, tries, isBatch } of openDimensions(inputs, uses)) {
    const known = places.flatMap(({ input, axis }) => asked.get(input)?.[axis] ?? [])[0];
    const likely = tries[Math.min(attempt, tries.length - 1)] ?? 1;
    const size = known ?? (isBatch ? batch : undefined) ?? likely;
    if (symbol !== null) sizes.set(symbol, size);
    for (const place of places) {
      sizeAt.set(at(place), size);
      if (known !== undefined) continue;
      const axes = guessedAxes.get(place.input) ?? [];
      guessedAxes.set(place.input, axes);
      axes.push(place.axis);
    }
  }
  const shapes = new Map(
    inputs.map(({ name, shape }) => {
      const given = asked.get(name);
      if (given === undefined && shape === null) throw rankUnknown(name);
      const guess = shape?.map((dim, axis) =>
        typeof dim === 'number' ? dim : (sizeAt.get(at({ input: name, axis })) ?? 1),
      );
      return [name, given ?? guess ?? []] as const;
    }),
  );
  return { shapes, sizes, guessedAxes };
}

const rankUnknown = (name: string) =>
  new TrtforgeError('TF_SHAPE_INVALID', `The input ${name} has no declared rank.`, {
    remedy: `Pass its shape: --shapes ${name}:1x8.`,
  });
