import { createHash } from 'node:crypto';
import { clearField, toBinary } from '@bufbuild/protobuf';
import { sha256 } from '../../base/files/digest.js';
import { type FileStamp, stampOf, unchanged } from '../../base/files/file-memo.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import {
  isMain,
  opsets,
  qualifiedOpType,
  type TensorPlace,
  usedNames,
  visitGraphs,
  visitMainGraphs,
  visitNodes,
  visitTensors,
} from '../../formats/onnx/graph.js';
import { parsedOperators } from '../../formats/onnx/lint/operators.js';
import { editModel, type OnnxModel } from '../../formats/onnx/model.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import {
  type AttributeProto,
  AttributeProtoSchema,
  FunctionProtoSchema,
  GraphProtoSchema,
  type ModelProto,
  ModelProtoSchema,
  NodeProtoSchema,
  type TensorProto,
  TensorProtoSchema,
  type ValueInfoProto,
  ValueInfoProtoSchema,
} from '../../formats/onnx/onnx_pb.js';
import { interfaceOf } from '../../formats/onnx/values.js';
import type { Weight } from '../../formats/onnx/weight.js';
import { MARKER_FIELD } from '../../formats/onnx/wire.js';
import type { FormatId } from '../../formats/precision/formats/index.js';
import { drawsNumbers } from '../../formats/precision/operator-traits.js';
import { precisionsOf } from '../../formats/precision/precisions-of-model.js';
import { dtypeFromOnnx, dtypes } from '../../formats/tensor/dtype.js';
import type { ModelGraph } from './passport.js';

const READ_BYTES = 4 << 20;

/**
 * Digest of what a model computes, as 64 hex digits: SHA-256 over its messages in canonical order, each tensor's values replaced by
 * their SHA-256 (little-endian, packed). The same wherever weights are stored (raw_data, float_data, external files) and however the
 * file was encoded; one changed weight, name, attribute or shape changes it.
 * Left out, because a plan does not depend on it and exporters write dates and source paths there: doc_string, metadata_props,
 * producer, model_version and domain of the model.
 *
 * The model's decoded messages are changed by this (they are the canonical form afterwards), so it takes a model of its own.
 * Streams every weight once. Throws TF_ONNX_TENSOR_INVALID and TF_ONNX_EXTERNAL_… when weights are not all there, TF_CANCELLED.
 */
export async function digestModel(
  model: OnnxModel,
  work: WorkContext = {},
): Promise<{ readonly digest: string; readonly weightBytes: number }> {
  const weightBytes = await digestWeights(model, work, ({ tensor }, values) => replaceValues(tensor, values));
  dropRemarks(model);
  return { digest: sha256(toBinary(ModelProtoSchema, model.proto)), weightBytes };
}

/** Streams every weight of a model once, and hands on the SHA-256 of its values. Returns their bytes. Throws as `digestModel`. */
async function digestWeights(
  model: OnnxModel,
  { emit, signal }: WorkContext,
  take: (place: TensorPlace, values: Buffer) => void,
): Promise<number> {
  const weights = [...visitTensors(model.proto)].map((place) => ({
    place,
    weight: model.weight(place.tensor),
  }));
  const weightBytes = weights.reduce((sum, { weight }) => sum + weight.byteLength, 0);
  let done = 0;
  for (const { place, weight } of weights) {
    const { name } = place.tensor;
    take(place, digestWeight(weight, signal));
    done += weight.byteLength;
    if (weight.byteLength >= READ_BYTES) {
      emit?.({ type: 'progress', phase: 'identify', done, total: weightBytes, detail: name });
      // Lets timers (heartbeats, the live line) and Ctrl-C through between large weights.
      await new Promise(setImmediate);
    }
  }
  return weightBytes;
}

/** The digest of a model file's content: see `digestModel`. Throws what opening and reading the model throw, TF_CANCELLED. */
export const digestModelFile = (path: string, work?: WorkContext): Promise<string> =>
  editModel(path, async (model) => (await digestModel(model, work)).digest);

function digestWeight(weight: Weight, signal: AbortSignal | undefined): Buffer {
  const hash = createHash('sha256');
  for (const chunk of weight.chunks(READ_BYTES)) {
    hash.update(chunk);
    throwIfCancelled(signal, 'reading the weights of the model');
  }
  return hash.digest();
}

