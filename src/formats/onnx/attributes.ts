import { create } from '@bufbuild/protobuf';
import {
  type AttributeProto,
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type NodeProto,
} from './onnx_pb.js';
import { tensorType, type ValueType } from './values.js';

export const attributeOf = (node: NodeProto, name: string): AttributeProto | undefined =>
  node.attribute.find((attribute) => attribute.name === name);

/** An attribute of one integer. */
export const integerAttribute = (name: string, value: number): AttributeProto =>
  create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.INT, i: BigInt(value) });

/** A text of ASCII in an attribute. */
export function textAttribute(node: NodeProto, name: string, otherwise: string): string {
  const attribute = attributeOf(node, name);
  return attribute === undefined ? otherwise : Buffer.from(attribute.s).toString('latin1');
}

/** A `dtype`-like attribute (`to`, `dtype`, `output_dtype`) as a type; undefined where it is absent, 0, or a function's parameter. */
export function typeAttribute(node: NodeProto, name: string): ValueType | undefined {
  const attribute = attributeOf(node, name);
  if (attribute === undefined || attribute.refAttrName !== '') return undefined;
  return tensorType(Number(attribute.i));
}
