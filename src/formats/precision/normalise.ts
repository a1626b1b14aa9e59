import { create } from '@bufbuild/protobuf';
import { type GraphTypes, inferDtypes } from '../onnx/dtype-inference.js';
import {
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type GraphProto,
  type ModelProto,
  type NodeProto,
  TensorProtoSchema,
} from '../onnx/onnx_pb.js';
import { plainDomain } from '../onnx/operators.js';
import { onnxNumber, type ValueType } from '../onnx/value-facts.js';
import { type Dtype, dtypes } from '../tensor/dtype.js';
import { inlineFunctions } from './inline-functions.js';
import { declarePlugins, type PluginTypes } from './plugin-types.js';

/**
 * Writes a model so that the rules know its spelling: functions inlined, and of the spellings that ONNX has twice the one that the conversion knows (CastLike is a
 * Cast, Constant's floats are a tensor). Returns how many calls of functions were replaced.
 */
export function normalise(model: ModelProto, pluginTypes: PluginTypes = new Map()): number {
  const functionsInlined = inlineFunctions(model);
  declarePlugins(model, pluginTypes);
  if (model.graph !== undefined) normaliseGraph(model.graph, inferDtypes(model).graph, []);
  return functionsInlined;
}

function normaliseGraph(graph: GraphProto, types: GraphTypes, outer: readonly GraphTypes[]): void {
  const scopes = [types, ...outer];
  for (const node of graph.node) {
    if (plainDomain(node.domain) === '') {
      if (node.opType === 'CastLike') castLikeToCast(node, lookUp(scopes, node.input[1]));
      else if (node.opType === 'Constant') floatsToTensor(node);
    }
    for (const { g: body } of node.attribute) {
      const bodyTypes = body === undefined ? undefined : types.bodies.get(body);
      if (body !== undefined && bodyTypes !== undefined) normaliseGraph(body, bodyTypes, scopes);
    }
  }
}

function lookUp(scopes: readonly GraphTypes[], name: string | undefined): ValueType | undefined {
  for (const { types } of scopes) {
    const type = name === undefined ? undefined : types.get(name);
    if (type !== undefined) return type;
  }
  return undefined;
}

function castLikeToCast(node: NodeProto, target: ValueType | undefined): void {
  if (target === undefined || !(target in dtypes)) return;
  node.opType = 'Cast';
  node.input = node.input.slice(0, 1);
  node.attribute.push(
    create(AttributeProtoSchema, {
      name: 'to',
      type: AttributeProto_AttributeType.INT,
      i: BigInt(onnxNumber(target as Dtype)),
    }),
  );
}

function floatsToTensor(node: NodeProto): void {
  const [attribute] = node.attribute;
  if (attribute === undefined || attribute.refAttrName !== '') return;
  const single = attribute.name === 'value_float';
  if (!single && attribute.name !== 'value_floats') return;
  const values = single ? [attribute.f] : attribute.floats;
  const t = create(TensorProtoSchema, {
    dims: single ? [] : [BigInt(values.length)],
    dataType: dtypes.float32.onnx,
    rawData: new Uint8Array(Float32Array.from(values).buffer),
  });
  node.attribute = [
    create(AttributeProtoSchema, { name: 'value', type: AttributeProto_AttributeType.TENSOR, t }),
  ];
}
