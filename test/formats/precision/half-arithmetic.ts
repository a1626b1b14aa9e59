import { create } from '@bufbuild/protobuf';
import { inferDtypes } from '../../../src/formats/onnx/dtype-inference.js';
import { openModel } from '../../../src/formats/onnx/model.js';
import {
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  type TypeProto,
} from '../../../src/formats/onnx/onnx_pb.js';
import type { WeightStream } from '../../../src/formats/onnx/weight.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { bfloat16ToFloat32, float16ToFloat32 } from '../../../src/formats/tensor/low-precision.js';
import { freshPath } from './judge.js';

const FLOAT = 1;
const halves: ReadonlyMap<number, (source: Uint16Array, target: Float32Array) => void> = new Map([
  [10, float16ToFloat32],
  [16, bfloat16ToFloat32],
]);
const numbers: Readonly<Record<string, number>> = { float16: 10, bfloat16: 16 };

/**
 * A model of FP32 that computes what a typed model without bodies states, operator by operator: what is of 16 bits there is rounded to them here as soon as it is
 * made. ONNX Runtime keeps FP32 between neighbouring operators of FP16, and has few of BF16. Returns the path.
 */
export async function roundedAfterEveryNode(path: string): Promise<string> {
  const model = openModel(path);
  const graph = model.proto.graph!;
  const { types } = inferDtypes(model.proto).graph;
  const replacements = new Map<TensorProto, WeightStream>();
  const widened = (tensor: TensorProto) => {
    const widen = halves.get(tensor.dataType);
    if (widen === undefined) return;
    const halves16 = Buffer.concat([...model.weight(tensor).chunks()]);
    const values = new Float32Array(halves16.length / 2);
    widen(new Uint16Array(new Uint8Array(halves16).buffer), values);
    const bytes = new Uint8Array(values.buffer);
    replacements.set(tensor, {
      dtype: 'float32',
      byteLength: bytes.length,
      *chunks() {
        yield bytes;
      },
    });
    tensor.dataType = FLOAT;
  };
  const retype = (type: TypeProto | undefined) => {
    if (type?.value.case === 'tensorType' && halves.has(type.value.value.elemType))
      type.value.value.elemType = FLOAT;
  };
  graph.initializer.forEach(widened);
  for (const { type } of [...graph.input, ...graph.output, ...graph.valueInfo]) retype(type);
  graph.node = graph.node.flatMap((node) => {
    for (const { t } of node.attribute) if (t !== undefined) widened(t);
    const to = node.attribute.find(({ name }) => name === 'to');
    const target = Number(to?.i);
    if (halves.has(target)) to!.i = BigInt(FLOAT);
    const rounding = node.output.flatMap((name, index) => {
      const number = numbers[String(types.get(name))];
      if (number === undefined) return [];
      node.output[index] = `${name}_exact`;
      return [cast(`${name}_exact`, `${name}_16`, number), cast(`${name}_16`, name, FLOAT)];
    });
    return [node, ...rounding];
  });
  const output = freshPath();
  await writeModel(model, output, { replacements });
  model.close();
  return output;
}

const cast = (from: string, to: string, number: number): NodeProto =>
  create(NodeProtoSchema, {
    opType: 'Cast',
    name: `${to}_cast`,
    input: [from],
    output: [to],
    attribute: [
      create(AttributeProtoSchema, { name: 'to', type: AttributeProto_AttributeType.INT, i: BigInt(number) }),
    ],
  });
