import { create } from '@bufbuild/protobuf';
import { attributeOf } from '../../../formats/onnx/attributes.js';
import { type GraphTypes, inferDtypes } from '../../../formats/onnx/dtype-inference.js';
import {
  definedNames,
  GraphUses,
  isOnnxDomain,
  rearrangers,
  visitMainGraphs,
} from '../../../formats/onnx/graph.js';
import {
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type GraphProto,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
} from '../../../formats/onnx/onnx_pb.js';
import { inferShapes, type ModelShapes } from '../../../formats/onnx/shapes/infer.js';
import { equals, isNumber, type MaybeSize, type Shape } from '../../../formats/onnx/shapes/size.js';
import { storedValue } from '../../../formats/onnx/shapes/stored-value.js';
import type { ValueType } from '../../../formats/onnx/values.js';
import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';
import { integerTensor, type Tensor } from '../../../formats/tensor/tensor.js';
import type { Editing } from '../edited-model.js';

/** What is known of a graph, or of a body, before one round of folding. Rules read it; they change no node that it has. */
export class Round extends GraphUses {
  readonly editing: Editing;
  readonly graph: GraphProto;
  readonly types: ReadonlyMap<string, ValueType>;
  readonly outputs: ReadonlySet<string>;
  /** Weights that nodes see: those of the graph, and for a body those around it. */
  readonly weights: readonly TensorProto[];
  readonly #outer: Round | undefined;
  readonly #bodies: GraphTypes['bodies'];
  readonly #own: ReadonlySet<string>;
  readonly #shapes = new Map<string, Shape | undefined>();
  readonly #elements = new Map<string, readonly MaybeSize[] | undefined>();
  readonly #taken: Set<string>;

