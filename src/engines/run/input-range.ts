import { isStateLike } from '../../formats/contract/state.js';
import { nodeLabel } from '../../formats/onnx/graph.js';
import { channelAxis } from '../../formats/onnx/image-layout.js';
import { isAudio } from '../../formats/onnx/open-dimensions.js';
import { decidesShape, type Use, type ValueUses } from '../../formats/onnx/value-uses.js';
import type { Spread } from '../../formats/tensor/random.js';
import { firstBeyond, isIntegerDtype } from '../../formats/tensor/tensor.js';
import type { Binding } from '../runtime/session.js';

/** The distribution of one input's elements, and the reason for it. */
export interface InputRange {
  readonly spread: Spread | { readonly kind: 'mask' };
  /** One phrase for reports: `0 to 30521, the rows of "word_embeddings"`. */
  readonly reason: string;
  /** Absent where the graph or the user states the range. */
  readonly headRoom?: HeadRoom;
}

/** The sizes of inputs of this use beyond the drawn values. */
export interface HeadRoom {
  /** Largest absolute values to try, the smallest first. */
  readonly sizes: readonly number[];
  /** Whether the graph takes inputs of any size: else those of a size may be another preparation than its own. */
  readonly isFree: boolean;
}

/** Integers that nothing bounds: small, so that loops and shapes made of them stay small too. */
const UNBOUNDED_HIGH = 9;
/** Trip counts, repetitions and sizes made from an input. */
const SMALL_HIGH = 4;
/** Constants that a value is compared with one by one; more are data. */
const MOST_COMPARED = 64;

/** The dimensions of a run. */
export interface RunSizes {
  /** Input name to dimensions. */
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  /** Symbol to number. */
  readonly sizes: ReadonlyMap<string, number>;
  /** The longest axis of all inputs. */
  readonly longest: number;
}

/**
 * Chooses a range for an input from what the model does with it. Indices stay within the axis they index, lengths within the longest axis,
 * masks begin with ones, counts stay small; floats are standard normal unless an image or a function's domain requires otherwise.
 */
export function chooseRange(input: Binding, uses: ValueUses, sizes: RunSizes): InputRange {
  const reached = uses.reached(input.name);
  if (input.dtype === 'bool') return boolRange(input, reached);
  if (/float/.test(input.dtype)) return floatRange(input, reached, uses);
  return integerRange(input, uses, sizes);
}

function boolRange(input: Binding, reached: readonly Use[]): InputRange {
  const decides = reached.some(({ node, index }) => node.opType === 'If' && index === 0);
  if (decides || isSingle(input))
    return { spread: { kind: 'uniform', low: 0, high: 1, first: [1, 0] }, reason: 'false or true, a switch' };
  return { spread: { kind: 'mask' }, reason: 'a mask: ones first, then zeros' };
}

const domains: ReadonlyMap<string, readonly [low: number, high: number]> = new Map(
  Object.entries({
    Log: [0.1, 1],
    Sqrt: [0, 1],
    Asin: [-0.9, 0.9],
    Acos: [-0.9, 0.9],
    Atanh: [-0.9, 0.9],
    Acosh: [1, 2],
  }),
);

