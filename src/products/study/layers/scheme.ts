import { inferDtypes } from '../../../formats/onnx/dtype-inference.js';
import { viewModel } from '../../../formats/onnx/model.js';
import type { ValueFacts } from '../../../formats/onnx/model-facts.js';
import type { NodeProto } from '../../../formats/onnx/onnx_pb.js';
import { interfaceOf } from '../../../formats/onnx/value-facts.js';
import { dtypes } from '../../../formats/tensor/dtype.js';
import type { IoContract, PrecisionScheme } from './quantized-result.js';

/** The facts of a model that are known without running it. */
export interface QuantizedModel {
  readonly scheme: PrecisionScheme;
  readonly io: IoContract;
}

/** The precision of a node without codes. */
export const FLOATING = 'fp32_fp16';

const names: Readonly<Record<string, string>> = { float8_e4m3fn: 'fp8', float4_e2m1fn: 'fp4' };

/** Reads what each node of a model computes in. Throws what opening a model throws. */
export function readQuantized(path: string): QuantizedModel {
  return viewModel(path, (model) => {
    const nodes = model.proto.graph!.node;
    const { inputs, outputs } = interfaceOf(model.proto);
    const { types } = inferDtypes(model.proto).graph;
    const isPair = ({ opType }: NodeProto) => opType === 'QuantizeLinear' || opType === 'DequantizeLinear';
    const codes = new Map<string, string>();
    for (const node of nodes.filter(isPair)) {
      const [input = '', , zeroPoint = ''] = node.input;
      const dtype = String(
        types.get(node.opType === 'QuantizeLinear' ? (node.output[0] ?? '') : input) ?? types.get(zeroPoint),
      );
      const value = node.opType === 'QuantizeLinear' ? input : (node.output[0] ?? '');
      codes.set(value, names[dtype] ?? dtype);
    }
    const precisionOf = (node: NodeProto): string =>
      [...node.input, ...node.output].map((name) => codes.get(name)).find((code) => code !== undefined) ??
      FLOATING;
    const described = nodes
      .filter((node) => !isPair(node))
      .map((node) => ({
        name: node.name,
        op_type: node.opType,
        precision: precisionOf(node),
        inputs: node.input.filter((name) => name !== ''),
        outputs: node.output.filter((name) => name !== ''),
      }));
    const counts: Record<string, number> = {};
    for (const { precision } of described) counts[precision] = (counts[precision] ?? 0) + 1;
    const bindings = (values: readonly ValueFacts[]): IoContract['inputs'] =>
      values.map(({ name, dtype, shape }) => {
        const known = Object.entries(dtypes).find(([id]) => id === dtype)?.[1];
        return { name, dtype: known?.onnx ?? 0, shape: [...(shape ?? [])] };
      });
    return {
      scheme: { model_path: path, num_nodes: nodes.length, counts, nodes: described },
      io: { inputs: bindings(inputs), outputs: bindings(outputs) },
    };
  });
}
