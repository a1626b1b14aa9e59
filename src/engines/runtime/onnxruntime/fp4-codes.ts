import { create } from '@bufbuild/protobuf';
import { inferDtypes } from '../../../formats/onnx/dtype-inference.js';
import { visitNodes } from '../../../formats/onnx/graph.js';
import type { OnnxModel } from '../../../formats/onnx/model.js';
import {
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  TensorProtoSchema,
} from '../../../formats/onnx/onnx_pb.js';
import { onnxNumber } from '../../../formats/onnx/values.js';
import type { WeightStream } from '../../../formats/onnx/weight.js';
import { floatTensor } from '../../../formats/tensor/tensor.js';

/** Twice the value of each FP4 code (E2M1: sign, then 0, 0.5, 1, 1.5, 2, 3, 4, 6). */
const DOUBLED = Int8Array.of(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
const FP4 = onnxNumber('float4_e2m1fn');
const scaleTypes = ['float32', 'float16', 'bfloat16'] as const;
type ScaleType = (typeof scaleTypes)[number];

/**
 * ONNX Runtime 1.30 has no kernel for FP4. Rewrites stored FP4 weights of the main graph, in place, for the DequantizeLinear nodes that read them: int8 codes
 * of twice the value beside half the scale, which are the same numbers unless half the scale is subnormal. Returns what is to be written in the place of the
 * codes. Weights that another operator or the body of a node reads stay.
 */
export function fp4AsInt8(model: OnnxModel): ReadonlyMap<TensorProto, WeightStream> {
  const { graph } = model.proto;
  const stored = graph?.initializer.filter(({ dataType }) => dataType === FP4) ?? [];
  const replaced = new Map<TensorProto, WeightStream>();
  if (graph === undefined || stored.length === 0) return replaced;
  const { types } = inferDtypes(model.proto).graph;
  const main = new Set(graph.node);
  const all = Array.from(visitNodes(model.proto), ({ node }) => node);
  /** New nodes before those that read them. */
  const before = new Map<NodeProto, NodeProto[]>();
  const halves = new Set<ScaleType>();
  for (const tensor of stored) {
    const reading = all.filter(({ input }) => input.includes(tensor.name));
    const scales = reading.map(({ input }) => types.get(input[1] ?? ''));
    const isCodes = (node: NodeProto) =>
      main.has(node) &&
      node.opType === 'DequantizeLinear' &&
      node.input[0] === tensor.name &&
      (node.input[2] ?? '') === '';
    if (!reading.every(isCodes) || !scales.every(isScale)) continue;
    replaced.set(tensor, doubledCodes(model.weight(tensor)));
    for (const [index, node] of reading.entries()) {
      const dtype = scales[index]!;
      halves.add(dtype);
      const scale = `${node.output[0]}__half_scale`;
      before.set(node, [
        create(NodeProtoSchema, {
          opType: 'Mul',
          name: scale,
          input: [node.input[1]!, halfOf(dtype)],
          output: [scale],
        }),
      ]);
      node.input[1] = scale;
    }
  }
  graph.node = graph.node.flatMap((node) => [...(before.get(node) ?? []), node]);
  for (const dtype of halves)
    graph.initializer.push(
      create(TensorProtoSchema, {
        name: halfOf(dtype),
        dataType: onnxNumber(dtype),
        rawData: floatTensor(dtype, [], Float32Array.of(0.5)).bytes,
      }),
    );
  return replaced;
}

const isScale = (type: string | undefined): type is ScaleType => scaleTypes.some((each) => each === type);

const halfOf = (dtype: ScaleType): string => `trtforge/half/${dtype}`;

/** The first of two codes is in the low bits. */
function doubledCodes(source: WeightStream & { readonly elements: number }): WeightStream {
  return {
    dtype: 'int8',
    byteLength: source.elements,
    chunks: function* (chunkBytes = 1 << 20) {
      let left = source.elements;
      for (const packed of source.chunks(chunkBytes / 2)) {
        const codes = new Int8Array(2 * packed.length);
        for (const [index, pair] of packed.entries()) {
          codes[2 * index] = DOUBLED[pair & 15]!;
          codes[2 * index + 1] = DOUBLED[pair >>> 4]!;
        }
        const used = Math.min(left, codes.length);
        left -= used;
        yield new Uint8Array(codes.buffer, 0, used);
      }
    },
  };
}