function floatRange(input: Binding, reached: readonly Use[], uses: ValueUses): InputRange {
  if (/mask/i.test(input.name))
    return { spread: { kind: 'mask' }, reason: 'a mask by its name: ones first, then zeros' };
  for (const { node, index } of reached) {
    const domain = domains.get(node.opType);
    if (domain !== undefined && index === 0) {
      return uniform(domain[0], domain[1], `where ${nodeLabel(node)} is defined`);
    }
    if (node.opType === 'GridSample' && index === 1) return uniform(-1, 1, `positions in ${nodeLabel(node)}`);
  }
  const channels = channelAxis(input.shape);
  const isImage =
    channels !== undefined &&
    reached.some(({ node }) => ['Conv', 'Resize', 'Sub', 'Div', 'Mul', 'Pad'].includes(node.opType));
  if (isImage && reached.some((use) => readsPixels(use, uses)))
    return uniform(0, PIXEL, `an image of ${input.shape?.[channels]} channels, as bytes have it`);
  if (isImage)
    return {
      ...uniform(0, 1, `an image of ${input.shape?.[channels]} channels`),
      headRoom: { sizes: [PIXEL], isFree: false },
    };
  const divisor = Math.max(1, ...reached.map((use) => 1 / factorOf(use, uses)));
  // The divisor is the largest value of a divided input: samples of 16 bits stay within it.
  const deviation = divisor < LARGE ? 1 : divisor / 4;
  const spread = { kind: 'normal', mean: 0, deviation } as const;
  const reason = `normal, mean 0, deviation ${deviation}`;
  if (deviation > 1 || isStateLike(input.name)) return { spread, reason };
  const sizes = isAudio(input, uses) ? [LARGE, SOUND] : [LARGE];
  return { spread, reason, headRoom: { sizes, isFree: hasFreeLevel(input.name, uses) } };
}

/** The largest byte, and the largest sample of 16 bits. */
const [PIXEL, SOUND] = [255, 32_767];
/** The size of features that nobody normalized. */
const LARGE = 100;

const constantsOf = (name: string | undefined, uses: ValueUses): readonly number[] =>
  Array.from(uses.constants(name ?? '', MOST_COMPARED) ?? [], Math.abs);

/** The constant that a use multiplies with; 1 where it does not. */
function factorOf(use: Pick<Use, 'node' | 'index'>, uses: ValueUses): number {
  const { opType } = use.node;
  const by = constantsOf(operand(use), uses);
  if (by.length === 0 || Math.min(...by) === 0) return 1;
  if (opType === 'Mul') return Math.max(...by);
  return opType === 'Div' && use.index === 0 ? 1 / Math.min(...by) : 1;
}

/** Whether a graph normalizes pixels of 0 to 255: it divides by what is far above 1, or subtracts a mean above it. */
function readsPixels(use: Use, uses: ValueUses): boolean {
  const { node, index, offset } = use;
  const shifts = /^(Add|Sub)$/.test(node.opType) ? constantsOf(operand(use), uses) : [];
  const means = node.opType === 'BatchNormalization' && index === 0 ? constantsOf(node.input[3], uses) : [];
  return factorOf(use, uses) <= 1 / 16 || Math.max(Math.abs(offset), ...shifts, ...means) > 2;
}

/** Steps that make twice as much, or four times, of twice as much. */
const scaling =
  /^(Identity|Cast|Reshape|Squeeze|Unsqueeze|Transpose|Flatten|Slice|Split|Pad|Concat|Gather|Where|MatMul|Gemm|Einsum|Conv|STFT|DFT|Mul|Div|Add|Sub|Sum|Neg|Abs|Pow|Sqrt|Clip|Max|AveragePool|Reduce\w+)$/;

/** Whether an input reaches a logarithm by steps that only scale: its level becomes an offset there, and models are trained for any. A bias of 1 at most is a floor. */
function hasFreeLevel(name: string, uses: ValueUses): boolean {
  const reached = new Set([name]);
  for (const value of reached)
    for (const use of uses.users(value)) {
      const { opType, input, output } = use.node;
      if (opType === 'Log' || opType === 'ReduceLogSum') return true;
      const bias = /^(Add|Sub)$/.test(opType)
        ? operand(use)
        : /^(Conv|Gemm)$/.test(opType)
          ? input[2]
          : undefined;
      const isBiased = Array.from(uses.constants(bias ?? '') ?? []).some((each) => Math.abs(each) > 1);
      if (!scaling.test(opType) || isBiased || factorOf(use, uses) >= LARGE) continue;
      for (const next of output) if (next !== '') reached.add(next);
    }
  return false;
}

