import * as is from '../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../base/options/option.js';
import { parseShapes, shapesByName } from '../../base/options/readers.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { dtypeFromOnnx } from '../tensor/dtype.js';
import { inferDtypes } from './dtype-inference.js';
import { externalReference, locationOf } from './external-data.js';
import {
  type GraphView,
  isMain,
  opsets,
  qualifiedOpType,
  type TensorPlace,
  tensorsOf,
  visitGraphs,
} from './graph.js';
import { Findings, wrongResults } from './lint/findings.js';
import { lintModel } from './lint/lint.js';
import { lintQuantization } from './lint/quantization.js';
import { type OnnxModel, viewModel } from './model.js';
import type { Finding, ModelFacts } from './model-facts.js';
import {
  type AttributeProto,
  type NodeProto,
  type TensorProto,
  AttributeProto_AttributeType as Type,
} from './onnx_pb.js';
import { requestedSizes } from './open-dimensions.js';
import { isPairPart, QuantizedGraph } from './quantized-operations.js';
import { totalFlops } from './shapes/cost.js';
import { inferShapes, type ModelShapes } from './shapes/infer.js';
import { amountText, dimensionsText, isAtLeast, symbolsOf } from './shapes/size.js';
import { factsAsWritten, feedInputs, valueFacts } from './values.js';
import { tensorFacts } from './weight.js';
import { listWeights } from './weight-list.js';

/**
 * Returns the facts of an ONNX model of any size, and its suspicious parts, without reading its weights.
 * Defects of the model are findings; only a file that cannot be read as a model throws (see `openModel`).
 */
export function factsOfModel(path: string): ModelFacts {
  return viewModel(path, (model) => modelFacts(model));
}

/** The same for a model that is open already. */
export function modelFacts(model: OnnxModel, inferred = inferShapes(model)): ModelFacts {
  const { proto } = model;
  const graph = proto.graph!;
  const all = [...visitGraphs(proto)];
  const views = all.filter(isMain);
  const tensors = all.flatMap((view) => [...tensorsOf(view)]);
  const sparse = views.reduce((sum, view) => sum + (view.graph?.sparseInitializer.length ?? 0), 0);
  return {
    schema: 'trtforge.inspect/1',
    kind: 'onnx',
    file: model.path,
    fileBytes: model.size,
    irVersion: Number(proto.irVersion),
    opsets: opsets(proto),
    producer: proto.producerName,
    producerVersion: proto.producerVersion,
    graphName: graph.name,
    metadata: Object.fromEntries(proto.metadataProps.map(({ key, value }) => [key, value])),
    inputs: feedInputs(graph).map(factsAsWritten),
    outputs: graph.output.map(factsAsWritten),
    nodes: graph.node.length,
    nodesTotal: views.reduce((sum, view) => sum + view.nodes.length, 0),
    functions: proto.functions.map(({ domain, name, node }) => ({ domain, name, nodes: node.length })),
    ops: opCounts(views.flatMap((view) => view.nodes.map(qualifiedOpType))),
    ...initializerFacts(
      tensors.filter((place) => isMain(place.view) && isStoredWeight(place)).map(({ tensor }) => tensor),
      model,
    ),
    sparseInitializers: sparse,
    externalFiles: externalFiles(tensors, model),
    findings: lintModel(model, all, tensors, inferred),
  };
}

/** Initializers, and what some exporters (Paddle's) keep in Constant nodes in place of them: not the shapes and single numbers that all keep there. */
const isStoredWeight = ({ tensor, role, node }: TensorPlace): boolean =>
  role === 'initializer' ||
  (node?.opType === 'Constant' &&
    tensor.dims.length > 0 &&
    /float|int[48]$/.test(dtypeFromOnnx(tensor.dataType) ?? ''));

function opCounts(types: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const type of types) counts.set(type, (counts.get(type) ?? 0) + 1);
  const ordered = [...counts].sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1));
  return Object.fromEntries(ordered);
}

function initializerFacts(
  tensors: readonly TensorProto[],
  model: OnnxModel,
): Pick<ModelFacts, 'initializers' | 'initializersByDtype' | 'parameters'> {
  const byDtype: ModelFacts['initializersByDtype'] = {};
  let bytes = 0;
  let parameters = 0;
  for (const tensor of tensors) {
    const dtype = dtypeFromOnnx(tensor.dataType) ?? `onnx type ${tensor.dataType}`;
    const size = tensorSize(tensor, model);
    byDtype[dtype] ??= { count: 0, bytes: 0, parameters: 0 };
    byDtype[dtype].count += 1;
    byDtype[dtype].bytes += size.bytes;
    byDtype[dtype].parameters += size.elements;
    bytes += size.bytes;
    parameters += size.elements;
  }
  return { initializers: { count: tensors.length, bytes }, initializersByDtype: byDtype, parameters };
}

/** A tensor that contradicts itself counts nothing here; lint reports about it. */
function tensorSize(tensor: TensorProto, model: OnnxModel): { bytes: number; elements: number } {
  try {
    const { dtype, elements, byteLength } = tensorFacts(tensor);
    const bytes = dtype === 'string' ? model.weight(tensor).byteLength - 4 * elements : byteLength;
    return { bytes, elements };
  } catch (error) {
    if (error instanceof TrtforgeError) return { bytes: 0, elements: 0 };
    throw error;
  }
}

