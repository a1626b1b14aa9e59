import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { attributeOf } from './attributes.js';
import { freeName } from './graph.js';
import {
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type GraphProto,
  type NodeProto,
  type NodeProtoSchema,
  type TensorProto,
  TensorProtoSchema,
} from './onnx_pb.js';
import type { Shape } from './shapes/size.js';

/** The edits that a change may make to the graph around the node. */
export interface ChangeContext {
  /** Adds an int64 constant to the graph and returns its name. */
  integers(values: readonly bigint[]): string;
  /** The same of 32-bit floats, with these dimensions. */
  floats(values: readonly number[], dims: readonly bigint[]): string;
  /** The values of a constant of floats; undefined for anything else. */
  constant(name: string): readonly number[] | undefined;
  /** The shape of the node's first output; undefined where not even the rank is known. */
  shape(): Shape | undefined;
  /** A name that no value has. */
  name(stem: string): string;
  /** Adds a node in front of the node or behind it. */
  insert(place: 'front' | 'behind', node: MessageInitShape<typeof NodeProtoSchema>): void;
}

/** A change of an operator's meaning or spelling between two opsets. */
export interface Change {
  readonly at: number;
  readonly operators: readonly string[];
  /** Rewrites the node so that it means the same from `at` on; returns why it cannot, or undefined when it has. */
  readonly apply: (node: NodeProto, context: ChangeContext) => string | undefined;
}

/**
 * Every change from opset 7 to 11 that is not just an addition, from the change logs of the operators. Until opset 10 ONNX did not define how Resize finds
 * its coordinates: they are those of ONNX Runtime, which are those of Upsample.
 */
export const oldOpsetChanges: readonly Change[] = [
  { at: 9, operators: ['Scan'], apply: () => 'its batch axis is gone from opset 9 on' },
  { at: 9, operators: ['BatchNormalization'], apply: spatialOnly },
  {
    at: 10,
    operators: ['Dropout'],
    apply: (node) => ((node.output[1] ?? '') === '' ? undefined : 'its mask is of another type'),
  },
  {
    at: 10,
    operators: ['Slice'],
    apply: (node, context) => integerInputs(node, 'starts ends axes', context),
  },
  { at: 10, operators: ['TopK'], apply: (node, context) => integerInputs(node, 'k', context) },
  { at: 11, operators: ['Resize'], apply: resize },
  { at: 11, operators: ['Upsample'], apply: upsample },
  { at: 11, operators: ['Clip'], apply: clip },
  { at: 11, operators: ['Pad'], apply: pad },
  {
    at: 11,
    operators: ['Scatter'],
    apply: (node) => {
      node.opType = 'ScatterElements';
      return undefined;
    },
  },
  { at: 11, operators: ['OneHot'], apply: () => 'negative indices count from the end from opset 11 on' },
];

/** Adds a constant to a graph and returns its name, which no value has. */
export function addConstant(
  graph: GraphProto,
  names: Set<string>,
  stem: string,
  constant: Pick<TensorProto, 'dims' | 'dataType' | 'rawData'>,
): string {
  const name = freeName(names, stem);
  graph.initializer.push(create(TensorProtoSchema, { name, ...constant }));
  return name;
}

/** The floats of an initializer or a Constant whose values are in the messages. */
export function constantFloats({ initializer, node }: GraphProto, name: string): number[] | undefined {
  const maker = node.find(({ opType, output }) => opType === 'Constant' && output[0] === name);
  const tensor = initializer.find((each) => each.name === name) ?? (maker && attributeOf(maker, 'value')?.t);
  if (tensor?.dataType !== 1) return undefined;
  if (tensor.floatData.length > 0) return [...tensor.floatData];
  const bytes = Uint8Array.from(tensor.rawData);
  return bytes.length === 0 ? undefined : [...new Float32Array(bytes.buffer)];
}

export function dropAttribute(node: NodeProto, name: string): undefined {
  node.attribute = node.attribute.filter((attribute) => attribute.name !== name);
  return undefined;
}

function spatialOnly(node: NodeProto): string | undefined {
  if (Number(attributeOf(node, 'spatial')?.i ?? 1) !== 1) return 'it normalizes each position by itself';
  return dropAttribute(node, 'spatial');
}

function integerInputs(node: NodeProto, names: string, context: ChangeContext): undefined {
  for (const name of names.split(' ')) {
    const attribute = attributeOf(node, name);
    if (attribute === undefined) continue;
    node.input.push(context.integers(name === 'k' ? [attribute.i] : attribute.ints));
    dropAttribute(node, name);
  }
  return undefined;
}

function resize(node: NodeProto, context: ChangeContext): string | undefined {
  const [data = '', scales = ''] = node.input;
  const known = context.constant(scales);
  const isNearest = Buffer.from(attributeOf(node, 'mode')?.s ?? 'nearest').toString() === 'nearest';
  // ONNX Runtime rounds up where it scales down, which no newer mode does.
  if (isNearest && (known === undefined || known.some((scale) => scale < 1)))
    return 'what it repeats where it scales down cannot be expressed';
  node.input = [data, context.floats([], [0n]), scales];
  addText(node, 'coordinate_transformation_mode', 'asymmetric');
  if (isNearest) addText(node, 'nearest_mode', 'floor');
  return undefined;
}

/** It never scales down. */
function upsample(node: NodeProto, context: ChangeContext): string | undefined {
  const scales = attributeOf(node, 'scales')?.floats;
  const [data = '', given = ''] = node.input;
  node.opType = 'Resize';
  node.input = [data, scales === undefined ? given : context.floats(scales, [BigInt(scales.length)])];
  dropAttribute(node, 'scales');
  return resize(node, { ...context, constant: () => [1] });
}

function clip(node: NodeProto, context: ChangeContext): undefined {
  for (const [index, name] of ['min', 'max'].entries()) {
    const limit = attributeOf(node, name)?.f;
    if (limit === undefined) continue;
    while (node.input.length <= index) node.input.push('');
    node.input[index + 1] = context.floats([limit], []);
    dropAttribute(node, name);
  }
  return undefined;
}

function pad(node: NodeProto, context: ChangeContext): undefined {
  const value = attributeOf(node, 'value')?.f ?? 0;
  integerInputs(node, 'pads', context);
  if (value !== 0) node.input.push(context.floats([value], []));
  return dropAttribute(node, 'value');
}

export function addText(node: NodeProto, name: string, value: string): undefined {
  if (attributeOf(node, name) !== undefined) return undefined;
  const s = Buffer.from(value);
  node.attribute.push(create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.STRING, s }));
  return undefined;
}
