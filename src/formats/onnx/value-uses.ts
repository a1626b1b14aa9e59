import { elementCount } from '../tensor/dtype.js';
import { numbersOf } from '../tensor/tensor.js';
import { GraphUses, type GraphView, rearrangers, visitMainGraphs } from './graph.js';
import type { ModelLike } from './model.js';
import type { GraphProto, NodeProto } from './onnx_pb.js';
import { valueFacts } from './values.js';

/** One place where a value is used: as input `index` of `node`. */
export interface Use {
  readonly node: NodeProto;
  readonly index: number;
  /** The sum added to the value on its way here, when every step was known: an id that is shifted by 1 indexes one further. */
  readonly offset: number;
  /** The factor of the value, applied before `offset` is added; 1 unless scaled ones are requested. */
  readonly scale: number;
  /** Where an index also depends on other values: on constants that are added element by element, of which `offset` has the largest, or on what is computed. */
  readonly joined?: Joined;
}

type Joined = 'constants' | 'values';

/** The values that carry an input on: multiplied by `scale` (1 where it is absent), then shifted. */
interface Onward {
  readonly names: readonly string[];
  readonly offset: number;
  readonly scale?: number;
  readonly joined?: Joined;
}

/** Nodes that hand their first input on, perhaps in another type or shape. */
const handOn: ReadonlySet<string> = new Set([
  ...rearrangers,
  ...'Cast Split Dropout Abs Pad ReduceMax ReduceMin Clip GatherElements GatherND Mod Floor Round'.split(' '),
]);

/** Whether a node hands an input on: of those that choose any but a condition. Indices and bounds are uses. */
const isHandedOn = ({ opType }: NodeProto, index: number): boolean =>
  /^(Concat|Max|Min)$/.test(opType) || (opType === 'Where' ? index > 0 : index === 0 && handOn.has(opType));

/** Nodes that change no element of a constant, or only its type. */
const keepsElements = /^(Identity|Cast|Reshape|Squeeze|Unsqueeze|Flatten|Expand|Tile)$/;

/** Between a comparison with 0 and what it adds to a negative index. */
const wrapSteps = /^(Identity|Cast|Reshape|Squeeze|Unsqueeze|Expand|Mul|Where|Not|Sub)$/;

const isIndex = ({ opType }: NodeProto, index: number): boolean =>
  index === 1 && /^(Gather|Scatter)(Elements|ND)?$/.test(opType);

/** Constants with more elements are data. */
const MOST_CONSTANTS = 2 ** 18;

const MOST_STEPS = 8;

const countInputs: ReadonlyMap<string, readonly number[]> = new Map(
  Object.entries({
    Range: [0, 1, 2],
    Loop: [0],
    ConstantOfShape: [0],
    Expand: [1],
    Reshape: [1],
    Tile: [1],
    TopK: [1],
    Slice: [1, 2, 4],
    Resize: [3],
    Pad: [1],
  }),
);

/** Whether the value that is used there is a count or a size, so that it decides the shape of what comes out. */
export const decidesShape = ({ node, index }: Use): boolean =>
  countInputs.get(node.opType)?.includes(index) ?? false;

/** Known facts about the values of a model, for following an input to where it matters. */
export class ValueUses {
  readonly #model: ModelLike;
  readonly #graphs: GraphUses;
  /** Outputs of the bodies of If, and what they are called outside. */
  readonly #left = new Map<string, string>();
  readonly #shapes = new Map<string, readonly (number | string | null)[]>();

  constructor(model: ModelLike) {
    this.#model = model;
    const views = [...visitMainGraphs(model.proto)];
    this.#graphs = new GraphUses(...views.map(({ graph }) => graph!));
    for (const view of views) this.#collect(view);
  }

