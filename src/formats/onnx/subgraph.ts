import { type Dtype, dtypes } from '../tensor/dtype.js';
import { type Dimension, valueInfo } from './builder.js';
import { inferDtypes } from './dtype-inference.js';
import { GraphUses, nodesReached, usedNames } from './graph.js';
import type { ModelLike } from './model.js';
import type { GraphProto, ModelProto, NodeProto } from './onnx_pb.js';
import { dimensionsText } from './shapes/cost-facts.js';
import { inferShapes, shapesByName } from './shapes/infer.js';
import { interfaceOf } from './value-facts.js';

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