  private constructor(
    editing: Editing,
    graph: GraphProto,
    outer: Round | undefined,
    { nodes, inputs }: ModelShapes,
  ) {
    super(graph);
    this.editing = editing;
    this.graph = graph;
    this.#outer = outer;
    this.#taken = outer === undefined ? new Set(editing.names()) : outer.#taken;
    this.#own = definedNames({ graph, nodes: graph.node, function: undefined });
    const around = outer?.weights.filter(({ name }) => !this.#own.has(name)) ?? [];
    this.weights = [...around, ...graph.initializer];
    for (const tensor of around) this.constants.set(tensor.name, tensor);
    const { types, bodies } =
      (outer === undefined ? inferDtypes(editing.model.proto).graph : outer.#bodies.get(graph)) ?? untyped;
    this.#bodies = bodies;
    this.types = outer === undefined ? types : new Map([...outer.types, ...types]);
    this.outputs = new Set(graph.output.map(({ name }) => name));
    if (outer === undefined) for (const [name, shape] of inputs) this.#shapes.set(name, shape);
    for (const node of graph.node)
      for (const [index, name] of node.output.entries()) {
        this.#shapes.set(name, nodes.get(node)?.shapes[index]);
        this.#elements.set(name, nodes.get(node)?.elements[index]);
      }
  }

  /** One of each graph, those of bodies before that of the graph around them. */
  static all(editing: Editing): readonly Round[] {
    const shapes = inferShapes(editing.model);
    const rounds = new Map<GraphProto | undefined, Round>();
    for (const { graph, parent } of visitMainGraphs(editing.model.proto))
      rounds.set(graph, new Round(editing, graph!, rounds.get(parent?.graph), shapes));
    return [...rounds.values()].reverse();
  }

  shape(name: string | undefined): Shape | undefined {
    const stored = this.constants.get(name ?? '');
    if (stored !== undefined) return stored.dims.map(Number);
    return this.#own.has(name ?? '') ? this.#shapes.get(name!) : this.#outer?.shape(name);
  }

  /** The elements of a small value, as far as sizes decide them. */
  elements(name: string | undefined): readonly MaybeSize[] | undefined {
    const stored = this.constants.get(name ?? '');
    return stored === undefined
      ? this.#elements.get(name ?? '')
      : storedValue(this.editing.model, stored).elements;
  }

  /** The same of a constant, all of them numbers. */
  numbers(name: string | undefined): readonly number[] | undefined {
    return this.#numbersOf(this.constants.get(name ?? ''));
  }

  #numbersOf(stored: TensorProto | undefined): readonly number[] | undefined {
    const elements = stored && storedValue(this.editing.model, stored).elements;
    return elements?.every(isNumber) === true ? elements : undefined;
  }

  /** The one number that a value is everywhere, whatever its size. */
  only(name: string | undefined): number | undefined {
    const same = (values: readonly (number | undefined)[] = []) =>
      values.every((value) => value === values[0]) ? values[0] : undefined;
    if (this.constants.has(name ?? '')) return same(this.numbers(name));
    const maker = this.producers.get(name ?? '');
    if (maker === undefined || !isOnnxDomain(maker.domain)) return undefined;
    if (maker.opType === 'Concat') return same([...new Set(maker.input)].map((each) => this.only(each)));
    if (rearrangers.includes(maker.opType)) return this.only(maker.input[0]);
    if (maker.opType !== 'ConstantOfShape') return undefined;
    const value = attributeOf(maker, 'value')?.t;
    return value === undefined ? 0 : same(this.#numbersOf(value));
  }

  isSameShape(a: string | undefined, b: string | undefined): boolean {
    const [left, right] = [this.shape(a), this.shape(b)];
    return (
      left !== undefined &&
      left.length === right?.length &&
      left.every((size, axis) => equals(size, right[axis]))
    );
  }

  /** The node of one of some operators that makes a value which nothing else reads. */
  onlyMaker(name: string | undefined, ...operators: readonly string[]): NodeProto | undefined {
    const maker = this.producers.get(name ?? '');
    const isOne = maker !== undefined && maker.domain === '' && operators.includes(maker.opType);
    return isOne && this.readers(name!).length === 1 && !this.outputs.has(name!) ? maker : undefined;
  }

  /** A name that nothing has yet. */
  name(stem: string): string {
    let name = stem;
    for (let count = 2; this.#taken.has(name); count++) name = `${stem}_${count}`;
    this.#taken.add(name);
    return name;
  }

  /** A new weight; `integers` makes one of whole numbers. */
  store(stem: string, tensor: Tensor): string {
    return this.editing.storeWeight(this.name(stem), tensor, this.graph);
  }

  integers(stem: string, values: readonly number[]): string {
    return this.store(stem, integerTensor('int64', [values.length], values));
  }

  /** The same node of other inputs, outputs and attributes. */
  made(
    node: NodeProto,
    changes: { input?: string[]; output?: string[]; ints?: Readonly<Record<string, readonly number[]>> },
  ): NodeProto {
    const { ints = {}, ...values } = changes;
    const kept = node.attribute.filter(({ name }) => !(name in ints));
    const set = Object.entries(ints).map(([name, list]) =>
      create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.INTS, ints: list.map(BigInt) }),
    );
    const { opType, domain, name, output, input } = node;
    return create(NodeProtoSchema, {
      opType,
      domain,
      name,
      input,
      output,
      ...values,
      attribute: [...kept, ...set],
    });
  }

  /** A node that computes a new value; returned with its name. */
  node(opType: string, stem: string, input: string[]): { readonly node: NodeProto; readonly name: string } {
    const name = this.name(stem);
    return { node: create(NodeProtoSchema, { opType, name, input, output: [name] }), name };
  }
}

/** What becomes of a node: its first output is another value, or other nodes make it; undefined where it stays. `rounds`: the last bit of results may be another. */
export type Rewrite =
  | (({ readonly alias: string } | { readonly nodes: readonly NodeProto[] }) & { readonly rounds?: true })
  | undefined;
export type Rule = (node: NodeProto, round: Round) => Rewrite;

const untyped: GraphTypes = { types: new Map(), bodies: new Map() };

export const intsOf = (node: NodeProto, name: string): readonly number[] | undefined =>
  attributeOf(node, name)?.ints.map(Number);
export const intOf = (node: NodeProto, name: string, otherwise: number): number =>
  Number(attributeOf(node, name)?.i ?? otherwise);
/** Whether an optional input or output is there. */
export const isPassed = (name: string | undefined): name is string => name !== undefined && name !== '';
export const dtypeIs = (type: ValueType | undefined): type is Dtype => type !== undefined && type in dtypes;
