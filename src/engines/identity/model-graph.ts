import { toBinary } from '@bufbuild/protobuf';
import { sha256 } from '../../base/files/digest.js';
import type { WorkContext } from '../../events.js';
import {
  isMain,
  qualifiedOpType,
  type TensorPlace,
  usedNames,
  visitGraphs,
  visitMainGraphs,
  visitNodes,
} from '../../formats/onnx/graph.js';
import { editModel } from '../../formats/onnx/model.js';
import { type ModelProto, ModelProtoSchema, NodeProtoSchema } from '../../formats/onnx/onnx_pb.js';
import { drawsNumbers } from '../../formats/precision/operator-traits.js';
import { dtypeFromOnnx, dtypes } from '../../formats/tensor/dtype.js';
import { digestWeights, dropRemarks, replaceValues } from './model-digest.js';
import type { ModelGraph } from './passport.js';

const DIGITS = 16;

/** For each node so many digits of its SHA-256: enough to see which differs, where the digest of all shows that one does. */
const NODE_DIGITS = 4;

/** The graph of a model, and its nodes as sentences name them. */
interface NamedGraph {
  readonly graph: ModelGraph;
  readonly names: readonly string[];
}

/** Reads the graph of a model file; streams every weight once. Throws what opening and reading the model throw, TF_CANCELLED. */
export const readModelGraph = async (path: string, work: WorkContext = {}): Promise<ModelGraph> =>
  (await readNamedGraph(path, work)).graph;

/** The same with the names of its nodes. */
export const readNamedGraph = (path: string, work: WorkContext = {}): Promise<NamedGraph> =>
  editModel(path, async (model) => {
    const { proto } = model;
    const used = namesInUse(proto);
    const weights: Record<string, { type: string; values: string }> = {};
    const constants: Record<string, string> = {};
    await digestWeights(model, work, (place, values) => {
      const { tensor } = place;
      const name = weightName(place);
      const isWeight = name !== undefined && used.has(name);
      replaceValues(tensor, isWeight ? new Uint8Array() : values);
      const type = `${dtypeFromOnnx(tensor.dataType)}[${tensor.dims.join(',')}]`;
      const text = values.toString('hex').slice(0, DIGITS);
      if (!isWeight && place.role === 'initializer' && isMain(place.view) && used.has(tensor.name))
        constants[tensor.name] = `${type} ${text}`;
      if (!isWeight) return;
      const known = weights[name];
      // One name in several bodies: the library takes all for one weight.
      weights[name] =
        known === undefined
          ? { type, values: text }
          : { type: `${known.type} ${type}`, values: sha256(known.values + text).slice(0, DIGITS) };
    });
    const folded = normalizationWeights(proto).filter((name) => name in weights);
    const operators: Record<string, number> = {};
    for (const { nodes, graph } of visitMainGraphs(proto)) {
      for (const node of nodes)
        operators[qualifiedOpType(node)] = (operators[qualifiedOpType(node)] ?? 0) + 1;
      if (graph === undefined) continue;
      // What no node uses is in no engine.
      graph.initializer = graph.initializer
        .filter(({ name }) => used.has(name))
        .sort((a, b) => (a.name < b.name ? -1 : 1));
      // Exporters write more or fewer of these; the parser infers its own.
      graph.valueInfo = [];
    }
    dropRemarks(model);
    if (proto.graph !== undefined) proto.graph.name = '';
    const names: string[] = [];
    let digits = '';
    for (const node of nodesOf(proto)) {
      names.push(`${qualifiedOpType(node)} "${node.name || node.output.join(', ')}"`);
      digits += sha256(toBinary(NodeProtoSchema, node)).slice(0, NODE_DIGITS);
    }
    const digest = sha256(toBinary(ModelProtoSchema, proto));
    return { graph: { digest, operators, weights, folded, nodes: digits, constants }, names };
  });

const nodesOf = (proto: ModelProto) => [...visitMainGraphs(proto)].flatMap(({ nodes }) => nodes);

