import { plural } from '../../../base/text/quantity.js';
import { inferDtypes } from '../../../formats/onnx/dtype-inference.js';
import { visitGraphs, visitTensors } from '../../../formats/onnx/graph.js';
import type { TensorProto, TypeProto } from '../../../formats/onnx/onnx_pb.js';
import { interfaceOf } from '../../../formats/onnx/values.js';
import { bytesOf, type WeightStream } from '../../../formats/onnx/weight.js';
import { dtypes } from '../../../formats/tensor/dtype.js';
import { type Done, type Editing, IN_MEMORY, impossible } from '../edited-model.js';

const [DOUBLE, FLOAT] = [dtypes.float64.onnx, dtypes.float32.onnx];
const LARGEST = 2 ** 128 - 2 ** 104;
/** Attributes that choose a type. */
const CHOOSES_TYPE = /^(?:to|dtype|output_dtype|output_datatype|stash_type)$/;

/** Makes everything FP32 that is float64, as TensorRT computes it. Throws TF_EDIT_IMPOSSIBLE where an operator takes no FP32. */
export function narrowDoubles(editing: Editing): Done {
  const { proto } = editing.model;
  const { inputs, outputs } = interfaceOf(proto);
  let count = 0;
  for (const { tensor } of visitTensors(proto))
    if (tensor.dataType === DOUBLE) count += narrowWeight(editing, tensor);
  for (const { graph, nodes, function: fn } of visitGraphs(proto)) {
    for (const { type } of [...(graph?.input ?? []), ...(graph?.output ?? []), ...(graph ?? fn)!.valueInfo])
      count += narrowType(type);
    for (const attribute of nodes.flatMap((node) => node.attribute))
      if (CHOOSES_TYPE.test(attribute.name) && Number(attribute.i) === DOUBLE) {
        attribute.i = BigInt(FLOAT);
        count++;
      }
  }
  if (count === 0) return null;
  const [clash] = inferDtypes(proto).violations;
  if (clash !== undefined) throw impossible(`The model cannot be FP32: ${clash.where}: ${clash.message}.`);
  editing.isRounded = true;
  for (const [values, links] of [
    [inputs, editing.inputs],
    [outputs, editing.outputs],
  ] as const)
    for (const { name, dtype } of values)
      if (dtype === 'float64') links.set(name, { ...links.get(name)!, cast: 'float32' });
  return plural(count, 'type');
}

/** The number of types that changed. */
function narrowType(type: TypeProto | undefined): number {
  const { value } = type?.value ?? {};
  if (value === undefined) return 0;
  if (value.$typeName === 'onnx.TypeProto.Tensor' || value.$typeName === 'onnx.TypeProto.SparseTensor') {
    if (value.elemType !== DOUBLE) return 0;
    value.elemType = FLOAT;
    return 1;
  }
  return narrowType(value.$typeName === 'onnx.TypeProto.Map' ? value.valueType : value.elemType);
}

function narrowWeight(editing: Editing, tensor: TensorProto): number {
  const stream = narrowed(editing.weight(tensor));
  const rawData = stream.byteLength <= IN_MEMORY ? bytesOf(stream) : undefined;
  tensor.dataType = FLOAT;
  if (rawData === undefined) editing.streams.set(tensor, stream);
  else
    Object.assign(tensor, {
      rawData,
      doubleData: [],
      externalData: [],
      dataLocation: 0,
      $unknown: undefined,
    });
  return 1;
}

/** Numbers beyond FP32 become its largest, as TensorRT has them. */
const narrowed = (source: WeightStream): WeightStream => ({
  dtype: 'float32',
  byteLength: source.byteLength / 2,
  *chunks(chunkBytes?: number) {
    for (const { buffer, byteOffset, byteLength } of source.chunks(chunkBytes && 2 * chunkBytes)) {
      const values = new Float64Array(buffer, byteOffset, byteLength >> 3);
      const within = (value: number) =>
        Number.isFinite(value) ? Math.max(-LARGEST, Math.min(LARGEST, value)) : value;
      yield new Uint8Array(Float32Array.from(values, within).buffer);
    }
  },
});
