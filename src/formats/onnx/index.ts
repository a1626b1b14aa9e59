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

import { atDoor } from '../../base/options/library-arguments.js';
import { factsOfModel as facts } from './inspect.js';
import { openModel as open } from './model.js';
import { writeModel as write } from './write.js';

export type { WorkContext } from '../../events.js';
export type {
  AttributeValue,
  Dimension,
  FunctionSpec,
  GeneratedValues,
  ModelSpec,
  NodeSpec,
} from './builder.js';
export { attribute, buildModel, GraphBuilder } from './builder.js';
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
export { modelFacts } from './inspect.js';
export { lintWeights } from './lint/weights.js';
export type { ModelLike, OnnxModel } from './model.js';
export type { Finding, ModelFacts, ValueFacts } from './model-facts.js';
export * from './onnx_pb.js';
export type { OpenOptions } from './scan.js';
export type { ModelShapes } from './shapes/infer.js';
export type { Weight, WeightPlace, WeightStream } from './weight.js';
export type { WriteOptions, WrittenModel } from './write.js';

export const factsOfModel = atDoor(facts);
export const openModel = atDoor(open);
export const writeModel = atDoor(write);
