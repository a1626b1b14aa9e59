import { TrtforgeError } from '../../errors.js';
import { isStateLike, type Named } from '../contract/state.js';
import { channelAxis } from './image-layout.js';
import type { ModelProto, ValueInfoProto } from './onnx_pb.js';
import type { Use, ValueUses } from './value-uses.js';
import { dimensionsOf } from './values.js';

/** One axis of one input. */
export interface AxisPlace {
  readonly input: string;
  readonly axis: number;
}

/** The items that the size of an open dimension counts. */
type Kind = 'batch' | 'image' | 'audio' | 'time' | 'sequence' | 'other';

/** One dimension that a model leaves open, wherever it stands: every place has the same size. */
export interface OpenDimension {
  readonly places: readonly AxisPlace[];
  /** The name that the model gives it; null where it has none. */
  readonly symbol: string | null;
  /** Whether it counts independent items. */
  readonly isBatch: boolean;
  /** Sizes to try, the likeliest first. */
  readonly tries: readonly number[];
  /** Minimum, optimum and maximum of an optimization profile. */
  readonly range: readonly [number, number, number];
}

type Dimension = number | string | null;

/** Number of guesses of sizes for one model. */
export const MOST_TRIES = 6;

/** Sizes that models take in practice. Convolutions and transforms need more than this many elements, fixed positions allow no more than this many: hence several. */
const sizesOf: Readonly<Record<Kind, Pick<OpenDimension, 'tries' | 'range'>>> = {
  batch: { tries: [1], range: [1, 8, 32] },
  image: { tries: [224, 640, 32, 256, 48, 8], range: [224, 224, 640] },
  audio: { tries: [16_000, 512, 128, 1280, 160_000, 8], range: [512, 16_000, 160_000] },
  time: { tries: [128, 512, 2048, 32, 16, 8], range: [32, 128, 512] },
  sequence: { tries: [16, 64, 128, 512, 2048, 8], range: [1, 128, 512] },
  other: { tries: [8, 32, 128, 512, 2048, 1], range: [8, 128, 512] },
};

const BATCH = /batch|^n$|^b$|^bs$/i;
const AUDIO = /sample|audio|wave?(?:form)?s?(?![a-z])|pcm/i;
/** Kinds by what a symbol is called, the first that fits. */
const kindsByName: readonly (readonly [RegExp, Kind])[] = [
  [BATCH, 'batch'],
  [/height|width|^h$|^w$/i, 'image'],
  [AUDIO, 'audio'],
  [/time|frame|^t$/i, 'time'],
  [/seq|len|token|^l$|^s$/i, 'sequence'],
];
const RECURRENT: ReadonlySet<string> = new Set(['LSTM', 'GRU', 'RNN']);
/** Placeholders that exporters write where a dimension has no name: the same text does not mean the same size. */
const PLACEHOLDER = /^(?:[?*]|-1|none|null|unk(?:nown)?|unk__\d+)$/i;
/** Names that count dimensions and describe nothing. */
const NUMBERED = /unk|dim|dyn|axis|axes/i;

export const isPlaceholder = (symbol: string): boolean => PLACEHOLDER.test(symbol);

/** Whether a symbol states that an axis is something else than a batch. */
export const isOtherThanBatch = (symbol: string): boolean =>
  !isPlaceholder(symbol) && !NUMBERED.test(symbol) && !BATCH.test(symbol);

/**
 * Takes the names off dimensions of inputs and outputs that an exporter wrote at several places for want of one (`?`): TensorRT takes axes of one name for one dimension.
 * Whether there were any.
 */
export function clearPlaceholders({ graph }: ModelProto): boolean {
  const symbolic = (values: readonly ValueInfoProto[] = []) =>
    values
      .flatMap(dimensionsOf)
      .filter(({ value }) => value.case === 'dimParam' && isPlaceholder(value.value));
  const inputs = symbolic(graph?.input);
  const names = inputs.map(({ value }) => value.value);
  const repeated = new Set(names.filter((name, at) => names.indexOf(name) < at));
  for (const dimension of [...inputs, ...symbolic(graph?.output)])
    if (repeated.has(dimension.value.value)) dimension.value = { case: undefined };
  return repeated.size > 0;
}

/**
 * The open dimensions of the inputs: by symbol where they have one, else each for itself, except that the batch of a state is the batch of the inputs.
 * What each counts follows from its name, the shape of its input and, with `uses`, from what the graph does with the input. Inputs without a rank have none.
 */
