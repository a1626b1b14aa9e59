import { isOnnxDomain, nodeLabel, visitGraphs } from '../graph.js';
import type { ModelLike } from '../model.js';
import { attributeOf } from '../node-types.js';
import type { NodeProto } from '../onnx_pb.js';
import type { Shape } from '../shapes/call.js';
import type { ModelShapes } from '../shapes/infer.js';
import { elementwise } from '../shapes/shape-rules.js';
import {
  add,
  evaluated,
  isNumber,
  type MaybeSize,
  type Size,
  sizeText,
  symbol,
  symbolsOf,
} from '../shapes/size.js';
import { constantTensor, smallIntegers } from '../small-integers.js';
import { valueFacts } from '../value-facts.js';
import type { Findings } from './findings.js';

/** Where an open dimension meets a size that the model has stored. */
interface FixedSize {
  /** The label of the node, or the output. */
  readonly where: string;
  readonly message: string;
  /** Whether smaller sizes run too. */
  readonly isLimit: boolean;
  /** The open dimension. */
  readonly symbol: string;
  /** The least and the greatest size of it that runs. */
  readonly least: number;
  readonly most: number;
}

/** What a size of a node has to be, or may be at most. */
interface Meeting {
  readonly size: MaybeSize;
  readonly fixed: MaybeSize;
  readonly what: string;
  readonly isLimit?: boolean;
}

/** What `counted` looks through: the same numbers in another form. */
const SAME_NUMBERS = /^(?:Cast|Identity|Unsqueeze|Squeeze|Reshape|Expand|Flatten)$/;
/** No dimension is larger. */
const LARGEST = 2 ** 31;

/**
 * Where sizes that the inputs leave open have to be what the exporter stored: operands that are not stretched, states, declared outputs, tables of positions. One for
 * each dimension and number, the first in the graph. Bodies are left out: what does not run needs no size.
 */
