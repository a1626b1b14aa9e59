/**
 * `trtforge/onnx`: reading, changing and writing ONNX models of any size in constant memory.
 *
 * ```ts
 * import { openModel, visitTensors, writeModel } from 'trtforge/onnx';
 * const model = openModel('big.onnx');            // structure only; weights stay in the file
 * for (const { tensor } of visitTensors(model.proto)) console.log(tensor.name, model.weight(tensor).byteLength);
 * await writeModel(model, 'copy.onnx');           // streams the weights
 * model.close();
 * ```
 */

export type { WorkContext } from '../../events.js';
export {
  type AttributeValue,
  attribute,
  buildModel,
  type Dimension,
  type FunctionSpec,
  type GeneratedValues,
  GraphBuilder,
  type ModelSpec,
  type NodeSpec,
} from './builder.js';
export { factsOfModel, modelFacts } from './facts-of-model.js';
export {
  bodiesOf,
  capturedNames,
  definedNames,
  type GraphView,
  isOnnxDomain,
  nodeLabel,
  qualifiedOpType,
  type TensorPlace,
  tensorsOf,
  visitGraphs,
  visitMainGraphs,
  visitNodes,
  visitTensors,
} from './graph.js';
export { lintWeights } from './lint/weights.js';
export { type ModelLike, type OnnxModel, type OpenOptions, openModel } from './model.js';
export type { Finding, ModelFacts, ValueFacts } from './model-facts.js';
export * from './onnx_pb.js';
export type { ModelShapes } from './shapes/infer.js';
export type { Weight, WeightPlace, WeightStream } from './weight.js';
export { type WriteOptions, type WrittenModel, writeModel } from './write.js';
