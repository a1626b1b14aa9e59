import { type Dtype, dtypes } from '../tensor/dtype.js';
import { type Dimension, valueInfo } from './builder.js';
import { inferDtypes } from './dtype-inference.js';
import { GraphUses, nodesReached, usedNames } from './graph.js';
import type { ModelLike } from './model.js';
import type { GraphProto, ModelProto, NodeProto } from './onnx_pb.js';
import { inferShapes, shapesByName } from './shapes/infer.js';
import { dimensionsText } from './shapes/size.js';
import { interfaceOf } from './values.js';

/** A value at the border of a part; its dimensions are sizes, symbols, or null where they are open; null leaves its rank open. */
export interface BorderValue {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly Dimension[] | null;
}

/** The values of a graph as inputs and outputs are declared, in their inferred types and shapes; undefined for a name that it has not, and a type that no tensor has. */
export function borderValues(model: ModelLike): (name: string) => BorderValue | undefined {
  const { types } = inferDtypes(model.proto).graph;
  const { inputs, outputs } = interfaceOf(model.proto);
  const inferred = shapesByName(inferShapes(model));
  const declared = new Map([...inputs, ...outputs].map(({ name, shape }) => [name, shape]));
  return (name) => {
    const type = types.get(name);
    if (type === undefined || !(type in dtypes)) return undefined;
    return { name, dtype: type as Dtype, shape: declared.get(name) ?? dimensionsText(inferred.get(name)) };
  };
}

/** The values that a part of a graph reads from outside (initializers apart), and those of it read outside. */
export function borderOf(
  graph: GraphProto,
  part: ReadonlySet<NodeProto>,
): { readonly inputs: readonly string[]; readonly outputs: readonly string[] } {
  const stored = new Set(graph.initializer.map(({ name }) => name));
  const made = new Set([...part].flatMap(({ output }) => output));
  const read = new Set([...part].flatMap(usedNames));
  const readOutside = new Set([
    ...graph.output.map(({ name }) => name),
    ...graph.node.filter((node) => !part.has(node)).flatMap(usedNames),
  ]);
  return {
    inputs: [...read].filter((name) => name !== '' && !stored.has(name) && !made.has(name)),
    outputs: [...made].filter((name) => name !== '' && readOutside.has(name)),
  };
}

/** The nodes that compute some values, back to where a cut begins. */
export function nodesBetween(
  graph: GraphProto,
  begins: ReadonlySet<string>,
  ends: readonly string[],
): ReadonlySet<NodeProto> {
  const { producers } = new GraphUses(graph);
  const makers = (names: readonly string[]) =>
    names.flatMap((name) => (begins.has(name) ? [] : (producers.get(name) ?? [])));
  return nodesReached(makers(ends), (node) => makers(usedNames(node)));
}

/** Leaves a part of a model's graph with the weights that it reads; what crosses its border becomes its inputs and outputs. Changes `model`. */
export function keepPart(
  model: ModelProto,
  part: ReadonlySet<NodeProto>,
  inputs: readonly BorderValue[],
  outputs: readonly BorderValue[],
): void {
  const { graph } = model;
  if (graph === undefined) return;
  graph.node = graph.node.filter((node) => part.has(node));
  const read = new Set(graph.node.flatMap(usedNames));
  graph.initializer = graph.initializer.filter(({ name }) => read.has(name));
  graph.sparseInitializer = graph.sparseInitializer.filter(({ values }) => read.has(values?.name ?? ''));
  graph.valueInfo = [];
  graph.quantizationAnnotation = graph.quantizationAnnotation.filter(({ tensorName }) =>
    read.has(tensorName),
  );
  model.trainingInfo = [];
  // In versions before, weights are inputs.
  if (model.irVersion < 4n) model.irVersion = 4n;
  graph.input = inputs.map(declared);
  graph.output = outputs.map(declared);
}

