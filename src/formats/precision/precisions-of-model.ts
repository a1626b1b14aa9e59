import { type GraphTypes, inferDtypes } from '../onnx/dtype-inference.js';
import { viewModel } from '../onnx/model.js';
import type { ModelProto } from '../onnx/onnx_pb.js';
import { type FormatId, formats } from './formats/index.js';

/** The formats among a model's types, the one with the widest tolerance first: floating-point types of values, and types of codes that a DequantizeLinear reads. */
export function precisionsOf(model: ModelProto): readonly FormatId[] {
  const types = new Set<string>();
  const collect = (graph: GraphTypes) => {
    for (const type of graph.types.values()) types.add(type);
    for (const body of graph.bodies.values()) collect(body);
  };
  const { graph } = inferDtypes(model);
  collect(graph);
  const codes = new Set(
    model.graph?.node.flatMap(({ opType, input: [read = ''] }) =>
      opType === 'DequantizeLinear' ? (graph.types.get(read) ?? []) : [],
    ),
  );
  return formats
    .filter((format) => ('dtype' in format ? types.has(format.dtype) : codes.has(format.storedDtype)))
    .sort((a, b) => b.tolerance.bound - a.tolerance.bound)
    .map(({ id }) => id);
}

/** The same of a file. Throws what opening a model throws. */
export function precisionsOfModelFile(path: string): readonly FormatId[] {
  return viewModel(path, (model) => precisionsOf(model.proto));
}