export function openDimensions(inputs: readonly Named[], uses?: ValueUses): readonly OpenDimension[] {
  const found = new Map<string, { places: AxisPlace[]; kinds: Kind[]; symbol: string | null }>();
  const leader = inputs.find(({ shape }) => isOpen(shape?.[0]));
  const batchKey = leader === undefined ? 'batch' : keyOf(leader, 0);
  const kindOf = kindsOver(inputs, uses);
  for (const input of inputs) {
    const state = stateBatch(input, uses);
    for (const [axis, dim] of (input.shape ?? []).entries()) {
      if (!isOpen(dim)) continue;
      const isBatchOfState = axis === state && !isNamed(dim);
      const key = isBatchOfState ? batchKey : keyOf(input, axis);
      const entry = found.get(key) ?? { places: [], kinds: [], symbol: isNamed(dim) ? dim : null };
      found.set(key, entry);
      entry.places.push({ input: input.name, axis });
      entry.kinds.push(isBatchOfState ? 'batch' : kindOf(input, axis));
    }
  }
  const fixedBatch = inputs.find(
    (input) => (input.shape?.length ?? 0) > 1 && stateBatch(input, uses) === undefined,
  )?.shape?.[0];
  return [...found].map(([key, { places, kinds, symbol }]) => {
    const kind = kinds.find((each) => each !== 'other') ?? 'other';
    const dimension = { places, symbol, isBatch: kind === 'batch' };
    if (key !== 'batch' || typeof fixedBatch !== 'number') {
      const limits = places.flatMap((place) => (uses && axisLimit(place, uses)) ?? []);
      return { ...dimension, ...atMost(Math.max(1, Math.min(...limits)), sizesOf[kind]) };
    }
    const range = [fixedBatch, fixedBatch, fixedBatch] as const;
    return { ...dimension, isBatch: false, tries: [fixedBatch], range };
  });
}

/** The names of open dimensions that are the height or width of images. */
export function imageDimensions(inputs: readonly Named[]): readonly string[] {
  const kindOf = kindsOver(inputs, undefined);
  const names = inputs.flatMap((input) =>
    (input.shape ?? []).filter((dim, axis) => isNamed(dim) && kindOf(input, axis) === 'image'),
  );
  return [...new Set(names)] as readonly string[];
}

/** Sizes that the model allows: the largest of them where the guess is beyond it. */
function atMost(limit: number, { tries, range }: Pick<OpenDimension, 'tries' | 'range'>) {
  const [min, opt, max] = range;
  const within = (size: number) => Math.min(limit, size);
  return {
    tries: [...new Set(tries.map(within))],
    range: [within(min), within(opt), within(max)] as const,
  };
}

const isOpen = (dim: Dimension | undefined): dim is string | null =>
  dim !== undefined && typeof dim !== 'number';
const isNamed = (dim: Dimension | undefined): dim is string => typeof dim === 'string' && !isPlaceholder(dim);

/** One key for a symbol wherever it stands; an axis without a name has its own. */
function keyOf({ name, shape }: Named, axis: number): string {
  const dim = shape?.[axis];
  return isNamed(dim) ? `symbol ${dim}` : `axis ${axis} of ${name}`;
}

/** A state is `[layers, batch, …]`: of an input that is one by its name or its use, the first axis left open after a fixed one. */
function stateBatch({ name, shape }: Named, uses: ValueUses | undefined): number | undefined {
  const axis = shape?.findIndex(isOpen) ?? -1;
  if (axis < 1) return undefined;
  const isInitial = ({ node, index }: Use) => RECURRENT.has(node.opType) && index >= 5;
  return isStateLike(name) || uses?.reached(name).some(isInitial) ? axis : undefined;
}

function kindsOver(
  inputs: readonly Named[],
  uses: ValueUses | undefined,
): (input: Named, axis: number) => Kind {
  // There is one batch: several names on first axes count several things.
  const first = new Set(inputs.flatMap(({ shape }) => (isNamed(shape?.[0]) ? [shape[0]] : [])));
  const telling = [...first].filter((symbol) => !NUMBERED.test(symbol));
  const later = new Set(inputs.flatMap(({ shape }) => shape?.slice(1) ?? []));
  const isBatch = (dim: Dimension) =>
    !isNamed(dim) || (!later.has(dim) && !(telling.length > 1 && telling.includes(dim)));
  const audio = new Map(inputs.map((input) => [input.name, isAudio(input, uses)] as const));
  return (input, axis) => {
    const dim = input.shape?.[axis] ?? null;
    const rank = input.shape?.length ?? 0;
    const named = isNamed(dim) ? kindsByName.find(([name]) => name.test(dim))?.[1] : undefined;
    const isFirst = axis === 0 && rank > 1;
    const isSignal = axis === rank - 1 && audio.get(input.name) === true;
    if (named !== undefined && !(named === 'audio' && isFirst))
      return named === 'sequence' && isSignal ? 'audio' : named;
    if (axis === 0 && isBatch(dim) && !isSignal) return 'batch';
    if (isImage(input, axis)) return 'image';
    return isSignal ? 'audio' : 'other';
  };
}

