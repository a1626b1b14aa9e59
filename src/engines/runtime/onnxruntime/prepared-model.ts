import { statSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import type { Setting } from '../../../addon/onnx-runtime.js';
import { removeIfAllowed } from '../../../base/files/files.js';
import { makeScratch } from '../../../base/files/folders.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { assertWellTyped, type GraphTypes, inferDtypes } from '../../../formats/onnx/dtype-inference.js';
import { isExternal } from '../../../formats/onnx/external-data.js';
import { visitNodes, visitTensors } from '../../../formats/onnx/graph.js';
import { lowerIrVersion, NEWEST_LOADED_IR } from '../../../formats/onnx/ir-version.js';
import { editModel, type OnnxModel, wrapsEngine } from '../../../formats/onnx/model.js';
import type { ValueFacts } from '../../../formats/onnx/model-facts.js';
import {
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type GraphProto,
  type ModelProto,
  type NodeProto,
  NodeProtoSchema,
  type TypeProto,
  type ValueInfoProto,
} from '../../../formats/onnx/onnx_pb.js';
import { isPlaceholder } from '../../../formats/onnx/open-dimensions.js';
import { plainDomain } from '../../../formats/onnx/operators.js';
import { interfaceOf, onnxNumber } from '../../../formats/onnx/values.js';
import { writeModel } from '../../../formats/onnx/write.js';
import { inlineFunctions } from '../../../formats/precision/normalise.js';
import { movers } from '../../../formats/precision/operator-traits.js';
import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';
import { isArrayDtype } from '../../../formats/tensor/tensor.js';
import { hasRandomNode } from '../../identity/model-graph.js';
import type { Arithmetic } from '../back-end.js';
import type { Binding } from '../session.js';
import { fp4AsInt8 } from './fp4-codes.js';
import { type OrtPlace, precisionFlags } from './provider-options.js';

type Half = 'float16' | 'bfloat16';

/** Facts of a rounded model. */
export interface Rounding {
  /** Values that are rounded to 16 bits after they are computed in float32. */
  readonly roundedValues: number;
}

const FLOAT32 = onnxNumber('float32');
const HALVES: ReadonlyMap<number, Half> = new Map([
  [onnxNumber('float16'), 'float16'],
  [onnxNumber('bfloat16'), 'bfloat16'],
]);
/** Scatter with a reduction adds; the others hand on values that are rounded already. */
const handsOn = (node: NodeProto): boolean =>
  plainDomain(node.domain) === '' && movers.has(node.opType) && !node.opType.includes('Scatter');

/**
 * Rewrites a model with float16 or bfloat16 values, in place, into one that a float32 runtime computes with the same storage precision:
 * every such value is computed in float32 and then rounded to its 16-bit type by a pair of casts. Inputs and outputs become float32.
 *
 * Why: ONNX Runtime on a CPU has no bfloat16 arithmetic at all, and runs float16 graphs in float32 from end to end (its "precision free" casts),
 * so an overflow inside would go unseen. A GPU keeps values in 16 bits between layers and adds up in float32, which is what this computes.
 *
 * Returns undefined, with the model as it was, when nothing in it is 16 bits wide, or when values cannot all be followed (functions that cannot be inlined).
 */
function roundInFloat32(model: ModelProto): Rounding | undefined {
  if (model.functions.length > 0) inlineFunctions(model);
  if (model.graph === undefined || model.functions.length > 0) return undefined;
  const { graph: types } = inferDtypes(model);
  if (!holdsHalves(types)) return undefined;
  const counter = { roundedValues: 0 };
  roundGraph(model.graph, types, counter);
  return counter;
}

/** Whether no value is 16 bits wide; false as well where values cannot all be followed. */
const isWide = (model: ModelProto): boolean =>
  model.functions.length === 0 && !holdsHalves(inferDtypes(model).graph);

function holdsHalves(types: GraphTypes): boolean {
  for (const type of types.types.values()) if (/\b(b?float16)\b/.test(type)) return true;
  return [...types.bodies.values()].some(holdsHalves);
}

function roundGraph(graph: GraphProto, types: GraphTypes, counter: { roundedValues: number }): void {
  for (const info of [...graph.input, ...graph.output, ...graph.valueInfo]) widenDeclaration(info);
  const casts = storedWeights(graph);
  graph.node = [...casts, ...graph.node.flatMap((node) => roundNode(node, types, counter))];
}

/** Weights stay as they are stored; a cast has each one's old name in float32, once, as the runtime folds it. */
function storedWeights(graph: GraphProto): NodeProto[] {
  const casts: NodeProto[] = [];
  for (const tensor of graph.initializer) {
    if (!HALVES.has(tensor.dataType)) continue;
    const name = tensor.name;
    tensor.name = `${name}__stored`;
    casts.push(cast(tensor.name, name, FLOAT32));
    graph.input = graph.input.filter((input) => input.name !== name);
  }
  return casts;
}

function roundNode(node: NodeProto, types: GraphTypes, counter: { roundedValues: number }): NodeProto[] {
  let hasBody = false;
  for (const { g: body } of node.attribute) {
    const inner = body === undefined ? undefined : types.bodies.get(body);
    if (body === undefined || inner === undefined) continue;
    hasBody = true;
    roundGraph(body, inner, counter);
  }
  if (node.opType === 'SequenceEmpty') widenAttribute(node, 'dtype');
  if (hasBody || handsOn(node)) return [node];
  const after: NodeProto[] = [];
  const isNative = makesHalves(node);
  node.output = node.output.map((name) => {
    const half = types.types.get(name);
    if (half !== 'float16' && half !== 'bfloat16') return name;
    counter.roundedValues++;
    const narrow = `${name}__narrow`;
    after.push(cast(narrow, name, FLOAT32));
    if (isNative) return narrow;
    after.unshift(cast(`${name}__wide`, narrow, onnxNumber(half)));
    return `${name}__wide`;
  });
  return [node, ...after];
}

/** Nodes whose output type is written in an attribute give 16 bits by themselves. */
function makesHalves(node: NodeProto): boolean {
  return node.attribute.some(
    ({ name, i, t }) =>
      (['to', 'dtype', 'output_dtype'].includes(name) && HALVES.has(Number(i))) ||
      (t !== undefined && HALVES.has(t.dataType)),
  );
}

function widenAttribute(node: NodeProto, name: string): void {
  for (const attribute of node.attribute) {
    if (attribute.name === name && HALVES.has(Number(attribute.i))) attribute.i = BigInt(FLOAT32);
  }
}

function widenDeclaration(info: ValueInfoProto): void {
  if (info.type !== undefined) widenType(info.type);
}

function widenType({ value }: TypeProto): void {
  if (value.case === 'tensorType') {
    if (HALVES.has(value.value.elemType)) value.value.elemType = FLOAT32;
  } else if (value.case === 'sequenceType' || value.case === 'optionalType') {
    if (value.value.elemType !== undefined) widenType(value.value.elemType);
  }
}

const cast = (input: string, output: string, to: number): NodeProto =>
  create(NodeProtoSchema, {
    opType: 'Cast',
    name: `${output}/round`,
    input: [input],
    output: [output],
    attribute: [
      create(AttributeProtoSchema, { name: 'to', type: AttributeProto_AttributeType.INT, i: BigInt(to) }),
    ],
  });

/** ONNX Runtime rejects larger files, as protobuf does; it takes the same model with its weights in a file of their own. */
const LARGEST_PROTOBUF = 2 ** 31 - 1;

/** A model as ONNX Runtime can load it. */
export interface PreparedModel {
  /** The model file to load: the user's own, or a copy that is rounded, has no FP4, or has its weights beside it, or its shapes inside. */
  readonly path: string;
  /** Where its external data is; undefined: beside it. */
  readonly weightsFolder: string | undefined;
  readonly inputs: readonly Binding[];
  readonly outputs: readonly Binding[];
  readonly rounding: Rounding | undefined;
  readonly arithmetic: Arithmetic;
  /** Whether values are quantized to float8. */
  readonly isFloat8: boolean;
  /** Whether a node draws random numbers: ONNX Runtime draws the same ones in every session of a process. */
  readonly drawsNumbers: boolean;
  /** Options of the TensorRT provider that the model's types need. */
  readonly precisionFlags: readonly Setting[];
  discard(): void;
}

/**
 * Reads a model, by path, and writes a copy where ONNX Runtime cannot load it as it is; messages call it `given`. Throws TF_SESSION_BINDING, TF_ONNX_GRAPH_INVALID, and what
 * opening and writing a model throws.
 */
export async function prepareModel(
  path: string,
  given: string,
  options: Pick<OrtPlace, 'provider'> & WorkContext & { readonly weightsFolder?: string },
): Promise<PreparedModel> {
  const { weightsFolder } = options;
  return editModel(
    path,
    async (model) => {
      assertWellTyped(path, model.proto);
      const isGpu = (options.provider ?? 'cpu') !== 'cpu';
      const { inputs, outputs } = bindingsOf(given, model);
      const replacements = isGpu ? new Map() : fp4AsInt8(model);
      const rounding = isGpu ? undefined : roundInFloat32(model.proto);
      const plain = !isGpu || isWide(model.proto) ? 'fp32' : 'mixed';
      const computed = rounding === undefined ? plain : 'rounded';
      const arithmetic = wrapsEngine(model.proto) ? 'as-built' : computed;
      const facts = {
        inputs,
        outputs,
        rounding,
        arithmetic,
        isFloat8: quantizesToFloat8(model.proto),
        drawsNumbers: hasRandomNode(model.proto),
        precisionFlags: options.provider === 'tensorrt' ? precisionFlagsOf(model.proto) : [],
      } as const;
      const isTooLarge = statSync(path).size > LARGEST_PROTOBUF;
      const isTooNew = model.proto.irVersion > NEWEST_LOADED_IR;
      if (isTooNew) lowerIrVersion(model.proto);
      const isAsItIs = rounding === undefined && replacements.size === 0 && !isTooNew;
      if (isAsItIs && !isTooLarge && !hasShapesOutside(model.proto))
        return { path, weightsFolder, ...facts, discard: () => {} };
      const folder = makeScratch('model');
      const discard = () => removeIfAllowed(folder);
      const copy = join(folder, 'model.onnx');
      try {
        await writeModel(
          model,
          copy,
          {
            externalData: isTooLarge ? 'always' : 'auto',
            replacements,
            signal: options.signal,
          },
          options.emit,
        );
      } catch (error) {
        discard();
        throw error;
      }
      return { path: copy, weightsFolder: undefined, ...facts, discard };
    },
    { weightsFolder },
  );
}

/** Shapes (an input of Reshape, Expand, …) in another file: ONNX Runtime infers shapes before it reads external data, and rejects the model. */
function hasShapesOutside(proto: ModelProto): boolean {
  for (const { tensor } of visitTensors(proto))
    if (isExternal(tensor) && tensor.dataType === dtypes.int64.onnx && tensor.dims.length <= 1) return true;
  return false;
}

const float8: ReadonlySet<number> = new Set(
  Object.entries(dtypes).flatMap(([name, { onnx }]) => (name.startsWith('float8') ? [onnx as number] : [])),
);

function quantizesToFloat8(proto: ModelProto): boolean {
  for (const { tensor } of visitTensors(proto)) if (float8.has(tensor.dataType)) return true;
  for (const { node } of visitNodes(proto))
    if (node.attribute.some(({ name, i }) => name === 'output_dtype' && float8.has(Number(i)))) return true;
  return false;
}

/**
 * A flag for each narrow type of a model. The provider of ONNX Runtime 1.30 makes weakly typed networks (flags 0 in `createNetworkV2`), which compute in FP32 what no flag
 * allows, and end the build of INT8 pairs beside FP16: "fp16 is not configured in the builder". It has no flag for float8.
 */
function precisionFlagsOf(proto: ModelProto): readonly Setting[] {
  const types = new Set([...inferDtypes(proto).graph.types.values()]);
  const isQuantized = proto.graph?.node.some(({ opType }) => opType === 'DequantizeLinear') ?? false;
  return (['int8', 'float16', 'bfloat16'] as const).flatMap((dtype): Setting[] =>
    types.has(dtype) && (dtype !== 'int8' || isQuantized) ? [[precisionFlags[dtype], '1']] : [],
  );
}

function bindingsOf(path: string, model: OnnxModel): Pick<PreparedModel, 'inputs' | 'outputs'> {
  const declared = interfaceOf(model.proto);
  const binding =
    (what: string) =>
    ({ name, dtype, shape }: ValueFacts): Binding => {
      if (dtype === null || !(dtype in dtypes) || !isArrayDtype(dtype as Dtype)) {
        throw new TrtforgeError(
          'TF_SESSION_BINDING',
          `The ${what} ${name} of ${path} is ${dtype ?? 'of no declared type'}, which cannot be passed to ONNX Runtime.`,
        );
      }
      const unnamed = (dim: number | string | null) =>
        typeof dim === 'string' && isPlaceholder(dim) ? null : dim;
      return { name, dtype: dtype as Dtype, shape: shape?.map(unnamed) ?? null };
    };
  return {
    inputs: declared.inputs.map(binding('input')),
    outputs: declared.outputs.map(binding('output')),
  };
}
