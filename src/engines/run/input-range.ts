import { channelAxis } from '../../formats/onnx/image-layout.js';
import type { NodeProto } from '../../formats/onnx/onnx_pb.js';
import { decidesShape, type Use, type ValueUses } from '../../formats/onnx/value-uses.js';
import type { Spread } from '../../formats/tensor/random.js';
import type { Binding } from '../runtime/session.js';

/** How the elements of one input are drawn, and why so. */
export interface InputRange {
  readonly spread: Spread | { readonly kind: 'mask' };
  /** One phrase for reports: `0 to 30521, the rows of "word_embeddings"`. */
  readonly reason: string;
}

/** Integers that nothing bounds: small, so that loops and shapes made of them stay small too. */
const UNBOUNDED_HIGH = 9;
/** Trip counts, repetitions and sizes made from an input. */
const SMALL_HIGH = 4;

/** What the dimensions of a run are. */
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
  if (/float/.test(input.dtype)) return floatRange(input, reached);
  return integerRange(input, reached, uses, sizes);
}

function boolRange(input: Binding, reached: readonly Use[]): InputRange {
  const rank = input.shape?.length ?? 0;
  const decides = reached.some(({ node, index }) => node.opType === 'If' && index === 0);
  if (decides || rank === 0)
    return { spread: { kind: 'uniform', low: 0, high: 1 }, reason: 'false or true, a switch' };
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

function floatRange(input: Binding, reached: readonly Use[]): InputRange {
  if (/mask/i.test(input.name))
    return { spread: { kind: 'mask' }, reason: 'a mask by its name: ones first, then zeros' };
  for (const { node, index } of reached) {
    const domain = domains.get(node.opType);
    if (domain !== undefined && index === 0) {
      return uniform(domain[0], domain[1], `where ${label(node)} is defined`);
    }
    if (node.opType === 'GridSample' && index === 1) return uniform(-1, 1, `positions in ${label(node)}`);
  }
  const channels = channelAxis(input.shape);
  const isImage =
    channels !== undefined &&
    reached.some(({ node }) => ['Conv', 'Resize', 'Sub', 'Div', 'Mul', 'Pad'].includes(node.opType));
  if (isImage) return uniform(0, 1, `an image of ${input.shape?.[channels]} channels`);
  return { spread: { kind: 'normal', mean: 0, deviation: 1 }, reason: 'normal, mean 0, deviation 1' };
}

function integerRange(input: Binding, reached: readonly Use[], uses: ValueUses, sizes: RunSizes): InputRange {
  const { longest } = sizes;
  const bounds = reached.flatMap((use) => {
    const rows = indexedRows(use, uses, sizes);
    return rows === undefined
      ? []
      : [{ high: rows - 1 - use.offset, low: -Math.min(0, use.offset), use, rows }];
  });
  if (bounds.length > 0) {
    const tightest = bounds.reduce((least, bound) => (bound.high < least.high ? bound : least));
    const low = Math.max(...bounds.map((bound) => bound.low));
    const target = label(tightest.use.node);
    return uniform(low, Math.max(low, tightest.high), `indices into the ${tightest.rows} rows of ${target}`);
  }
  if (/mask/i.test(input.name) || reached.some(isMaskUse)) {
    return { spread: { kind: 'mask' }, reason: 'a mask: ones first, then zeros' };
  }
  const count = reached.find(decidesShape);
  if (count !== undefined) return uniform(1, SMALL_HIGH, `a count or size for ${label(count.node)}`);
  const compared = reached.find(({ node }) => /^(Less|Greater)(OrEqual)?$/.test(node.opType));
  if (compared !== undefined || /len(gth)?s?$/i.test(input.name)) {
    const why =
      compared === undefined ? 'a length by its name' : `a length, compared in ${label(compared.node)}`;
    return uniform(Math.ceil(longest / 2), longest, why);
  }
  if (reached.some(({ node }) => node.opType === 'Equal')) return uniform(0, 1, 'compared for equality');
  return uniform(0, UNBOUNDED_HIGH, 'nothing in the graph bounds it');
}

/** How many rows a use lets an index choose from; undefined when it is no index, or the rows are not known. */
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
function isMaskUse({ node, index }: Use): boolean {
  return (
    (node.opType === 'Where' && index === 0) ||
    ['Mul', 'And', 'Or', 'Not'].includes(node.opType) ||
    (node.opType === 'Sub' && index === 1)
  );
}

const uniform = (low: number, high: number, why: string): InputRange => ({
  spread: { kind: 'uniform', low, high },
  reason: `${low} to ${high}, ${why}`,
});

const label = (node: NodeProto): string => `${node.opType} "${node.name || node.output[0] || ''}"`;
