import { createHash } from 'node:crypto';
import { clearField, toBinary } from '@bufbuild/protobuf';
import { sha256 } from '../../base/files/digest.js';
import { type FileStamp, stampOf, unchanged } from '../../base/files/file-memo.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { opsets, type TensorPlace, visitGraphs, visitNodes, visitTensors } from '../../formats/onnx/graph.js';
import { parsedOperators } from '../../formats/onnx/lint/operators.js';
import { editModel, type OnnxModel } from '../../formats/onnx/model.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import {
  type AttributeProto,
  AttributeProtoSchema,
  FunctionProtoSchema,
  GraphProtoSchema,
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
import { precisionsOf } from '../../formats/precision/precisions-of-model.js';

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
export async function digestWeights(
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
export function replaceValues(tensor: TensorProto, digest: Uint8Array): void {
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
export function dropRemarks({ proto }: OnnxModel): void {
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
