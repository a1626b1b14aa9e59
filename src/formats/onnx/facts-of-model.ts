import { TrtforgeError } from '../../errors.js';
import { dtypeFromOnnx } from '../tensor/dtype.js';
import { externalReference, locationOf } from './external-data.js';
import { isMain, opsets, qualifiedOpType, type TensorPlace, tensorsOf, visitGraphs } from './graph.js';
import { lintModel } from './lint/lint.js';
import { type OnnxModel, viewModel } from './model.js';
import type { ModelFacts } from './model-facts.js';
import type { TensorProto } from './onnx_pb.js';
import { inferShapes } from './shapes/infer.js';
import { factsAsWritten, feedInputs } from './value-facts.js';
import { tensorFacts } from './weight.js';

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
