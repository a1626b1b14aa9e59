import { create } from '@bufbuild/protobuf';
import { attributeOf } from '../onnx/node-types.js';
import { AttributeProto_AttributeType, AttributeProtoSchema, type NodeProto } from '../onnx/onnx_pb.js';

/** What a change may do to the graph around the node. */
export interface ChangeContext {
  /** Adds an int64 constant to the graph and returns its name. */
  integers(values: readonly bigint[]): string;
  /** The rank of a value where the model says it. */
  rank(name: string): number | undefined;
}

/** A change of an operator's meaning or spelling between two opsets. */
interface Change {
  readonly at: number;
  readonly operators: readonly string[];
  /** Rewrites the node so that it means the same from `at` on; returns why it cannot, or undefined when it has. */
  readonly apply: (node: NodeProto, context: ChangeContext) => string | undefined;
}

const words = (text: string) => text.split(' ');

/** Every change from opset 11 to 22 that is not just an addition. From the change logs of the operators; additions need nothing. */
export const changes: readonly Change[] = [
  { at: 12, operators: ['Dropout'], apply: (node) => dropAttribute(node, 'ratio') },
  { at: 13, operators: words('Softmax LogSoftmax Hardmax'), apply: lastAxisOnly },
  {
    at: 13,
    operators: words('Squeeze Unsqueeze ReduceSum'),
    apply: (node, context) => attributeToInput(node, 'axes', 1, context),
  },
  { at: 13, operators: ['Split'], apply: (node, context) => attributeToInput(node, 'split', 1, context) },
  {
    at: 14,
    operators: ['BatchNormalization'],
    apply: (node) => (node.output.length > 1 ? 'it is in training mode' : undefined),
  },
  {
    at: 16,
    operators: ['RoiAlign'],
    apply: (node) => addString(node, 'coordinate_transformation_mode', 'output_half_pixel'),
  },
  {
    at: 18,
    operators: words(
      'ReduceMax ReduceMin ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare',
    ),
    apply: (node, context) => attributeToInput(node, 'axes', 1, context),
  },
  { at: 18, operators: ['Split'], apply: splitEvenly },
  { at: 20, operators: ['GridSample'], apply: renameSampling },
  { at: 20, operators: ['DFT'], apply: () => 'its axis became an input' },
  {
    at: 21,
    operators: ['GroupNormalization'],
    apply: () => 'its scale and bias are per group, and per channel from opset 21 on',
  },
];

function dropAttribute(node: NodeProto, name: string): undefined {
  node.attribute = node.attribute.filter((attribute) => attribute.name !== name);
  return undefined;
}

/** Before opset 13 a softmax ran over all axes from the given one on; the same only where that is the last. */
function lastAxisOnly(node: NodeProto, context: ChangeContext): string | undefined {
  const axis = attributeOf(node, 'axis');
  const value = axis === undefined ? 1 : Number(axis.i);
  const rank = context.rank(node.input[0] ?? '') ?? context.rank(node.output[0] ?? '');
  if (value !== -1 && (rank === undefined || value !== rank - 1))
    return `it runs over all axes from ${value} on, which newer opsets cannot say`;
  if (axis !== undefined) axis.i = -1n;
  return undefined;
}

function attributeToInput(node: NodeProto, name: string, index: number, context: ChangeContext): undefined {
  const attribute = attributeOf(node, name);
  if (attribute === undefined) return undefined;
  dropAttribute(node, name);
  if (attribute.ints.length === 0) return undefined;
  while (node.input.length < index) node.input.push('');
  node.input[index] = context.integers(attribute.ints);
  return undefined;
}

function splitEvenly(node: NodeProto): undefined {
  if ((node.input[1] ?? '') !== '' || attributeOf(node, 'num_outputs') !== undefined) return undefined;
  const i = BigInt(node.output.length);
  node.attribute.push(
    create(AttributeProtoSchema, { name: 'num_outputs', type: AttributeProto_AttributeType.INT, i }),
  );
  return undefined;
}

function addString(node: NodeProto, name: string, value: string): undefined {
  if (attributeOf(node, name) !== undefined) return undefined;
  const s = Buffer.from(value);
  node.attribute.push(create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.STRING, s }));
  return undefined;
}

function renameSampling(node: NodeProto): undefined {
  const mode = attributeOf(node, 'mode');
  if (mode === undefined) return undefined;
  const name = Buffer.from(mode.s).toString();
  if (name === 'bilinear') mode.s = Buffer.from('linear');
  else if (name === 'bicubic') mode.s = Buffer.from('cubic');
  return undefined;
}