function externalFiles(tensors: readonly TensorPlace[], model: OnnxModel): ModelFacts['externalFiles'] {
  const sizes = new Map<string, number | null>();
  for (const { tensor } of tensors) {
    const location = locationOf(tensor);
    if (location !== undefined && !sizes.has(location)) sizes.set(location, fileSize(tensor, model));
  }
  return [...sizes].map(([path, bytes]) => ({ path, bytes }));
}

function fileSize(tensor: TensorProto, model: OnnxModel): number | null {
  try {
    return model.external.open(externalReference(tensor).location).size;
  } catch (error) {
    if (error instanceof TrtforgeError) return null;
    throw error;
  }
}

export const inspectOptions = {
  /** Shapes of inputs, by name, that FLOPs, memory and the shapes of nodes are for; default: as declared. */
  shapes: optional(is.map<readonly number[]>(), {
    flags: '--shapes <shapes>',
    group: 'Inputs',
    describe: 'shapes of inputs that FLOPs and memory are for, as x:1x3x224x224 (default: as declared)',
    parse: parseShapes,
    repeat: true,
    make: shapesByName,
  }),
  /** Lists the nodes whose name or operator matches. */
  nodes: optional(is.pattern, {
    flags: '--nodes <regex>',
    describe:
      'list the nodes whose name or operator matches, with attributes, output shapes and FLOPs; . for all',
  }),
  /** Lists the weights whose name matches, with the range of their values. */
  weights: optional(is.pattern, {
    flags: '--weights <regex>',
    describe: 'list the weights whose name matches, with range, zeros and 2:4 sparsity; . for all',
  }),
  /** Whether every weight is read; NaN, infinities and values outside FP16 are findings. */
  checkWeights: optional(is.flag, {
    flags: '--check-weights',
    describe: 'read every weight and report NaN, infinities and values outside FP16',
  }),
};

export interface InspectOptions extends OptionsOf<typeof inspectOptions> {}

/**
 * Returns the facts of an ONNX model of any size, one run's cost (FLOPs; bytes of activations), and suspicious parts. Weights are read for `weights`
 * and `checkWeights` only. Defects are findings. Throws what `openModel` throws, TF_SHAPE_INVALID for shapes that do not fit inputs, TF_CANCELLED.
 */
export async function inspectModel(
  path: string,
  { shapes = new Map(), nodes, weights, checkWeights = false }: InspectOptions = {},
  context: WorkContext = {},
): Promise<ModelFacts> {
  return viewModel(path, async (model) => {
    const { graph } = model.proto;
    const sizes = requestedSizes(feedInputs(graph!).map(valueFacts), shapes);
    const inferred = inferShapes(model, shapes, sizes);
    const facts = {
      ...modelFacts(model, inferred),
      cost: costFacts(inferred),
      ...(nodes === undefined ? {} : { nodeList: listNodes(model, nodes, inferred) }),
      ...(weights === undefined ? {} : { weightList: await listWeights(model, weights, context.signal) }),
    };
    if (!checkWeights) return facts;
    const { lintWeights } = await import('./lint/weights.js');
    return { ...facts, findings: [...facts.findings, ...(await lintWeights(model, context))] };
  });
}

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

type CostFacts = NonNullable<ModelFacts['cost']>;

/** The cost of one run of a model, as `inspect` reports it. */
export function costFacts({ inputs, gaps, cost, openSizes }: ModelShapes): CostFacts {
  const flops = totalFlops(cost);
  const [peak, ...others] = cost.peaks ?? [];
  const bytes = cost.peaks === undefined || others.length > 0 ? undefined : (peak?.bytes ?? 0);
  const named = new Set([flops, bytes].flatMap((size) => (size === undefined ? [] : symbolsOf(size))));
  const byOp = [...cost.flops].sort(([, a], [, b]) => (isAtLeast(a, b) === true ? -1 : 1));
  return {
    inputs: Object.fromEntries([...inputs].map(([name, shape]) => [name, dimensionsText(shape)])),
    openSizes: [...openSizes],
    otherSizes: [...named].filter((name) => !openSizes.has(name)),
    flops: amountText(flops),
    flopsByOp: Object.fromEntries(byOp.map(([op, count]) => [op, amountText(count)])),
    uncountedNodes: cost.uncounted,
    peakActivationBytes: amountText(bytes),
    peakNode: bytes === undefined ? null : (peak?.node ?? null),
    unmeasuredTensors: cost.unmeasured,
    gaps: [...gaps],
  };
}

/** Of a quantized model, what `inspect` reports that makes an engine's results wrong although it builds. */
export function wrongQuantization(model: OnnxModel): Finding[] {
  const views = [...visitGraphs(model.proto)];
  if (!views.some(({ nodes }) => nodes.some(isPairPart))) return [];
  const findings = new Findings();
  lintQuantization(model, new QuantizedGraph(views, inferDtypes(model.proto).graph), findings);
  return findings.list().filter(({ code }) => wrongResults.has(code));
}
