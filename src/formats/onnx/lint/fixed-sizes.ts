import { attributeOf } from '../attributes.js';
import { isOnnxDomain, nodeLabel, visitGraphs } from '../graph.js';
import type { ModelLike } from '../model.js';
import type { NodeProto } from '../onnx_pb.js';
import { type ModelShapes, shapesByName } from '../shapes/infer.js';
import { elementsIn } from '../shapes/rule-input.js';
import { elementwise } from '../shapes/shape-rules.js';
import {
  add,
  evaluated,
  isNumber,
  type MaybeSize,
  type Shape,
  type Size,
  sizeText,
  symbol,
  symbolsOf,
} from '../shapes/size.js';
import { constantTensor, smallIntegers } from '../shapes/stored-value.js';
import { valueFacts } from '../values.js';
import type { Findings } from './findings.js';

/** A size that has to be what the model has stored, or at most that. */
interface Meeting {
  readonly size: MaybeSize;
  readonly fixed: MaybeSize;
  readonly what: string;
  readonly isLimit?: boolean;
  /** Whether TensorRT's parser rejects it, which another finding reports. */
  readonly isRejected?: boolean;
}

/** The sizes of one open dimension that run, from the least to the most. */
export interface FixedSize {
  readonly where: string;
  /** The values that have to agree there. */
  readonly values: readonly string[];
  readonly message: string;
  readonly isLimit: boolean;
  readonly isRejected: boolean;
  readonly symbol: string;
  readonly least: number;
  readonly most: number;
}

/** The same numbers in another form. */
const SAME_NUMBERS = /^(?:Cast|Identity|Unsqueeze|Squeeze|Reshape|Expand|Flatten)$/;
/** Operators with states: inputs 5 and 6. */
const RECURRENT = /^(?:LSTM|GRU|RNN)$/;
const LARGEST_DIMENSION = 2 ** 31;
/** Between positions and the table, also in a graph with a cycle. */
const MOST_STEPS = 32;

/**
 * Where sizes that the inputs leave open have to be what the exporter stored: operands that are not stretched, states, declared outputs, tables of positions. One for
 * each dimension and number, the first in the graph. Bodies are left out: what does not run needs no size.
 */
export function fixedSizes(model: ModelLike, inferred: ModelShapes): FixedSize[] {
  const [view] = visitGraphs(model.proto);
  const graph = view?.graph;
  if (graph === undefined) return [];
  const producers = new Map(graph.node.flatMap((node) => node.output.map((name) => [name, node] as const)));
  const stored = new Map(graph.initializer.map(({ name, dims }) => [name, dims.map(Number)] as const));
  const shapes = shapesByName(inferred);
  const shapeOf = (name = ''): Shape | undefined => stored.get(name) ?? shapes.get(name);
  const constant = (name = '') => smallIntegers(constantTensor(view!, name));
  /** One more than the highest of indices that count up; undefined for others. */
  const counted = (name = '', steps = MOST_STEPS): MaybeSize => {
    const { opType = '', input: [first, second] = [] } = (steps > 0 && producers.get(name)) || {};
    if (opType === 'Range') return add(shapeOf(name)?.[0], constant(first)?.[0] ?? 0);
    if (SAME_NUMBERS.test(opType)) return counted(first, steps - 1);
    const offset = opType === 'Add' ? (constant(second) ?? constant(first)) : undefined;
    return offset && add(counted(constant(second) ? first : second, steps - 1), Math.max(...offset));
  };
  const meetings = [
    ...graph.node.flatMap((node) =>
      (isOnnxDomain(node.domain) ? meetingsAt(node, shapeOf, counted) : []).map((met) => ({
        ...met,
        where: nodeLabel(node),
        values: RECURRENT.test(node.opType) ? [0, 5, 6].flatMap((at) => node.input[at] ?? []) : node.input,
      })),
    ),
    ...graph.output.flatMap((output) =>
      (valueFacts(output).shape ?? []).map((declared, axis) => ({
        size: typeof declared === 'string' ? symbol(declared) : undefined,
        fixed: shapeOf(output.name)?.[axis],
        what: `its axis ${axis} is declared by that name`,
        where: `graph output "${output.name}"`,
        values: [output.name],
      })),
    ),
  ];
  const found = new Map<string, FixedSize>();
  for (const { where, values, ...met } of meetings) {
    const fixed = solved(met, inferred.openSizes);
    const key = JSON.stringify([fixed?.symbol, fixed?.least, fixed?.most]);
    if (fixed !== undefined && !found.has(key)) found.set(key, { ...fixed, where, values });
  }
  return [...found.values()];
}

