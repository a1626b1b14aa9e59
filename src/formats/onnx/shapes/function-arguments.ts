import { clone } from '@bufbuild/protobuf';
import { AttributeProtoSchema, type FunctionProto, type NodeProto, NodeProtoSchema } from '../onnx_pb.js';

/** A node of a function with the attributes that the call passes. */
export function withArguments(node: NodeProto, call: NodeProto, fn: FunctionProto): NodeProto {
  if (node.attribute.every(({ refAttrName }) => refAttrName === '')) return node;
  const passed = [...call.attribute, ...fn.attributeProto];
  const copy = clone(NodeProtoSchema, node);
  copy.attribute = copy.attribute.flatMap((each) => {
    if (each.refAttrName === '') return [each];
    const value = passed.find(({ name }) => name === each.refAttrName);
    return value === undefined
      ? []
      : [Object.assign(clone(AttributeProtoSchema, value), { name: each.name })];
  });
  return copy;
}