/** The name by which the library knows a weight; undefined for tensors that are part of the graph: integers, attributes, what functions have. */
function weightName({ tensor, role, view, node, attribute }: TensorPlace): string | undefined {
  const dtype = dtypeFromOnnx(tensor.dataType);
  if (!isMain(view) || dtype === undefined || dtypes[dtype].kind !== 'float') return undefined;
  if (role === 'initializer') return tensor.name;
  const isConstant = role === 'attribute' && node?.opType === 'Constant' && attribute?.name === 'value';
  return isConstant ? node.output[0] : undefined;
}

function namesInUse(proto: ModelProto): ReadonlySet<string> {
  const used = new Set<string>();
  for (const { nodes, graph } of visitGraphs(proto)) {
    for (const node of nodes) for (const name of usedNames(node)) used.add(name);
    for (const { name } of graph?.output ?? []) used.add(name);
  }
  return used;
}

const normalizationWeights = (proto: ModelProto): readonly string[] => [
  ...new Set(
    [...visitMainGraphs(proto)].flatMap(({ nodes }) =>
      nodes.flatMap(({ opType, input }) => (opType === 'BatchNormalization' ? input.slice(1) : [])),
    ),
  ),
];

/** In what a graph differs from a recorded one, in sentences without their subject; empty where weights can be replaced. */
export function graphDifferences(
  recorded: ModelGraph,
  { graph: found, names }: NamedGraph,
): readonly string[] {
  if (recorded.digest === found.digest) return [];
  const [own, other] = [recorded.weights, found.weights];
  const missing = Object.keys(own).filter((name) => !(name in other));
  const extra = Object.keys(other).filter((name) => !(name in own));
  const otherTypes = Object.entries(own).flatMap(([name, { type }]) =>
    name in other && other[name]!.type !== type ? [`${name} is ${other[name]!.type}, not ${type}`] : [],
  );
  const counts = [...new Set([...Object.keys(recorded.operators), ...Object.keys(found.operators)])].flatMap(
    (op) => {
      const [before, now] = [recorded.operators[op] ?? 0, found.operators[op] ?? 0];
      return before === now ? [] : [`${now} ${op} for ${before}`];
    },
  );
  const all = [
    missing.length > 0 ? `it lacks the weights ${listed(missing)}` : [],
    extra.length > 0 ? `it has more weights: ${listed(extra)}` : [],
    otherTypes.length > 0 ? listed(otherTypes) : [],
    counts.length > 0 ? `it has ${listed(counts)}` : [],
  ].flat();
  return all.length > 0 ? all : [finerDifference(recorded, found, names)];
}

/** The first node or constant that differs, of graphs with the same operators and weights. Passports of versions before state neither. */
function finerDifference(
  { nodes, constants }: ModelGraph,
  found: ModelGraph,
  names: readonly string[],
): string {
  const changed = Object.entries(found.constants ?? {}).find(([name, value]) => constants?.[name] !== value);
  const digitsAt = (digits: string | undefined, at: number) =>
    digits?.slice(at * NODE_DIGITS, (at + 1) * NODE_DIGITS);
  const node = names.findIndex((_, at) => digitsAt(nodes, at) !== digitsAt(found.nodes, at));
  if (nodes === undefined || constants === undefined)
    return 'names, attributes, connections or integer constants of its nodes differ';
  if (changed !== undefined) return `the values of the integer constant ${changed[0]} differ`;
  if (node >= 0) return `its node ${names[node]} has another name, attribute or connection, or another place`;
  return 'its opset, functions, inputs or outputs differ';
}

const NAMED = 5;

const listed = (names: readonly string[]): string =>
  `${names.slice(0, NAMED).join(', ')}${names.length > NAMED ? ` and ${names.length - NAMED} more` : ''}`;

/** Names of the weights with other values than recorded, that an engine must be able to take by these names. */
export const changedWeights = (recorded: ModelGraph, found: ModelGraph): readonly string[] =>
  Object.entries(found.weights)
    .filter(([name, { values }]) => recorded.weights[name]?.values !== values)
    .map(([name]) => name)
    .filter((name) => !recorded.folded.includes(name));

/** Whether a model draws random numbers, so that two runs differ. */
export function hasRandomNode(proto: ModelProto): boolean {
  for (const { node } of visitNodes(proto))
    if (drawsNumbers(node.opType) || (node.opType === 'Dropout' && node.input.length > 2)) return true;
  return false;
}
