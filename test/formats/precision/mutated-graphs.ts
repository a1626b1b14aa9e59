import fc from 'fast-check';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { type GraphTypes, inferDtypes } from '../../../src/formats/onnx/dtype-inference.js';
import { visitMainGraphs } from '../../../src/formats/onnx/graph.js';
import type { GraphProto, ModelProto, ValueInfoProto } from '../../../src/formats/onnx/onnx_pb.js';
import { onnxNumber } from '../../../src/formats/onnx/values.js';
import { type Dtype, dtypes, packedBytes } from '../../../src/formats/tensor/dtype.js';

/** Declares every value whose type is known, in bodies too, as shape inference does; shapes stay open. */
export function declareAll(model: ModelProto): void {
  if (model.graph !== undefined) declareIn(model.graph, inferDtypes(model).graph);
}

function declareIn(graph: GraphProto, { types, bodies }: GraphTypes): void {
  const declared = new Set([...graph.input, ...graph.output, ...graph.valueInfo].map(({ name }) => name));
  for (const [name, type] of types)
    if (!declared.has(name) && type in dtypes) graph.valueInfo.push(declaration(name, type as Dtype, null));
  for (const [body, inside] of bodies) declareIn(body, inside);
}

function declaration(name: string, dtype: Dtype, dims: readonly number[] | null): ValueInfoProto {
  const g = new GraphBuilder('g');
  g.value(name, dtype, dims);
  return buildModel(g).proto.graph!.valueInfo[0]!;
}

const oddNames = ['constructor', 'toString', 'hasOwnProperty', '__proto__', 'valueOf', '', 'NoSuchOperator'];
const someTypes = ['float32', 'float16', 'bfloat16', 'float64', 'int64', 'int8', 'bool'] as const;

/** One change of a graph's structure. `pick` chooses among what there is; a change that finds nothing to change does nothing. */
type Change = (model: ModelProto, graph: GraphProto, pick: <T>(list: readonly T[]) => T | undefined) => void;

const changes: readonly Change[] = [
  function shuffleNodes(_, graph, pick) {
    const left = [...graph.node];
    graph.node = graph.node.flatMap(() => {
      const node = pick(left);
      return node === undefined ? [] : left.splice(left.indexOf(node), 1);
    });
  },
  function dropOutput({ graph }, _, pick) {
    const output = pick(graph?.output.slice(1) ?? []);
    if (graph !== undefined) graph.output = graph.output.filter((one) => one !== output);
  },
  function dropNode(_, graph, pick) {
    const node = pick(graph.node);
    graph.node = graph.node.filter((one) => one !== node);
  },
  function changeDimensions(_, graph, pick) {
    const type = pick([...graph.input, ...graph.output, ...graph.valueInfo])?.type?.value;
    if (type?.case !== 'tensorType') return;
    const dim = pick(type.value.shape?.dim ?? []);
    const size = pick([-1, 0, undefined]);
    if (dim === undefined) delete type.value.shape;
    else dim.value = size === undefined ? { case: undefined } : { case: 'dimValue', value: BigInt(size) };
  },
  function changeDeclaredType(_, graph, pick) {
    const type = pick([...graph.input, ...graph.output, ...graph.valueInfo])?.type?.value;
    if (type?.case === 'tensorType') type.value.elemType = onnxNumber(pick(someTypes) ?? 'float32');
  },
  function declareValueOfOtherGraph(model, graph, pick) {
    const names = [...visitMainGraphs(model)].flatMap(({ nodes }) => nodes.flatMap(({ output }) => output));
    graph.valueInfo.push(declaration(pick([...names, 'nobody']) ?? '', 'float32', [2, 8]));
  },
  function changeWeightType(_, graph, pick) {
    const tensor = pick(graph.initializer);
    const dtype = pick(someTypes);
    if (tensor === undefined || dtype === undefined || tensor.externalData.length > 0) return;
    tensor.dataType = onnxNumber(dtype);
    const elements = tensor.dims.reduce((product, dim) => product * Number(dim), 1);
    tensor.rawData = new Uint8Array(packedBytes(dtype, elements));
  },
  function changeOperator(_, graph, pick) {
    const node = pick(graph.node);
    const name = pick([...oddNames, ...graph.node.map(({ opType }) => opType)]);
    if (node !== undefined && name !== undefined) node.opType = name;
  },
  function changeDomain(model, graph, pick) {
    const node = pick(graph.node);
    if (node !== undefined) node.domain = pick([...oddNames, 'com.microsoft', 'ai.onnx']) ?? '';
    const opset = pick(model.opsetImport);
    if (opset !== undefined) opset.version = BigInt(pick([0, 1, 8, 11, 13, 17, 22, 99]) ?? 17);
  },
  function rewire(model, graph, pick) {
    const node = pick(graph.node);
    const names = [...visitMainGraphs(model)].flatMap(({ nodes }) => nodes.flatMap(({ output }) => output));
    const name = pick([...names, 'x', '']);
    if (node !== undefined && name !== undefined) node.input[pick([...node.input.keys()]) ?? 0] = name;
  },
  function chooseOtherType(_, graph, pick) {
    const attribute = pick(
      graph.node.flatMap((node) => node.attribute.filter(({ name }) => /^(to|dtype)$/.test(name))),
    );
    if (attribute !== undefined) attribute.i = BigInt(onnxNumber(pick(someTypes) ?? 'float32'));
  },
];

/** A few changes of a model in place, each of a graph or body of it. */
export const mutation: fc.Arbitrary<(model: ModelProto) => void> = fc
  .tuple(
    fc.array(fc.constantFrom(...changes), { minLength: 1, maxLength: 3 }),
    fc.array(fc.nat(1000), { minLength: 64, maxLength: 64 }),
  )
  .map(([list, numbers]) => (model) => {
    let at = 0;
    const pick = <T>(among: readonly T[]): T | undefined =>
      among[(numbers[at++ % numbers.length] ?? 0) % Math.max(1, among.length)];
    for (const change of list) {
      const graph = pick([...visitMainGraphs(model)].flatMap((view) => view.graph ?? []));
      if (graph !== undefined) change(model, graph, pick);
    }
  });