function integerRange(input: Binding, uses: ValueUses, sizes: RunSizes): InputRange {
  const reached = uses.reached(input.name, true);
  const compared = reached.flatMap((use) => comparedNumbers(use, uses).map((at) => ({ use, at })));
  const sides = bothSides(compared).filter(
    (side) => !isIntegerDtype(input.dtype) || firstBeyond(input.dtype, [side]) < 0,
  );
  const within = (low: number, high: number, why: string) => uniform(low, high, why, sides);
  // A value that masks multiply is often part of an index, positions above all.
  const isMask =
    /mask/i.test(input.name) || reached.some((use) => isMaskUse(use) && use.node.opType !== 'Mul');
  const bounds = reached.flatMap((use) => {
    const found = rowsOf(use, uses, sizes);
    if (found === undefined || (isMask && use.joined !== undefined)) return [];
    const { from } = found;
    // So that sums and products of two such indices are in the table.
    const rows = use.joined === 'values' ? Math.floor(Math.sqrt(found.rows - 1)) + 1 : found.rows;
    const ends = [from, from + rows - 1].map((end) => (end - use.offset) / use.scale);
    const [low, high] = [Math.max(0, Math.ceil(Math.min(...ends))), Math.floor(Math.max(...ends))];
    // Below zero are the ends of a branch for negative indices.
    return high < low ? [] : [{ high, low, use, rows }];
  });
  if (bounds.length > 0) {
    const tightest = bounds.reduce((least, bound) => (bound.high < least.high ? bound : least));
    const low = Math.max(...bounds.map((bound) => bound.low));
    const target = nodeLabel(tightest.use.node);
    return within(low, Math.max(low, tightest.high), `indices into the ${tightest.rows} rows of ${target}`);
  }
  const isFlag = reached.some(isMaskUse) && compared.every(({ at }) => at === 0 || at === 1);
  if (isFlag && isSingle(input)) return uniform(0, 1, 'a switch', [1, 0]);
  if (/mask/i.test(input.name) || isFlag) {
    return { spread: { kind: 'mask' }, reason: 'a mask: ones first, then zeros' };
  }
  const count = reached.find(decidesShape);
  if (count !== undefined) return within(1, SMALL_HIGH, `a count or size for ${nodeLabel(count.node)}`);
  const { longest } = sizes;
  const length = reached.find((use) => isOrdering(use) && (uses.constants(operand(use))?.length ?? 2) > 1);
  if (length !== undefined || /len(gth)?s?$/i.test(input.name)) {
    const why =
      length === undefined ? 'a length by its name' : `a length, compared in ${nodeLabel(length.node)}`;
    return within(Math.ceil(longest / 2), longest, why);
  }
  const [one] = compared;
  if (one !== undefined && sides.length > 0)
    return within(Math.min(...sides), Math.max(...sides), `both sides of ${nodeLabel(one.use.node)}`);
  if (reached.some(({ node }) => node.opType === 'Equal'))
    return uniform(0, 1, 'compared for equality', [1, 0]);
  return uniform(0, UNBOUNDED_HIGH, 'nothing in the graph bounds it');
}

const isOrdering = ({ node }: Use): boolean => /^(Less|Greater)(OrEqual)?$/.test(node.opType);
const operand = ({ node, index }: Pick<Use, 'node' | 'index'>): string => node.input[1 - index] ?? '';

/** The single numbers that a use compares with, as they are before what was multiplied and added; not those of one-hot rows and positions. */
function comparedNumbers(use: Use, uses: ValueUses): readonly number[] {
  if (use.node.opType !== 'Equal' && !isOrdering(use)) return [];
  const numbers = Array.from(uses.constants(operand(use), MOST_COMPARED) ?? []);
  if (numbers.length > 1 && (isOrdering(use) || comparedRows(use, uses) !== undefined)) return [];
  return numbers.map((number) => Math.floor((number - use.offset) / use.scale));
}