/** Makes more values of a graph its outputs. Changes `model`. */
export function addOutputs(model: ModelProto, values: readonly BorderValue[]): void {
  const { graph } = model;
  const known = new Set(graph?.output.map(({ name }) => name));
  graph?.output.push(...values.filter(({ name }) => !known.has(name)).map(declared));
}

const declared = ({ name, dtype, shape }: BorderValue) => valueInfo(name, dtype, shape);

/** Nodes at fault in a model that fails. */
interface Suspected {
  /** Of which one may fail alone, the likeliest first. */
  readonly single: readonly NodeProto[];
  /** That may fail with what lies between and around them. */
  readonly together: readonly NodeProto[];
}

/** Steps around the nodes, until the part fails; then the part is too large to help anybody. */
const RADII = [0, 1, 2, 4, 8];

/** So many nodes are tried alone. */
const MOST_SINGLE = 3;

/** Parts that may fail by themselves, smallest first. */
export function* partsOf(
  graph: GraphProto,
  { single, together }: Suspected,
): Generator<ReadonlySet<NodeProto>> {
  const around = new Neighbourhood(graph);
  for (const node of single.slice(0, MOST_SINGLE)) yield around.closed(new Set([node]));
  if (together.length === 0) return;
  const between = around.between(new Set(together));
  for (const radius of RADII) yield around.closed(around.grown(between, radius));
}

/** The nodes of these names in a graph, and those with such a node in a body. */
export const nodesNamed = (graph: GraphProto, names: readonly string[]): readonly NodeProto[] =>
  graph.node.filter((node) => holdsAny(node, new Set(names)));

/** Whether a node has one of these names, or a body with such a node: it is cut out with its bodies. */
const holdsAny = (node: NodeProto, names: ReadonlySet<string>): boolean =>
  names.has(node.name) ||
  node.attribute.some(({ g, graphs }) =>
    [...(g === undefined ? [] : [g]), ...graphs].some((body) =>
      body.node.some((inner) => holdsAny(inner, names)),
    ),
  );

/** Nodes of a graph with the casts at their border, and with what is computed of weights alone. */
export const closedPart = (graph: GraphProto, nodes: Iterable<NodeProto>): ReadonlySet<NodeProto> =>
  new Neighbourhood(graph).closed(new Set(nodes));

class Neighbourhood extends GraphUses {
  readonly #nodes: readonly NodeProto[];
  readonly #constant = new Map<NodeProto, boolean>();

  constructor(graph: GraphProto) {
    super(graph);
    this.#nodes = graph.node;
  }

  grown(part: ReadonlySet<NodeProto>, steps: number): ReadonlySet<NodeProto> {
    let all = part;
    for (let step = 0; step < steps; step++)
      all = new Set([...all].flatMap((node) => [node, ...this.before(node), ...this.after(node)]));
    return all;
  }

  /** The nodes on all ways from one of the part to another. */
  between(part: ReadonlySet<NodeProto>): ReadonlySet<NodeProto> {
    const after = nodesReached(part, this.after);
    const before = nodesReached(part, this.before);
    return new Set(this.#nodes.filter((node) => after.has(node) && before.has(node)));
  }

  /** With the casts at the border, so that it lies at values of the FP32 model, and with nodes that read nothing but weights. */
  closed(part: ReadonlySet<NodeProto>): ReadonlySet<NodeProto> {
    const all = new Set(part);
    for (const node of all) {
      const sources = this.before(node).filter((maker) => this.#readsWeightsAlone(maker));
      const casts = [...this.before(node), ...this.after(node)].filter(({ opType }) => opType === 'Cast');
      for (const more of [...sources, ...casts]) all.add(more);
    }
    return all;
  }

  #readsWeightsAlone(node: NodeProto): boolean {
    const known = this.#constant.get(node);
    if (known !== undefined) return known;
    const isConstant = usedNames(node).every((name) => {
      const maker = this.producers.get(name);
      return maker === undefined ? name === '' || this.constants.has(name) : this.#readsWeightsAlone(maker);
    });
    this.#constant.set(node, isConstant);
    return isConstant;
  }
}