function isImage({ shape, dtype }: Named, axis: number): boolean {
  const channels = channelAxis(shape);
  return channels !== undefined && dtype !== 'bool' && axis !== 0 && axis !== channels;
}

/** A signal by its name, or because the graph filters it along its last axis as it comes. */
export function isAudio({ name, dtype, shape }: Named, uses: ValueUses | undefined): boolean {
  const rank = shape?.length ?? 0;
  if (!/float/.test(dtype ?? '') || rank < 1 || rank > 3) return false;
  if (AUDIO.test(name)) return true;
  const filters = ({ node, index }: Use) =>
    index === 0 &&
    (node.opType === 'STFT' || (node.opType === 'Conv' && uses?.shape(node.input[1] ?? '')?.length === 3));
  return rank < 3 && uses?.reached(name).some(filters) === true;
}

/**
 * The largest size of an axis that the constants of a graph allow: exporters slice a table of positions to the length of the input, or count up to it and
 * look the numbers up. undefined where nothing of the kind bounds it.
 */
function axisLimit({ input, axis }: AxisPlace, uses: ValueUses): number | undefined {
  const lengths = uses
    .users(input)
    .filter(({ node }) => node.opType === 'Shape')
    .flatMap(({ node }) => sizesTaken(node.output[0] ?? '', axis, uses));
  const limits = lengths.flatMap((length) => uses.reached(length).flatMap((use) => tableSize(use, uses)));
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/** Names of what is taken of a shape at one axis. */
const sizesTaken = (shape: string, axis: number, uses: ValueUses): readonly string[] =>
  uses.users(shape).flatMap(({ node, index }) => {
    const [, at] = node.input;
    const isTaken =
      index === 0 &&
      (node.opType === 'Gather' || node.opType === 'Slice') &&
      uses.constant(at ?? '') === axis;
    return isTaken ? node.output : [];
  });

/** The extent of the table that a length takes a part of; empty where it takes none. */
function tableSize({ node, index, offset }: Use, uses: ValueUses): readonly number[] {
  if (node.opType === 'Range' && index === 1)
    return uses.reached(node.output[0] ?? '').flatMap((use) => {
      if (use.node.opType !== 'Gather' || use.index !== 1) return [];
      const axis = Number(use.node.attribute.find(({ name }) => name === 'axis')?.i ?? 0n);
      const rows = uses.weightShape(use.node.input[0] ?? '')?.at(axis);
      return rows === undefined ? [] : [rows - use.offset - offset];
    });
  if (node.opType !== 'Slice' || index !== 2) return [];
  const axis = uses.constant(node.input[3] ?? '');
  const size = axis === undefined ? undefined : uses.weightShape(node.input[0] ?? '')?.at(axis);
  return size === undefined ? [] : [size - offset];
}

interface DeclaredInput {
  readonly name: string;
  readonly shape: readonly (number | string | null)[] | null;
}

/** The sizes that requested shapes give the symbols of the inputs. Throws TF_SHAPE_INVALID when a shape does not fit, or names no input. */
export function requestedSizes(
  inputs: readonly DeclaredInput[],
  asked: ReadonlyMap<string, readonly number[]>,
): Map<string, number> {
  for (const name of asked.keys()) {
    if (!inputs.some((input) => input.name === name)) {
      throw new TrtforgeError('TF_SHAPE_INVALID', `There is no input "${name}", whose shape is passed.`, {
        remedy: `The inputs are ${inputs.map((input) => input.name).join(', ')}.`,
      });
    }
  }
  const sizes = new Map<string, number>();
  for (const input of inputs) takeSymbols(input, asked.get(input.name), sizes);
  return sizes;
}

function takeSymbols(
  input: DeclaredInput,
  shape: readonly number[] | undefined,
  sizes: Map<string, number>,
): void {
  if (shape === undefined || input.shape === null) return;
  const declared = input.shape;
  const mismatch = (why: string) =>
    new TrtforgeError(
      'TF_SHAPE_INVALID',
      `The shape [${shape}] does not fit the input "${input.name}": ${why}.`,
    );
  if (shape.length !== declared.length) throw mismatch(`it has ${declared.length} dimensions`);
  declared.forEach((dim, axis) => {
    const size = shape[axis] ?? 0;
    if (typeof dim === 'number' && dim !== size) throw mismatch(`dimension ${axis} is ${dim}`);
    if (typeof dim !== 'string' || isPlaceholder(dim)) return;
    const known = sizes.get(dim) ?? size;
    if (known !== size) throw mismatch(`${dim} is ${known} elsewhere`);
    sizes.set(dim, size);
  });
}