/** Integers on both sides of every comparison, those that decide most first. Nothing below 0 differs from 1 for Equal with 0. */
function bothSides(compared: readonly { readonly use: Use; readonly at: number }[]): readonly number[] {
  const ats = compared.map(({ at }) => at);
  const ordered = compared.filter(({ use }) => isOrdering(use)).map(({ at }) => at);
  const ends = ordered.length === 0 ? [] : [Math.max(...ordered) + 1, Math.min(...ordered) - 1];
  const below = ats.filter((at) => at !== 0 || ordered.includes(at)).map((at) => at - 1);
  return [...new Set([...ends, ...ats, ...ats.map((at) => at + 1), ...below])];
}

/** The rows that a value chooses from, `from` the first on. */
export interface Rows {
  readonly from: number;
  readonly rows: number;
}

/** The rows that a use chooses from, by index or by comparison with the number of each; undefined when it does not, or they are not known. */
export function rowsOf(use: Use, uses: ValueUses, sizes: RunSizes): Rows | undefined {
  const rows = indexedRows(use, uses, sizes);
  return rows === undefined ? comparedRows(use, uses) : { from: 0, rows };
}

/** The numbers, one after the other, that a value is compared with for a one-hot row. */
function comparedRows(use: Use, uses: ValueUses): Rows | undefined {
  const numbers = use.node.opType === 'Equal' ? uses.constants(operand(use)) : undefined;
  if (numbers === undefined || numbers.length < 2) return undefined;
  const from = numbers[0]!;
  return Array.prototype.every.call(numbers, (number, at) => number === from + at)
    ? { from, rows: numbers.length }
    : undefined;
}

/** Number of rows that a use lets an index choose from; undefined when it is not an index, or the rows are not known. */
function indexedRows(use: Use, uses: ValueUses, { shapes, sizes }: RunSizes): number | undefined {
  const { node, index } = use;
  const size = (value: string | undefined, axis: number): number | undefined => {
    const ofInput = shapes.get(value ?? '')?.at(axis);
    if (ofInput !== undefined) return ofInput;
    const shape = uses.shape(value ?? '');
    const dim = shape?.at(axis);
    return typeof dim === 'string' ? sizes.get(dim) : (dim ?? undefined);
  };
  const axis = Number(node.attribute.find(({ name }) => name === 'axis')?.i ?? 0n);
  switch (node.opType) {
    case 'Gather':
    case 'GatherElements':
    case 'ScatterElements':
      return index === 1 ? size(node.input[0], axis) : undefined;
    case 'GatherND':
    case 'ScatterND': {
      if (index !== 1) return undefined;
      const depth = size(node.input[1], -1) ?? 1;
      const axes = Array.from({ length: depth }, (_, i) => size(node.input[0], i)).filter(
        (rows) => rows !== undefined,
      );
      return axes.length === 0 ? undefined : Math.min(...axes);
    }
    case 'OneHot':
      return index === 0 ? uses.constant(node.input[1] ?? '') : undefined;
    case 'EmbedLayerNormalization':
      return index < 2 ? size(node.input[index === 0 ? 2 : 4], 0) : undefined;
    default:
      return undefined;
  }
}

/** Attention masks are multiplied, subtracted from one, or turned into a condition. */
function isMaskUse({ node, index, scale }: Use): boolean {
  if (scale !== 1) return false;
  return (
    (node.opType === 'Where' && index === 0) ||
    ['Mul', 'And', 'Or', 'Not'].includes(node.opType) ||
    (node.opType === 'Sub' && index === 1)
  );
}

const isSingle = ({ shape }: Binding): boolean => shape?.every((size) => size === 1) ?? false;

/** `first` are drawn before the rest of the range, as far as they are in it. */
const uniform = (low: number, high: number, why: string, first: readonly number[] = []): InputRange => ({
  spread: { kind: 'uniform', low, high, first: first.filter((value) => value >= low && value <= high) },
  reason: `${low} to ${high}, ${why}`,
});
