import { dtypeFromOnnx } from '../tensor/dtype.js';
import { type GraphView, isMain, qualifiedOpType, visitGraphs } from './graph.js';
import type { OnnxModel } from './model.js';
import type { ModelFacts } from './model-facts.js';
import { type AttributeProto, type NodeProto, AttributeProto_AttributeType as Type } from './onnx_pb.js';
import { amountText, dimensionsText } from './shapes/cost-facts.js';
import type { ModelShapes } from './shapes/infer.js';

type NodeFacts = NonNullable<ModelFacts['nodeList']>[number];
type AttributeValue = NodeFacts['attributes'][string];

/** The nodes of a graph and its bodies whose name or operator matches, in the file's order, with their attributes and with the figures inferred of them. */
export const listNodes = ({ proto }: OnnxModel, pattern: RegExp, shapes: ModelShapes): NodeFacts[] =>
  [...visitGraphs(proto)].filter(isMain).flatMap((view) =>
    view.nodes.flatMap((node) => {
      const op = qualifiedOpType(node);
      return pattern.test(node.name) || pattern.test(op) ? [factsOf(view, node, op, shapes)] : [];
    }),
  );

const factsOf = ({ path }: GraphView, node: NodeProto, op: string, { nodes }: ModelShapes): NodeFacts => ({
  name: node.name,
  op,
  graph: path,
  inputs: [...node.input],
  outputs: [...node.output],
  attributes: Object.fromEntries(node.attribute.map((each) => [each.name, attributeValue(each)])),
  outputShapes: node.output.map((_, index) => dimensionsText(nodes.get(node)?.shapes[index])),
  flops: amountText(nodes.get(node)?.flops),
});

/** Numbers and text as they are; of a tensor its type and shape, of a graph its name, in words. */
export function attributeValue(attribute: AttributeProto): AttributeValue {
  const { type, refAttrName } = attribute;
  if (refAttrName !== '') return `attribute ${refAttrName} of the function`;
  switch (type) {
    case Type.FLOAT:
      return floatOf(attribute.f);
    case Type.INT:
      return integerOf(attribute.i);
    case Type.STRING:
      return textOf(attribute.s);
    case Type.FLOATS:
      return attribute.floats.map(floatOf);
    case Type.INTS:
      return attribute.ints.map(integerOf);
    case Type.STRINGS:
      return attribute.strings.map(textOf);
    case Type.TENSOR:
      return tensorText(attribute.t);
    case Type.GRAPH:
      return `graph ${attribute.g?.name ?? ''}`;
    default:
      return Type[type] ?? `type ${type}`;
  }
}

/** JSON has neither NaN nor infinities. */
const floatOf = (value: number): number | string => (Number.isFinite(value) ? value : String(value));
const integerOf = (value: bigint): number | string =>
  Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

const tensorText = (tensor: AttributeProto['t']): string =>
  tensor === undefined
    ? 'tensor'
    : `${dtypeFromOnnx(tensor.dataType) ?? `onnx type ${tensor.dataType}`} [${tensor.dims.join(', ')}]`;
