import { create } from '@bufbuild/protobuf';
import { type GraphTypes, inferDtypes } from '../../../formats/onnx/dtype-inference.js';
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
import { plainDomain } from '../../../formats/onnx/operators.js';
import { onnxNumber } from '../../../formats/onnx/value-facts.js';
import { inlineFunctions } from '../../../formats/precision/inline-functions.js';
import { movers } from '../../../formats/precision/operator-traits.js';

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
export function roundInFloat32(model: ModelProto): Rounding | undefined {
  if (model.functions.length > 0) inlineFunctions(model);
  if (model.graph === undefined || model.functions.length > 0) return undefined;
  const { graph: types } = inferDtypes(model);
  if (!holdsHalves(types)) return undefined;
  const counter = { roundedValues: 0 };
  roundGraph(model.graph, types, counter);
  return counter;
}

/** Whether no value is 16 bits wide; false as well where values cannot all be followed. */
export const isWide = (model: ModelProto): boolean =>
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
