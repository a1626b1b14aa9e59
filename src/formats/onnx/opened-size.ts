import { clone, create } from '@bufbuild/protobuf';
import { tensorFrom } from '../tensor/tensor.js';
import { integerAttribute } from './attributes.js';
import { storedTensor } from './builder.js';
import { freeName, GraphUses, inOrder, rearrangers, valueNames } from './graph.js';
import { type FixedSize, fixedSizes } from './lint/fixed-sizes.js';
import type { ModelLike } from './model.js';
import {
  type GraphProto,
  GraphProtoSchema,
  ModelProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  ValueInfoProtoSchema,
} from './onnx_pb.js';
import type { AxisPlace } from './open-dimensions.js';
import { inferShapes, type ModelShapes, shapesByName } from './shapes/infer.js';
import { elementsIn } from './shapes/rule-input.js';
import { divideExactly, equals, isNumber, type MaybeSize, symbolsOf } from './shapes/size.js';
import { dimensionsOf, dimensionValue } from './values.js';
import { bytesOf } from './weight.js';

/** The operand that states the size of what comes out, by operator. */
const sizedBy: Readonly<Partial<Record<string, number>>> = { Expand: 1, Tile: 1, ConstantOfShape: 0 };

/** Constants with more bytes are weights. */
const MOST_BYTES = 1 << 24;

/** Each lets sizes through to the next nodes that keep them. */
const MOST_ROUNDS = 500;

/** Choices of axes that are tried. */
const MOST_CHOICES = 64;

/**
 * The graph of a model with a dimension open, called `name`, that it takes with the size `stored` alone: targets of Reshape divide it out or copy it, and what was stretched to that
 * size is stretched to the input's. At that size the results are the same; whether they are right at others is for a run to show. Where something else keeps the
 * size, the sentence that names it. Changes nothing of `model`.
 */
export function openedSize(
  model: ModelLike,
  places: readonly AxisPlace[],
  name: string,
  stored: number,
): GraphProto | string {
  return new Opening(model, places, name, stored).run();
}

/** What a node computes with; the others of its inputs are axes and places. */
const dataOf = ({ opType, input }: NodeProto): readonly string[] =>
  rearrangers.includes(opType) || opType.startsWith('Reduce') ? input.slice(0, 1) : input;

type Shapes = ReturnType<typeof shapesByName>;

class Opening {
  readonly #model: ModelLike;
  readonly #graph: GraphProto;
  readonly #place: AxisPlace;
  readonly #name: string;
  readonly #stored: number;
  readonly #names: Set<string>;
  /** Shapes at the stored size, by the names of values. */
  readonly #before: Shapes;
  /** Values that may not be needed any more. */
  readonly #replaced: string[] = [];
  /** The value that has the size of the input. */
  #size: string | undefined;

