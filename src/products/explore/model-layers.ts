import { bytesInFormat, totalBytes } from '../../engines/layers/read-layers.js';
import type { EngineLayer, LayerTensor } from '../../engines/layers/result.js';
import { TrtforgeError } from '../../errors.js';
import { inferDtypes } from '../../formats/onnx/dtype-inference.js';
import { inOrder, qualifiedOpType } from '../../formats/onnx/graph.js';
import { attributeValue } from '../../formats/onnx/inspect.js';
import { type OnnxModel, viewModel } from '../../formats/onnx/model.js';
import type { NodeProto } from '../../formats/onnx/onnx_pb.js';
import { requestedSizes } from '../../formats/onnx/open-dimensions.js';
import { inferShapes } from '../../formats/onnx/shapes/infer.js';
import { dimensionsText } from '../../formats/onnx/shapes/size.js';
import { feedInputs, valueFacts } from '../../formats/onnx/values.js';
import { tensorFacts } from '../../formats/onnx/weight.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';

/** A node of the top graph, by the name that engines have for it. */
export interface ModelNode {
  readonly op: string;
  /** Null where a size is open or the operator's cost is not known. */
  readonly flops: number | null;
  /** The type of its first output. */
  readonly dtype: string | null;
  readonly outputs: readonly string[];
  /** Its position in the file; null where it has a name. */
  readonly nameless: number | null;
}

export interface ModelLayers {
  readonly file: string;
  readonly graph: string;
  readonly nodes: ReadonlyMap<string, ModelNode>;
  /** The nodes as layers, each after those that make what it uses. */
  readonly layers: readonly EngineLayer[];
  /** Dimensions of inputs that no shape fixes. */
  readonly openSizes: readonly string[];
}

/**
 * The nodes of a model's top graph with types, shapes and FLOPs; without weights. `shapes` are those of inputs, where they are known: what does not fit is left out.
 * Throws what opening models throws.
 */
export function readModelLayers(
  file: string,
  shapes: ReadonlyMap<string, readonly number[]> = new Map(),
): ModelLayers {
  return viewModel(file, (model) => {
    const graph = model.proto.graph!;
    const { nodes: order } = inOrder(graph.node);
    const figures = inferShapes(model, shapes, requestedSizes(feedInputs(graph).map(valueFacts), shapes));
    const tensorOf = tensorsOf(model, figures);
    const weights = weightBytesOf(model);
    const layers = order.map((node, index) => layerOf(node, index, tensorOf, weights));
    const places = new Map(graph.node.map((node, place) => [node, place]));
    const nodes = new Map(
      order.map((node, index) => {
        const flops = figures.nodes.get(node)?.flops;
        return [
          layers[index]!.name,
          {
            op: qualifiedOpType(node),
            flops: typeof flops === 'number' ? flops : null,
            dtype: layers[index]!.outputs[0]?.dtype ?? null,
            outputs: node.output.filter((name) => name !== ''),
            nameless: node.name === '' ? places.get(node)! : null,
          },
        ];
      }),
    );
    return { file, graph: graph.name, nodes, layers, openSizes: [...figures.openSizes] };
  });
}

type Figures = ReturnType<typeof inferShapes>;

function tensorsOf({ proto }: OnnxModel, { inputs, nodes }: Figures): (name: string) => LayerTensor {
  const { types } = inferDtypes(proto).graph;
  const shapes = new Map([...inputs].map(([name, shape]) => [name, dimensionsText(shape)]));
  for (const [node, figures] of nodes)
    for (const [index, name] of node.output.entries())
      shapes.set(name, dimensionsText(figures.shapes[index]));
  return (name) => {
    const dtype = types.get(name) ?? null;
    const shape = shapes.get(name)?.map((size) => (typeof size === 'number' ? size : null)) ?? null;
    return plainTensor(name, dtype, shape);
  };
}

/** What only an engine's inspector states. */
export const noLayer: Omit<EngineLayer, 'index' | 'name'> = {
  type: null,
  profile: 0,
  inputs: [],
  outputs: [],
  tactic: { name: null, value: null },
  precision: null,
  metadata: null,
  onnxNodes: [],
  region: null,
  origin: null,
  stream: null,
  copies: false,
  weightBytes: 0,
  outputBytes: null,
  attributes: {},
};

/** A tensor in the plain layout. */
export function plainTensor(
  name: string,
  dtype: string | null,
  shape: readonly (number | null)[] | null,
): LayerTensor {
  const known = dtype !== null && Object.hasOwn(dtypes, dtype) ? (dtype as Dtype) : null;
  const bytes = bytesInFormat(shape, null, known);
  return { name, shape: shape && [...shape], dtype, format: null, location: null, bytes };
}

function weightBytesOf({ proto }: OnnxModel): ReadonlyMap<string, number> {
  return new Map(
    proto.graph!.initializer.map((tensor) => {
      try {
        return [tensor.name, tensorFacts(tensor).byteLength];
      } catch (error) {
        // A weight that contradicts itself counts nothing here; `inspect` reports it.
        if (error instanceof TrtforgeError) return [tensor.name, 0];
        throw error;
      }
    }),
  );
}

function layerOf(
  node: NodeProto,
  index: number,
  tensorOf: (name: string) => LayerTensor,
  weights: ReadonlyMap<string, number>,
): EngineLayer {
  const used = node.input.filter((name) => name !== '');
  const outputs = node.output.filter((name) => name !== '').map(tensorOf);
  // The name that TensorRT's parser has for a node without one.
  const name = node.name || `node_of_${node.output[0] ?? ''}`;
  return {
    ...noLayer,
    ...{ index, name, outputs, type: qualifiedOpType(node), onnxNodes: [name] },
    inputs: used.filter((input) => !weights.has(input)).map(tensorOf),
    precision: outputs[0]?.dtype ?? null,
    weightBytes: used.reduce((sum, input) => sum + (weights.get(input) ?? 0), 0),
    outputBytes: totalBytes(outputs),
    attributes: Object.fromEntries(node.attribute.map((each) => [each.name, attributeValue(each)])),
  };
}
