import type { GraphView } from './graph.js';
import { attributeOf } from './node-types.js';
import type { TensorProto } from './onnx_pb.js';

const [INT32, INT64] = [6, 7];

/** The values of a small constant of integers, where the exporter wrote them into the file; undefined for other types and places. */
export function smallIntegers(tensor: TensorProto | undefined): readonly number[] | undefined {
  if (tensor?.dataType !== INT32 && tensor?.dataType !== INT64) return undefined;
  if (tensor.int64Data.length > 0) return tensor.int64Data.map(Number);
  if (tensor.int32Data.length > 0) return tensor.int32Data;
  const bytes = tensor.rawData;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return tensor.dataType === INT32
    ? Array.from({ length: bytes.byteLength >> 2 }, (_, index) => view.getInt32(index * 4, true))
    : Array.from({ length: bytes.byteLength >> 3 }, (_, index) => Number(view.getBigInt64(index * 8, true)));
}

/** The tensor that a name stands for in a graph or those around it: an initializer, or what a Constant node holds; undefined for anything computed. */
export function constantTensor(view: GraphView, name: string): TensorProto | undefined {
  const stored = view.graph?.initializer.find((tensor) => tensor.name === name);
  if (stored !== undefined) return stored;
  const producer = view.nodes.find(({ output }) => output.includes(name));
  if (producer !== undefined)
    return producer.opType === 'Constant' ? attributeOf(producer, 'value')?.t : undefined;
  return view.parent === undefined ? undefined : constantTensor(view.parent, name);
}
