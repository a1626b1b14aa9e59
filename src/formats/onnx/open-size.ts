import { clone, create } from '@bufbuild/protobuf';
import { tensorFrom } from '../tensor/values.js';
import { storedTensor } from './builder.js';
import { freeName, GraphUses, valueNames } from './graph.js';
import { type FixedSize, fixedSizes } from './lint/fixed-sizes.js';
import type { ModelLike } from './model.js';
import { integerAttribute } from './node-types.js';
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
import { elementsIn, type Shape } from './shapes/call.js';
import { inferShapes, type ModelShapes } from './shapes/infer.js';
import { divideExactly, equals, isNumber, type MaybeSize, symbolsOf } from './shapes/size.js';
import { dimensionsOf } from './value-facts.js';
import { bytesOf } from './weight.js';

/** The operand that states the size of what comes out, by operator. */
const sizedBy: Readonly<Partial<Record<string, number>>> = { Expand: 1, Tile: 1, ConstantOfShape: 0 };
/** Constants with more bytes are weights. */
const MOST_BYTES = 1 << 24;
/** Each lets sizes through to the next nodes that keep them. */
const MOST_ROUNDS = 500;

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

class Opening {
  readonly #model: ModelLike;
  readonly #graph: GraphProto;
  readonly #place: AxisPlace;
  readonly #name: string;
  readonly #stored: number;
  readonly #names: Set<string>;
  /** Shapes at the stored size, by the names of values. */
  readonly #before: ReadonlyMap<string, Shape>;
  /** Values that may not be needed any more. */
  readonly #replaced: string[] = [];
  /** The value that has the size of the input. */
  #size: string | undefined;
  /** Nodes at the front that make sizes. */
  #made = 0;

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
        if (value.name === input) dimensionsOf(value)[axis]!.value = { case: 'dimParam', value: name };
    for (const dim of this.#graph.output.flatMap(dimensionsOf))
      if (dim.value.case === 'dimValue' && Number(dim.value.value) === stored)
        dim.value = { case: undefined };
    [this.#place, this.#name, this.#stored] = [places[0]!, name, stored];
    this.#names = valueNames(proto);
    this.#before = shapesOf(this.#graph, inferShapes(this.#model, undefined, new Map([[name, stored]])));
  }

  run(): GraphProto | string {
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const inferred = inferShapes(this.#model);
      const now = shapesOf(this.#graph, inferred);
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
  #retargetAll(now: ReadonlyMap<string, Shape>): boolean {
    const nodes = this.#graph.node.map((node) => this.#retargeted(node, now) ?? node);
    const isChanged = nodes.some((node, at) => node !== this.#graph.node[at]);
    this.#graph.node = nodes;
    return isChanged;
  }

  #retargeted(node: NodeProto, now: ReadonlyMap<string, Shape>): NodeProto | undefined {
    const [data = '', target = ''] = node.input;
    const [from, to, was] = [
      now.get(data),
      now.get(node.output[0] ?? ''),
      this.#before.get(node.output[0] ?? ''),
    ];
    if (node.opType !== 'Reshape' || target === '' || from === undefined || was === undefined)
      return undefined;
    if (!from.some(this.#depends)) return undefined;
    // A -1 elsewhere than where the size is stored takes up what it has more.
    if (to?.some(this.#depends) && (was[0] !== this.#stored || to[0] !== this.#stored)) return undefined;
    const open = (axis: number) => divideExactly(elementsIn(from), elementsIn(was.toSpliced(axis, 1)));
    const axes = [...was.keys()].filter((axis) => isNumber(was[axis]) && this.#depends(open(axis)));
    const axis = axes.find((each) => was[each] === this.#stored) ?? axes[0];
    if (axis === undefined) return undefined;
    const sizes = was.map((size, at) => {
      if (at === axis) return equals(from[at], open(axis)) ? 0 : -1;
      return isNumber(size) ? size : equals(from[at], size) ? 0 : -1;
    });
    if (sizes.filter((size) => size === -1).length > 1) return undefined;
    if (!sizes.includes(-1)) sizes[axis] = -1;
    const changed = clone(NodeProtoSchema, node);
    changed.attribute = changed.attribute.filter(({ name }) => name !== 'allowzero');
    this.#replace(changed, 1, this.#constant(`${changed.output[0]}_shape`, sizes));
    return changed;
  }

  /** Stretches what agrees with the stored size to the size of the input; whether that was all that kept it. */
  #stretchAll(met: FixedSize, now: ReadonlyMap<string, Shape>): boolean {
    const makers = new GraphUses(this.#graph);
    const sources = new Set<NodeProto | TensorProto>();
    const values = new Set(met.values);
    for (const value of values) {
      const was = this.#before.get(value);
      if (!was?.includes(this.#stored) || now.get(value)?.some(this.#depends)) continue;
      const [maker, weight] = [
        makers.producers.get(value),
        this.#graph.initializer.find(({ name }) => name === value),
      ];
      if (weight !== undefined) sources.add(weight);
      else if (maker !== undefined && sizedBy[maker.opType] !== undefined) sources.add(maker);
      else for (const name of maker?.input ?? []) values.add(name);
    }
    // Of several axes of that size, one is the batch.
    for (let nth = 0; nth < MOST_AXES && sources.size > 0; nth++) {
      const { node, initializer } = this.#graph;
      const made = [this.#made, this.#size] as const;
      for (const source of sources)
        if ('opType' in source) this.#stretch(source, nth);
        else this.#repeat(source, nth);
      if (this.#graph.node !== node && this.#met(inferShapes(this.#model))?.where !== met.where) return true;
      Object.assign(this.#graph, { node, initializer });
      [this.#made, this.#size] = made;
    }
    return false;
  }

  /** The nth axis of the stored size. */
  #axisOf = (shape: Shape, nth: number): number | undefined =>
    [...shape.keys()].filter((axis) => shape[axis] === this.#stored)[nth];

  #stretch(node: NodeProto, nth: number): void {
    const was = this.#before.get(node.output[0] ?? '') ?? [];
    const data = node.opType === 'ConstantOfShape' ? [] : (this.#before.get(node.input[0] ?? '') ?? []);
    const axis = this.#axisOf(was, nth);
    const own = data.length < was.length ? [...new Array(was.length - data.length).fill(1), ...data] : data;
    if (axis === undefined || (data.length > 0 && own[axis] !== 1)) return;
    const target = was.map((size, at) => {
      if (node.opType === 'Tile') return equals(size, own[at]) ? 1 : divideExactly(size, own[at]);
      return isNumber(size) ? size : equals(size, own[at]) ? 1 : undefined;
    });
    if (!target.every(isNumber)) return;
    const changed = clone(NodeProtoSchema, node);
    this.#replace(changed, sizedBy[node.opType]!, this.#sizes(target, axis));
    this.#graph.node = this.#graph.node.map((each) => (each === node ? changed : each));
  }

  /** A constant whose rows along an axis are all the same becomes one of them, which is stretched. */
  #repeat(weight: TensorProto, nth: number): void {
    const shape = weight.dims.map(Number);
    const axis = this.#axisOf(shape, nth);
    const { dtype, byteLength } = this.#model.weight(weight);
    if (axis === undefined || dtype === 'string' || byteLength > MOST_BYTES) return;
    const bytes = Buffer.from(bytesOf(this.#model.weight(weight)));
    const rows = shape.slice(0, axis + 1).reduce((all, size) => all * size, 1);
    const row = (at: number) => bytes.subarray((at * bytes.length) / rows, ((at + 1) * bytes.length) / rows);
    const first = (at: number) => at - (at % this.#stored);
    const all = [...new Array(rows).keys()];
    if (!Number.isInteger(bytes.length / rows) || all.some((at) => !row(at).equals(row(first(at))))) return;
    const kept = Buffer.concat(all.filter((at) => at === first(at)).map(row));
    const name = freeName(this.#names, `${weight.name}_row`);
    const stored = storedTensor(name, { dtype, shape: shape.with(axis, 1), bytes: kept });
    this.#graph.initializer = this.#graph.initializer.map((each) => (each === weight ? stored : each));
    this.#make('Expand', [name, this.#sizes(shape, axis)], weight.name);
  }

  /** The name of sizes of which one is that of the input. */
  #sizes(sizes: readonly number[], axis: number): string {
    if (this.#size === undefined) {
      const shape = this.#make(
        'Shape',
        [this.#place.input],
        freeName(this.#names, `${this.#place.input}_shape`),
      );
      const at = this.#constant(`${this.#name}_axis`, [this.#place.axis]);
      this.#size = this.#make('Gather', [shape, at], freeName(this.#names, `${this.#name}_size`));
    }
    const part = (values: readonly number[]) =>
      values.length === 0 ? [] : [this.#constant('sizes', values)];
    const parts = [...part(sizes.slice(0, axis)), this.#size, ...part(sizes.slice(axis + 1))];
    return parts.length === 1 ? this.#size : this.#make('Concat', parts, freeName(this.#names, 'sizes'));
  }

  #make(opType: string, input: readonly string[], output: string): string {
    const attribute = opType === 'Shape' || opType === 'Expand' ? [] : [integerAttribute('axis', 0)];
    const node = create(NodeProtoSchema, {
      opType,
      name: output,
      input: [...input],
      output: [output],
      attribute,
    });
    this.#graph.node = this.#graph.node.toSpliced(this.#made++, 0, node);
    return output;
  }

  #constant(stem: string, values: readonly number[]): string {
    const name = freeName(this.#names, stem);
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
    return graph;
  }
}

/** More axes no value of a model has. */
const MOST_AXES = 8;

function shapesOf(graph: GraphProto, { inputs, nodes }: ModelShapes): ReadonlyMap<string, Shape> {
  const made = [...nodes].flatMap(([{ output }, { shapes }]) =>
    output.map((name, at) => [name, shapes[at]] as const),
  );
  const stored = graph.initializer.map(({ name, dims }) => [name, dims.map(Number)] as const);
  return new Map([...made, ...stored, ...inputs].flatMap(([name, shape]) => (shape ? [[name, shape]] : [])));
}