/** The sizes at a node that have to agree. */
function meetingsAt(
  node: NodeProto,
  shapeOf: (name: string | undefined) => Shape | undefined,
  counted: (name: string | undefined) => MaybeSize,
): readonly Meeting[] {
  const { opType } = node;
  const shapes = node.input.map(shapeOf);
  const [first, second] = shapes;
  const result = shapeOf(node.output[0]);
  const int = (name: string) => Number(attributeOf(node, name)?.i ?? 0);
  /** Sizes that are all the same, where those below `least` are stretched. */
  const same = (sizes: readonly MaybeSize[], least = 0): Meeting[] => {
    const fixed = sizes.find((size) => isNumber(size) && size >= least);
    return sizes.map((size) => ({ size, fixed, what: `it meets the size ${fixed} there` }));
  };
  const axes = (all: readonly (Shape | undefined)[], least?: number): Meeting[] =>
    Array.from({ length: Math.max(0, ...all.map((shape) => shape?.length ?? 0)) }, (_, axis) => {
      const sizes = all.map((shape) => shape?.at(-1 - axis));
      return same(sizes, least);
    }).flat();
  const upTo = (size: MaybeSize, rows: MaybeSize): Meeting => ({
    size,
    fixed: rows,
    what: `its table has ${rows} positions`,
    isLimit: true,
  });
  if (elementwise.has(opType)) return axes(shapes, 2);
  if (opType === 'Expand') return axes([first, result], 2);
  if (opType === 'Reshape' && first !== undefined && result?.every(isNumber)) {
    const fixed = elementsIn(result);
    return [{ size: elementsIn(first), fixed, what: `its target has ${fixed} elements`, isRejected: true }];
  }
  if (opType === 'Concat') return axes(shapes.map((shape) => shape?.toSpliced(int('axis'), 1)));
  if (opType === 'MatMul' && (first?.length ?? 0) > 1 && (second?.length ?? 0) > 1)
    return [
      ...axes([first?.slice(0, -2), second?.slice(0, -2)], 2),
      ...same([first?.at(-1), second?.at(-2)]),
    ];
  if (RECURRENT.test(opType)) {
    const batch = int('layout') === 0 ? 1 : 0;
    return [5, 6].flatMap((state) => same([first?.[batch], shapes[state]?.[batch]]));
  }
  if (opType === 'Gather') return [upTo(counted(node.input[1]), first?.at(int('axis')))];
  // Sizes beyond a table of weights are taken to be there: see the rule of Slice.
  return opType === 'Slice' ? (first ?? []).map((rows, axis) => upTo(result?.[axis], rows)) : [];
}

/** The sizes of the one open dimension that a meeting depends on, with which it grows; undefined where there is none, or no size is wrong. */
function solved(
  { size, fixed, what, isLimit = false, isRejected = false }: Meeting,
  open: ReadonlySet<string>,
): Omit<FixedSize, 'where' | 'values'> | undefined {
  if (size === undefined || isNumber(size) || !isNumber(fixed)) return undefined;
  const [name, ...others] = symbolsOf(size);
  if (name === undefined || others.length > 0 || !open.has(name)) return undefined;
  const least = isLimit ? 1 : firstAbove(size, name, fixed - 1);
  const most = firstAbove(size, name, fixed) - 1;
  if (most >= LARGEST_DIMENSION || least > most) return undefined;
  const works = isLimit ? `up to ${most}` : least === most ? `${most} only` : `from ${least} to ${most} only`;
  const of = sizeText(size) === name ? '' : `, with ${sizeText(size)}`;
  return {
    message: `It runs with ${name} ${works}: ${what}${of}.`,
    isLimit,
    isRejected,
    symbol: name,
    least,
    most,
  };
}

/** The first number of a dimension at which a size is above `bound`. */
function firstAbove(size: Size, name: string, bound: number): number {
  let [low, high] = [1, LARGEST_DIMENSION + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (evaluated(size, name, middle) > bound) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Findings about open dimensions that are not open inside. */
export function lintFixedSizes(
  fixed: readonly FixedSize[],
  remedy: string | undefined,
  findings: Findings,
): void {
  for (const { where, message, isLimit, isRejected, least, most } of fixed)
    if (isRejected) continue;
    else if (isLimit) findings.add('size-limited', where, message);
    else
      findings.add(
        'size-fixed',
        where,
        `${message} Export again with that axis dynamic, or build for that size alone.`,
        least === most ? remedy : undefined,
      );
}
