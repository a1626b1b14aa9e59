import { clone, create } from '@bufbuild/protobuf';
import { attributeOf, integerAttribute } from './attributes.js';
import { inferDtypes } from './dtype-inference.js';
import { freeName, valueNames } from './graph.js';
import { neededIrVersion } from './ir-version.js';
import type { ModelLike } from './model.js';
import {
  addConstant,
  addText,
  type Change,
  type ChangeContext,
  constantFloats,
  dropAttribute,
  oldOpsetChanges,
} from './old-opset-changes.js';
import { type GraphProto, GraphProtoSchema, type NodeProto, NodeProtoSchema } from './onnx_pb.js';
import { plainDomain } from './operators.js';
import { inferShapes } from './shapes/infer.js';
import type { Shape } from './shapes/size.js';

/** Raising starts from where values broadcast as they do today and ends where every operator knows BF16. */
const OLDEST = 7;

export const NEWEST = 22;

/**
 * Moves a model to a newer opset of the default domain, rewriting the operators whose spelling changed. Where one of them has no equivalent in the newer
 * opset, the model stays as it is and the obstacle is returned.
 */
export function raiseOpset(model: ModelLike, to: number): string | undefined {
  const { proto } = model;
  const domain = proto.opsetImport.find((entry) => plainDomain(entry.domain) === '');
  const from = Number(domain?.version ?? 0);
  if (proto.graph === undefined || domain === undefined || from < OLDEST)
    return `values broadcast by other rules before opset ${OLDEST}`;
  if (proto.functions.length > 0) return 'the model has functions of another opset';
  const original = proto.graph;
  const raising: Raising = { from, to, shapes: shapesOf(model) };
  const graph = clone(GraphProtoSchema, original);
  const obstacle = raiseGraph(graph, original, raising, valueNames(proto));
  if (obstacle !== undefined) return obstacle;
  proto.graph = graph;
  domain.version = BigInt(to);
  // An operator that ONNX does not define yet may be a custom one, and clash with the one that ONNX defines by then.
  const [clash] = inferDtypes(proto).violations;
  if (clash !== undefined) {
    proto.graph = original;
    domain.version = BigInt(from);
    return `${clash.where}: ${clash.message}`;
  }
  // Callers hold messages of the graph: what the copy showed to be possible is done to the graph itself.
  proto.graph = original;
  raiseGraph(original, original, raising, valueNames(proto));
  const ir = neededIrVersion(proto);
  if (proto.irVersion < ir) proto.irVersion = ir;
  return undefined;
}

interface Raising {
  readonly from: number;
  readonly to: number;
  /** The shape of a node's first output in the model as it was; undefined where not even the rank is known. */
  readonly shapes: (node: NodeProto) => Shape | undefined;
}

/** Shapes are inferred when the first change asks for one. */
function shapesOf(model: ModelLike): Raising['shapes'] {
  let nodes: ReturnType<typeof inferShapes>['nodes'] | undefined;
  return (node) => {
    nodes ??= inferShapes(model).nodes;
    return nodes.get(node)?.shapes[0];
  };
}

/** `read` is the graph that shapes are known of: the graph itself, or what it is a copy of. */
function raiseGraph(
  graph: GraphProto,
  read: GraphProto,
  raising: Raising,
  names: Set<string>,
): string | undefined {
  const nodes: NodeProto[] = [];
  for (const [index, node] of graph.node.entries()) {
    const original = read.node[index]!;
    for (const [at, { g: body }] of node.attribute.entries()) {
      const readBody = original.attribute[at]?.g;
      if (body === undefined || readBody === undefined) continue;
      const obstacle = raiseGraph(body, readBody, raising, names);
      if (obstacle !== undefined) return obstacle;
    }
    const behind: NodeProto[] = [];
    const context = contextOf(graph, names, () => raising.shapes(original), { front: nodes, behind });
    const obstacle = raiseNode(node, raising, context);
    if (obstacle !== undefined) return `${node.opType} "${node.name || node.output[0]}": ${obstacle}`;
    nodes.push(node, ...behind);
  }
  graph.node = nodes;
  return undefined;
}

