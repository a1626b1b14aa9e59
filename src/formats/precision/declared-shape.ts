import type { GraphProto, ValueInfoProto } from '../onnx/onnx_pb.js';
import { valueFacts } from '../onnx/value-facts.js';
import type { Value } from './flow.js';

/** Dimensions from the weight itself or from the types written in the graph; unknown dimensions are undefined. */
export function declaredShape(value: Value | undefined): readonly (number | undefined)[] | undefined {
  if (value === undefined) return undefined;
  if (value.tensor !== undefined) return value.tensor.dims.map(Number);
  const info = declarations(value.scope.graph).get(value.name);
  const shape = info === undefined ? null : valueFacts(info).shape;
  return shape?.map((dim) => (typeof dim === 'number' ? dim : undefined));
}

const declared = new WeakMap<GraphProto, ReadonlyMap<string, ValueInfoProto>>();

function declarations(graph: GraphProto): ReadonlyMap<string, ValueInfoProto> {
  let known = declared.get(graph);
  if (known === undefined) {
    known = new Map([...graph.input, ...graph.valueInfo, ...graph.output].map((info) => [info.name, info]));
    declared.set(graph, known);
  }
  return known;
}