  /**
   * Every place that a value reaches unchanged but for type, shape and a known offset. Bodies of Loop, Scan and If are entered, those of If left again.
   * With `isScaled` also past constants that it is multiplied with, divided by or subtracted from, and past computed values to where it is part of an index;
   * where that happens counts as a use too.
   */
  reached(name: string, isScaled = false): readonly Use[] {
    const found: Use[] = [];
    const seen = new Set<string>();
    const queue: (Omit<Use, 'node' | 'index'> & { readonly name: string })[] = [
      { name, offset: 0, scale: 1 },
    ];
    for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
      const { offset, scale, joined } = at;
      const key = `${offset}/${scale}/${joined}/${at.name}`;
      if (seen.has(key) || seen.size > 10_000) continue;
      seen.add(key);
      const outside = this.#left.get(at.name);
      if (outside !== undefined) queue.push({ ...at, name: outside });
      for (const { node, index } of this.users(at.name)) {
        const onward = this.#onward(node, index);
        const { names = [], offset: shift = 0, scale: factor = 1, joined: other } = onward ?? {};
        const isPassed = onward !== undefined && factor === 1 && other === undefined;
        if (!isPassed && (joined === undefined || isIndex(node, index)))
          found.push({ node, index, offset, scale, joined });
        if (!isPassed && !isScaled) continue;
        for (const next of names)
          queue.push({
            name: next,
            offset: offset * factor + shift,
            scale: scale * factor,
            joined: other === 'values' ? other : (joined ?? other),
          });
      }
    }
    return found;
  }

  /** The places where a value itself is used. */
  users(name: string): readonly { readonly node: NodeProto; readonly index: number }[] {
    return [...new Set(this.#graphs.readers(name))].flatMap((node) =>
      node.input.flatMap((input, index) => (input === name ? [{ node, index }] : [])),
    );
  }

  /** Dimensions of a value, as far as the model reports: of a weight, or as declared. */
  shape(name: string): readonly (number | string | null)[] | undefined {
    return this.weightShape(name) ?? this.#shapes.get(name);
  }

  weightShape(name: string): readonly number[] | undefined {
    return this.#graphs.constants.get(name)?.dims.map(Number);
  }

  /** The one number of a constant with a single element. */
  constant(name: string): number | undefined {
    const values = this.constants(name, 1);
    return values?.length === 1 ? values[0] : undefined;
  }

  /** The numbers of a constant, also in another type or shape, or counted by Range; undefined for other values and large ones. */
  constants(name: string, most = MOST_CONSTANTS, steps = MOST_STEPS): ArrayLike<number> | undefined {
    const node = this.#graphs.producers.get(name);
    if (node?.opType === 'Range' && steps > 0) {
      const [start = NaN, limit = NaN, delta = NaN] = node.input.map(
        (end) => this.constants(end, 1, steps - 1)?.[0],
      );
      const length = Math.ceil((limit - start) / delta);
      return length <= most ? Array.from({ length }, (_, at) => start + at * delta) : undefined;
    }
    if (node !== undefined && keepsElements.test(node.opType) && steps > 0)
      return this.constants(node.input[0] ?? '', most, steps - 1);
    const tensor = this.#graphs.constants.get(name);
    const shape = tensor?.dims.map(Number) ?? [];
    if (tensor === undefined || elementCount(shape) > most) return undefined;
    const { dtype, byteLength, chunks } = this.#model.weight(tensor);
    const [bytes] = chunks(byteLength + 16);
    return bytes === undefined || dtype === 'string' ? undefined : numbersOf({ dtype, shape, bytes });
  }

  /** Whether a value is what negative indices are shifted or multiplied by: a comparison with 0 makes it. */
  #wrapsIndices(name: string, steps = MOST_STEPS): boolean {
    const node = this.#graphs.producers.get(name);
    if (/^(Less|Greater)(OrEqual)?$/.test(node?.opType ?? ''))
      return node!.input.some((input) => this.constant(input) === 0);
    if (node === undefined || steps === 0 || !wrapSteps.test(node.opType)) return false;
    return node.input.some((input) => this.#wrapsIndices(input, steps - 1));
  }

  #collect(view: GraphView): void {
    for (const info of [
      ...(view.graph?.valueInfo ?? []),
      ...(view.graph?.input ?? []),
      ...(view.graph?.output ?? []),
    ]) {
      const { dtype, shape } = valueFacts(info);
      if (dtype !== null && shape !== null) this.#shapes.set(info.name, shape);
    }
    const { node: owner } = view.owner ?? {};
    if (owner?.opType !== 'If') return;
    for (const [index, { name }] of (view.graph?.output ?? []).entries())
      this.#left.set(name, owner.output[index] ?? '');
  }

  /** The values that carry the input on, or undefined when this node is where it is used. */
  #onward(node: NodeProto, index: number): Onward | undefined {
    const names = node.output.filter((output) => output !== '');
    const body = node.attribute.find(({ g }) => g !== undefined)?.g;
    if (body !== undefined) return intoBody(node, index, body);
    if (isHandedOn(node, index)) return { names, offset: 0 };
    if (!/^(Add|Sub|Mul|Div)$/.test(node.opType)) return undefined;
    const [operand = ''] = node.input.toSpliced(index, 1);
    const other = this.constant(operand);
    if (other === undefined) {
      if (/^(Add|Mul)$/.test(node.opType) && this.#wrapsIndices(operand)) return { names, offset: 0 };
      if (node.opType === 'Div') return undefined;
      const added = node.opType === 'Add' ? this.constants(operand) : undefined;
      return added === undefined
        ? { names, offset: 0, joined: 'values' }
        : {
            names,
            offset: Array.from(added).reduce((most, each) => Math.max(most, each), 0),
            joined: 'constants',
          };
    }
    if (node.opType === 'Add') return { names, offset: other };
    if (node.opType === 'Sub')
      return index === 0 ? { names, offset: -other } : { names, offset: other, scale: -1 };
    if (other === 0 || (node.opType === 'Div' && index === 1)) return undefined;
    return { names, offset: 0, scale: node.opType === 'Mul' ? other : 1 / other };
  }
}

/** Inputs of Loop (after trip count and condition) and Scan enter the body by position. */
function intoBody(node: NodeProto, index: number, body: GraphProto): Onward | undefined {
  if (node.opType === 'Loop' && index < 2) return undefined;
  if (node.opType !== 'Loop' && node.opType !== 'Scan') return undefined;
  const inner = body.input[index]?.name;
  return inner === undefined ? undefined : { names: [inner], offset: 0 };
}