function raiseNode(node: NodeProto, { from, to }: Raising, context: ChangeContext): string | undefined {
  if (plainDomain(node.domain) !== '') return undefined;
  for (const change of changes) {
    if (change.at <= from || change.at > to || !change.operators.includes(node.opType)) continue;
    const obstacle = change.apply(node, context);
    if (obstacle !== undefined) return obstacle;
  }
  return undefined;
}

function contextOf(
  graph: GraphProto,
  names: Set<string>,
  shape: ChangeContext['shape'],
  around: { readonly front: NodeProto[]; readonly behind: NodeProto[] },
): ChangeContext {
  return {
    shape,
    constant: (name) => constantFloats(graph, name),
    integers: (values) =>
      addConstant(graph, names, `axes_${values.join('_')}`, {
        dims: [BigInt(values.length)],
        dataType: 7,
        rawData: new Uint8Array(BigInt64Array.from(values).buffer),
      }),
    floats: (values, dims) =>
      addConstant(graph, names, `floats_${values.join('_')}`, {
        dims: [...dims],
        dataType: 1,
        rawData: new Uint8Array(Float32Array.from(values).buffer),
      }),
    name: (stem) => freeName(names, stem),
    insert: (place, added) => void around[place].push(create(NodeProtoSchema, added)),
  };
}

const words = (text: string) => text.split(' ');

/** Every change from opset 7 to 22 that is not just an addition. From the change logs of the operators; additions need nothing. */
const changes: readonly Change[] = [
  ...oldOpsetChanges,
  { at: 12, operators: ['Dropout'], apply: (node) => dropAttribute(node, 'ratio') },
  { at: 13, operators: words('Softmax LogSoftmax Hardmax'), apply: overOneAxis },
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
    apply: (node) => addText(node, 'coordinate_transformation_mode', 'output_half_pixel'),
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

/** Whether an operator is spelled or computed in another way from an opset behind `from` on, up to `to`. */
export const hasChanged = (opType: string, from: number, to: number): boolean =>
  changes.some(({ at, operators }) => at > from && at <= to && operators.includes(opType));

/** Before opset 13 a softmax ran over all axes from the given one on, as if they were one; from then on it runs over one axis. */
function overOneAxis(node: NodeProto, context: ChangeContext): undefined {
  const first = Number(attributeOf(node, 'axis')?.i ?? 1);
  const only = first === -1 ? -1 : onlyAxis(first, context.shape());
  dropAttribute(node, 'axis');
  if (only === undefined) flattened(node, first, context);
  node.attribute.push(integerAttribute('axis', only ?? -1));
}

/** The only axis from `first` on of another size than 1, counted from the end; undefined where there are several. */
function onlyAxis(first: number, shape: Shape | undefined): number | undefined {
  if (shape === undefined) return undefined;
  const { length } = shape;
  const from = first < 0 ? first + length : first;
  const [only = length - 1, ...more] = shape.flatMap((size, axis) =>
    axis >= from && size !== 1 ? [axis] : [],
  );
  return more.length > 0 ? undefined : only - length;
}

/** Makes the axes from `axis` on one in front of the node and several behind it again, which moves no value. */
function flattened(node: NodeProto, axis: number, context: ChangeContext): void {
  const [input = ''] = node.input;
  const [output = ''] = node.output;
  const [sizes = '', flat = '', result = ''] = ['shape', 'flat', 'result'].map((part) =>
    context.name(`${output}_${part}`),
  );
  context.insert('front', { opType: 'Shape', input: [input], output: [sizes] });
  context.insert('front', {
    opType: 'Flatten',
    input: [input],
    output: [flat],
    attribute: [integerAttribute('axis', axis)],
  });
  node.input = [flat];
  node.output = [result];
  context.insert('behind', { opType: 'Reshape', input: [result, sizes], output: [output] });
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
  node.attribute.push(integerAttribute('num_outputs', node.output.length));
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