  constructor(
    { proto, weight, files }: ModelLike,
    places: readonly AxisPlace[],
    name: string,
    stored: number,
  ) {
    const graph = proto.graph!;
    const copied = (values: GraphProto['input']) => values.map((value) => clone(ValueInfoProtoSchema, value));
    this.#graph = Object.assign(create(GraphProtoSchema), graph, {
      node: [...graph.node],
      initializer: [...graph.initializer],
      input: copied(graph.input),
      output: copied(graph.output),
      valueInfo: [],
    });
    this.#model = {
      proto: Object.assign(create(ModelProtoSchema), proto, { graph: this.#graph }),
      weight,
      files,
    };
    for (const value of this.#graph.input)
      for (const { input, axis } of places)
        if (value.name === input) dimensionsOf(value)[axis]!.value = dimensionValue(name);
    for (const dim of this.#graph.output.flatMap(dimensionsOf))
      if (dim.value.case === 'dimValue' && Number(dim.value.value) === stored)
        dim.value = { case: undefined };
    [this.#place, this.#name, this.#stored] = [places[0]!, name, stored];
    this.#names = valueNames(proto);
    const weights = graph.initializer.map(({ name, dims }) => [name, dims.map(Number)] as const);
    const inferred = inferShapes(this.#model, undefined, new Map([[name, stored]]));
    this.#before = new Map([...shapesByName(inferred), ...weights]);
  }

  run(): GraphProto | string {
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const inferred = inferShapes(this.#model);
      const now = shapesByName(inferred);
      if (this.#retargetAll(now)) continue;
      const met = this.#met(inferred);
      if (met === undefined) return this.#withoutReplaced();
      if (!this.#stretchAll(met, now)) return `${met.where}: ${met.message}`;
    }
    return `Nodes that keep the size ${this.#stored} follow each other.`;
  }

  #met = (inferred: ModelShapes): FixedSize | undefined =>
    fixedSizes(this.#model, inferred).find(({ symbol: of, isLimit }) => of === this.#name && !isLimit);

  #depends = (size: MaybeSize): boolean =>
    size !== undefined && !isNumber(size) && symbolsOf(size).includes(this.#name);

  /** Gives every Reshape that keeps the stored size another target; whether there was one. */
  #retargetAll(now: Shapes): boolean {
    const nodes = this.#graph.node.map((node) => this.#retargeted(node, now) ?? node);
    const isChanged = nodes.some((node, at) => node !== this.#graph.node[at]);
    this.#graph.node = nodes;
    return isChanged;
  }

  #retargeted(node: NodeProto, now: Shapes): NodeProto | undefined {
    const [data = '', target = ''] = node.input;
    const [from, to, was] = [
      now.get(data),
      now.get(node.output[0] ?? ''),
      this.#before.get(node.output[0] ?? ''),
    ];
    if (node.opType !== 'Reshape' || target === '' || was === undefined) return undefined;
    if (from?.some(this.#depends) !== true) return undefined;
    // Elements keep their order: as many stand before the samples as in the data.
    const before = elementsIn(from.slice(0, from.findIndex(this.#depends)));
    const open = (axis: number) => divideExactly(elementsIn(from), elementsIn(was.toSpliced(axis, 1)));
    const axes = [...was.keys()].filter(
      (axis) =>
        isNumber(was[axis]) && equals(elementsIn(was.slice(0, axis)), before) && this.#depends(open(axis)),
    );
    const axis = axes.find((each) => was[each] === this.#stored) ?? axes.find((each) => each === 0);
    if (axis === undefined || this.#depends(to?.[axis])) return undefined;
    const sizes = was.map((size, at) => {
      if (at === axis) return equals(from[at], open(axis)) ? 0 : -1;
      return isNumber(size) ? size : equals(from[at], size) ? 0 : -1;
    });
    if (sizes.filter((size) => size === -1).length > 1) return undefined;
    if (!sizes.includes(-1)) sizes[axis] = -1;
    const changed = clone(NodeProtoSchema, node);
    changed.attribute = changed.attribute.filter(({ name }) => name !== 'allowzero');
    this.#replace(changed, 1, this.#constant(sizes));
    return changed;
  }

  /** Stretches what agrees with the stored size to the size of the input; whether that was all that kept it. */
  #stretchAll(met: FixedSize, now: Shapes): boolean {
    const makers = new GraphUses(this.#graph);
    const sources = new Map<string, NodeProto | TensorProto>();
    const values = new Set(met.values);
    for (const value of values) {
      const was = this.#before.get(value);
      if (!was?.includes(this.#stored) || now.get(value)?.some(this.#depends)) continue;
      const [maker, weight] = [makers.producers.get(value), makers.constants.get(value)];
      if (weight !== undefined) sources.set(value, weight);
      else if (maker !== undefined && sizedBy[maker.opType] !== undefined) sources.set(value, maker);
      else for (const name of maker === undefined ? [] : dataOf(maker)) values.add(name);
    }
    // Of several axes of that size, one is the batch.
    const choices = [...sources].map(([value, source]) => {
      const was = this.#before.get(value) ?? [];
      return { value, source, axes: [...was.keys()].filter((axis) => was[axis] === this.#stored) };
    });
    const most = choices.reduce((all, { axes }) => all * axes.length, choices.length === 0 ? 0 : 1);
    for (let choice = 0; choice < Math.min(most, MOST_CHOICES); choice++) {
      const { node, initializer, input } = this.#graph;
      const size = this.#size;
      let rest = choice;
      for (const { value, source, axes } of choices) {
        const axis = axes[rest % axes.length]!;
        rest = Math.floor(rest / axes.length);
        if ('opType' in source) this.#stretch(source, axis);
        else this.#repeat(value, source, axis);
      }
      if (this.#graph.node !== node && this.#met(inferShapes(this.#model))?.where !== met.where) return true;
      Object.assign(this.#graph, { node, initializer, input });
      this.#size = size;
    }
    return false;
  }

  #stretch(node: NodeProto, axis: number): void {
    const was = this.#before.get(node.output[0] ?? '') ?? [];
    const data = node.opType === 'ConstantOfShape' ? [] : (this.#before.get(node.input[0] ?? '') ?? []);
    const own = data.length < was.length ? [...new Array(was.length - data.length).fill(1), ...data] : data;
    if (data.length > 0 && own[axis] !== 1) return;
    const target = was.map((size, at) => {
      if (node.opType === 'Tile') return equals(size, own[at]) ? 1 : divideExactly(size, own[at]);
      return isNumber(size) ? size : equals(size, own[at]) ? 1 : undefined;
    });
    const changed = clone(NodeProtoSchema, node);
    const operand = sizedBy[node.opType]!;
    this.#replace(changed, operand, this.#sizes(target, axis, node.input[operand]!));
    this.#graph.node = this.#graph.node.map((each) => (each === node ? changed : each));
  }

  /** A constant whose rows along an axis are all the same becomes one of them, which is stretched. */
  #repeat(value: string, weight: TensorProto, axis: number): void {
    const shape = weight.dims.map(Number);
    const { dtype, byteLength } = this.#model.weight(weight);
    if (dtype === 'string' || byteLength > MOST_BYTES) return;
    const bytes = Buffer.from(bytesOf(this.#model.weight(weight)));
    const rows = shape.slice(0, axis + 1).reduce((all, size) => all * size, 1);
    const row = (at: number) => bytes.subarray((at * bytes.length) / rows, ((at + 1) * bytes.length) / rows);
    const first = (at: number) => at - (at % this.#stored);
    const all = [...new Array(rows).keys()];
    if (!Number.isInteger(bytes.length / rows) || all.some((at) => !row(at).equals(row(first(at))))) return;
    const kept = Buffer.concat(all.filter((at) => at === first(at)).map(row));
    const name = freeName(this.#names, `${value}_row`);
    const { node, initializer, input } = this.#graph;
    const stored = storedTensor(name, { dtype, shape: shape.with(axis, 1), bytes: kept });
    this.#graph.initializer = [...initializer.filter((each) => each !== weight), stored];
    this.#graph.node = node.filter(({ output }) => !output.includes(value));
    this.#graph.input = input.filter((each) => each.name !== value);
    this.#make('Expand', [name, this.#sizes(shape, axis, '')], '', value);
  }

  /** The name of sizes of which one is that of the input; those that are not known are taken of `operand`. */
  #sizes(sizes: readonly MaybeSize[], axis: number, operand: string): string {
    if (this.#size === undefined) {
      const { input, axis: place } = this.#place;
      const shape = this.#make('Shape', [input], `${input}_shape`);
      this.#size = this.#make('Gather', [shape, this.#constant([place])], `${this.#name}_size`);
    }
    const part = (from: number, to: number) => {
      const values = sizes.slice(from, to);
      if (values.length === 0) return [];
      if (values.every(isNumber)) return [this.#constant(values)];
      return [this.#make('Slice', [operand, ...[from, to, 0].map((at) => this.#constant([at]))], 'sizes')];
    };
    const parts = [...part(0, axis), this.#size, ...part(axis + 1, sizes.length)];
    return parts.length === 1 ? this.#size : this.#make('Concat', parts, 'sizes');
  }

  /** Adds a node and returns the name of its result. */
  #make(
    opType: string,
    input: readonly string[],
    stem: string,
    output = freeName(this.#names, stem),
  ): string {
    const attribute = /^(?:Gather|Concat)$/.test(opType) ? [integerAttribute('axis', 0)] : [];
    const named = { opType, name: output, input: [...input], output: [output], attribute };
    this.#graph.node = [create(NodeProtoSchema, named), ...this.#graph.node];
    return output;
  }

  #constant(values: readonly number[]): string {
    const name = freeName(this.#names, 'sizes');
    const tensor = tensorFrom('int64', [values.length], BigInt64Array.from(values.map(BigInt)));
    this.#graph.initializer = [...this.#graph.initializer, storedTensor(name, tensor)];
    return name;
  }

  #replace(node: NodeProto, index: number, name: string): void {
    this.#replaced.push(node.input[index]!);
    node.input[index] = name;
  }

  /** The graph without sizes that nothing reads any more. */
  #withoutReplaced(): GraphProto {
    const graph = this.#graph;
    for (const name of this.#replaced) {
      const uses = new GraphUses(graph);
      if (uses.readers(name).length > 0 || graph.output.some((output) => output.name === name)) continue;
      const maker = uses.producers.get(name);
      if (maker !== undefined && maker.output.length > 1) continue;
      this.#replaced.push(...(maker?.input ?? []));
      graph.node = graph.node.filter((node) => node !== maker);
      graph.initializer = graph.initializer.filter((tensor) => tensor.name !== name);
    }
    graph.node = [...inOrder(graph.node).nodes];
    return graph;
  }
}