export function fixedSizes(model: ModelLike, inferred: ModelShapes): readonly FixedSize[] {
  const [view] = visitGraphs(model.proto);
  const graph = view?.graph;
  if (graph === undefined) return [];
  const producers = new Map(graph.node.flatMap((node) => node.output.map((name) => [name, node] as const)));
  const stored = new Map(graph.initializer.map(({ name, dims }) => [name, dims.map(Number)] as const));
  const shapeOf = (name = ''): Shape | undefined => {
    const producer = producers.get(name);
    if (producer === undefined) return stored.get(name) ?? inferred.inputs.get(name);
    return inferred.nodes.get(producer)?.shapes[producer.output.indexOf(name)];
  };
  const constant = (name = '') => smallIntegers(constantTensor(view!, name));
  /** One more than the highest of indices that count up; undefined for others. */
  const counted = (name = ''): MaybeSize => {
    const node = producers.get(name);
    if (node?.opType === 'Range') return add(shapeOf(name)?.[0], constant(node.input[0])?.[0] ?? 0);
    if (node?.opType !== 'Add')
      return SAME_NUMBERS.test(node?.opType ?? '') ? counted(node!.input[0]) : undefined;
    const offset = constant(node.input[1]) ?? constant(node.input[0]);
    const indices = node.input[constant(node.input[1]) === undefined ? 1 : 0];
    return offset === undefined ? undefined : add(counted(indices), Math.max(...offset));
  };
  const meetings = [
    ...graph.node.flatMap((node) =>
      isOnnxDomain(node.domain)
        ? meetingsAt(node, shapeOf, counted).map((met) => ({ ...met, where: nodeLabel(node) }))
        : [],
    ),
    ...graph.output.flatMap((output) =>
      (valueFacts(output).shape ?? []).map((declared, axis) => ({
        size: typeof declared === 'string' ? symbol(declared) : undefined,
        fixed: shapeOf(output.name)?.[axis],
        what: `axis ${axis} is declared as ${declared}`,
        where: `graph output "${output.name}"`,
      })),
    ),
  ];
  const found = new Map<string, FixedSize>();
  for (const met of meetings) {
    const fixed = solved(met, inferred.openSizes);
    const key = JSON.stringify([fixed?.symbol, fixed?.least, fixed?.most]);
    if (fixed !== undefined && !found.has(key)) found.set(key, { ...fixed, where: met.where });
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
  const [first, second] = [shapeOf(node.input[0]), shapeOf(node.input[1])];
  const result = shapeOf(node.output[0]);
  const int = (name: string) => Number(attributeOf(node, name)?.i ?? 0);
  /** Sizes of one axis that are all the same, but for those that are stretched from 1. */
  const agreeing = (sizes: readonly MaybeSize[], axis: number, isStretched = true): Meeting[] => {
    const fixed = sizes.find((size) => isNumber(size) && !(isStretched && size === 1));
    return sizes.map((size) => ({ size, fixed, what: `it meets the size ${fixed} on axis ${axis}` }));
  };
  const stretched = (shapes: readonly (Shape | undefined)[]): Meeting[] => {
    const rank = Math.max(0, ...shapes.map((shape) => shape?.length ?? 0));
    return Array.from({ length: rank }, (_, at) =>
      agreeing(
        shapes.map((shape) => shape?.at(at - rank)),
        at,
      ),
    ).flat();
  };
  if (elementwise.has(opType)) return stretched(node.input.map(shapeOf));
  switch (opType) {
    case 'Expand':
      return stretched([first, result]);
    case 'MatMul':
      return [
        ...stretched([first?.slice(0, -2), second?.slice(0, -2)]),
        ...((second?.length ?? 0) < 2 ? [] : agreeing([first?.at(-1), second?.at(-2)], -1, false)),
      ];
    case 'Concat': {
      const joined = (int('axis') + (first?.length ?? 0)) % (first?.length || 1);
      const shapes = node.input.map(shapeOf);
      return (first ?? []).flatMap((_, axis) =>
        axis === joined
          ? []
          : agreeing(
              shapes.map((shape) => shape?.[axis]),
              axis,
              false,
            ),
      );
    }
    case 'LSTM':
    case 'GRU':
    case 'RNN': {
      const batch = int('layout') === 0 ? 1 : 0;
      return [5, 6].map((state) => ({
        size: first?.[batch],
        fixed: shapeOf(node.input[state])?.[batch],
        what: `its initial state has a batch of ${shapeOf(node.input[state])?.[batch]}`,
      }));
    }
    case 'Gather': {
      const rows = first?.at(int('axis'));
      const what = `its table has ${rows} positions`;
      return [{ size: counted(node.input[1]), fixed: rows, what, isLimit: true }];
    }
    case 'Slice':
      return (first ?? []).map((rows, axis) => ({
        size: result?.[axis],
        fixed: rows,
        what: `its table has ${rows} positions`,
        isLimit: true,
      }));
    default:
      return [];
  }
}

/** The sizes of the one open dimension that a meeting depends on; undefined where it does not, or no size is wrong. Expressions grow with their dimensions. */
function solved(
  { size, fixed, what, isLimit = false }: Meeting,
  open: ReadonlySet<string>,
): Omit<FixedSize, 'where'> | undefined {
  if (size === undefined || isNumber(size) || !isNumber(fixed)) return undefined;
  const [name, ...others] = symbolsOf(size);
  if (name === undefined || others.length > 0 || !open.has(name)) return undefined;
  const above = firstAbove(size, name, fixed);
  const least = isLimit ? 1 : firstAbove(size, name, fixed - 1);
  const most = above - 1;
  if (above > LARGEST || least > most) return undefined;
  const works = isLimit ? `up to ${most}` : least === most ? `${most} only` : `from ${least} to ${most} only`;
  const of = sizeText(size) === name ? '' : `, with ${sizeText(size)}`;
  const message = `It runs with ${name} ${works}: ${what}${of}.`;
  return { message, isLimit, symbol: name, least, most };
}

/** The first number of a dimension at which a size is above `bound`. */
function firstAbove(size: Size, name: string, bound: number): number {
  let [low, high] = [1, LARGEST + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((evaluated(size, name, middle) ?? 0) > bound) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Findings about open dimensions that are not open inside. */
export function lintFixedSizes(model: ModelLike, inferred: ModelShapes, findings: Findings): void {
  for (const { where, message, isLimit } of fixedSizes(model, inferred))
    findings.add(
      isLimit ? 'size-limited' : 'size-fixed',
      where,
      isLimit ? message : `${message} Export again with that axis dynamic, or build for that size alone.`,
    );
}