/** Turns a tensor into its canonical form: name, type, dimensions, and the digest of its values as raw_data. */
function replaceValues(tensor: TensorProto, digest: Uint8Array): void {
  const { dims, dataType, name } = tensor;
  const unknown = tensor.$unknown?.filter(({ no }) => no !== MARKER_FIELD);
  for (const field of TensorProtoSchema.fields) clearField(tensor, field);
  tensor.dims = dims;
  tensor.dataType = dataType;
  tensor.name = name;
  tensor.rawData = Uint8Array.from(digest);
  if (unknown !== undefined && unknown.length > 0) tensor.$unknown = unknown;
  else delete tensor.$unknown;
}

/** Clears what no plan depends on. */
function dropRemarks({ proto }: OnnxModel): void {
  const model = ModelProtoSchema.field;
  for (const field of [
    model.docString,
    model.metadataProps,
    model.producerName,
    model.producerVersion,
    model.modelVersion,
    model.domain,
  ]) {
    clearField(proto, field);
  }
  for (const view of visitGraphs(proto)) {
    if (view.graph !== undefined) {
      clearField(view.graph, GraphProtoSchema.field.docString);
      clearField(view.graph, GraphProtoSchema.field.metadataProps);
      for (const info of [...view.graph.input, ...view.graph.output, ...view.graph.valueInfo]) {
        dropValueRemarks(info);
      }
    }
    if (view.function !== undefined) {
      clearField(view.function, FunctionProtoSchema.field.docString);
      clearField(view.function, FunctionProtoSchema.field.metadataProps);
      view.function.valueInfo.forEach(dropValueRemarks);
      view.function.attributeProto.forEach(dropAttributeRemarks);
    }
  }
  for (const { node } of visitNodes(proto)) {
    clearField(node, NodeProtoSchema.field.docString);
    clearField(node, NodeProtoSchema.field.metadataProps);
    node.attribute.forEach(dropAttributeRemarks);
  }
}

const dropAttributeRemarks = (attribute: AttributeProto) =>
  clearField(attribute, AttributeProtoSchema.field.docString);

function dropValueRemarks(info: ValueInfoProto): void {
  clearField(info, ValueInfoProtoSchema.field.docString);
  clearField(info, ValueInfoProtoSchema.field.metadataProps);
}

/** The facts of a model that a build needs before it starts. */
export interface ModelContent {
  /** Digest of the content (`digestModel`). */
  readonly digest: string;
  /** Bytes of the model file and its external files together. */
  readonly bytes: number;
  readonly weightBytes: number;
  readonly inputs: readonly ValueFacts[];
  readonly outputs: readonly ValueFacts[];
  /** The formats among its types, the one with the widest tolerance first. */
  readonly precisions: readonly FormatId[];
  /** Number of uses of each operator that TensorRT's parser has to import by its name. */
  readonly operators: Readonly<Record<string, number>>;
  /** Of the ONNX domain; null where the model states none. */
  readonly opset: number | null;
}

/** The facts that decide which TensorRT builds a model. */
export const buildFactsOf = (model: OnnxModel): Pick<ModelContent, 'precisions' | 'operators' | 'opset'> => ({
  precisions: precisionsOf(model.proto),
  operators: parsedOperators(model),
  opset: opsets(model.proto)['ai.onnx'] ?? null,
});

/** Reads a model as a whole, with the stamps of its files from before. Throws TF_FILE_UNREADABLE when one of them changes meanwhile. */
export async function readModel(
  path: string,
  work: WorkContext,
): Promise<{ readonly content: ModelContent; readonly stamps: readonly FileStamp[] }> {
  return editModel(path, async (model) => {
    const { inputs, outputs } = interfaceOf(model.proto);
    const facts = buildFactsOf(model);
    // Finding every weight opens every external file, so that all can be stamped before the first is read.
    for (const { tensor } of visitTensors(model.proto)) model.weight(tensor);
    const stamps = model.files().flatMap((file) => stampOf(file) ?? []);
    const { digest, weightBytes } = await digestModel(model, work);
    if (!unchanged(stamps)) {
      throw new TrtforgeError('TF_FILE_UNREADABLE', `${path} was changed while it was read.`, {
        remedy: 'Run the command again once nothing writes to the model any more.',
      });
    }
    const bytes = stamps.reduce((sum, { size }) => sum + Number(size), 0);
    return { content: { digest, bytes, weightBytes, inputs, outputs, ...facts }, stamps };
  });
}

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
