import { z } from 'zod';
import { isOnnxOperator } from '../../formats/onnx/operators.js';
import type { EngineLayer } from './result.js';
import { computes } from './summary.js';

/** Facts of a model's nodes, by the names that engines have for them. */
export type NodeOperators = ReadonlyMap<string, { readonly op: string; readonly flops: number | null }>;

/** A layer with its time. */
export interface TimedLayer extends Pick<EngineLayer, 'name' | 'type' | 'onnxNodes' | 'copies'> {
  /** Milliseconds of a run; null where it was not timed. */
  readonly ms: number | null;
}

/** Time by ONNX operator of one engine, or of two beside each other; the largest first. */
export const operatorTimesSchema = z.array(
  z.object({
    op: z.string(),
    /** Of each engine: its layers, and milliseconds of a run; null where none of them was timed. */
    sides: z.array(z.object({ layers: z.int().nonnegative(), ms: z.number().nonnegative().nullable() })),
  }),
);
export type OperatorTime = z.infer<typeof operatorTimesSchema>[number];

/** Operators that take the time of what is fused with them. */
const HEAVY = /^(?:.*Conv.*|Gemm|.*MatMul.*|.*Attention|LSTM|GRU|RNN|Einsum)$/;
const LIGHT = /^(?:QuantizeLinear|DequantizeLinear|Cast|Identity|Constant|Reshape|Squeeze|Unsqueeze)$/;

/** What layers that stand for no operator are listed as. */
const REFORMAT = 'reformat';
const NO_NODE = 'no ONNX node';

/**
 * The node that a layer's time is counted for, so that the time of every layer is counted once: the one with the most FLOPs where the model is known, else the first that
 * multiplies tensors, else the first that is more than a cast. Null for copies and for layers without nodes.
 */
export function leadingNode(layer: Omit<TimedLayer, 'ms'>, nodes?: NodeOperators): string | null {
  if (layer.copies || layer.onnxNodes.length === 0) return null;
  const opOf = (node: string) => nodes?.get(node)?.op ?? operatorInName(node) ?? '';
  const flopsOf = (node: string) => nodes?.get(node)?.flops ?? 0;
  const costly = layer.onnxNodes.reduce((most, node) => (flopsOf(node) > flopsOf(most) ? node : most));
  if (flopsOf(costly) > 0) return costly;
  const find = (test: (op: string) => boolean) => layer.onnxNodes.find((node) => test(opOf(node)));
  return find((op) => HEAVY.test(op)) ?? find((op) => op !== '' && !LIGHT.test(op)) ?? layer.onnxNodes[0]!;
}

/** The ONNX operator that a layer's time is counted for; the layer's own type where the operator is not known. */
export function operatorOf(layer: Omit<TimedLayer, 'ms'>, nodes?: NodeOperators): string {
  if (layer.copies) return REFORMAT;
  const node = leadingNode(layer, nodes);
  if (node === null) return computes(layer) ? NO_NODE : (layer.type ?? NO_NODE);
  return nodes?.get(node)?.op ?? operatorInName(node) ?? layer.type ?? NO_NODE;
}

/** `/layer1/Conv_12` names its operator, as PyTorch's exporter writes it; undefined for other names. */
function operatorInName(node: string): string | undefined {
  const word = /([A-Za-z]+)(?:_\d+)?$/.exec(node.slice(node.lastIndexOf('/') + 1))?.[1] ?? '';
  return isOnnxOperator(word) ? word : undefined;
}

/** Time by ONNX operator. Every layer is in one of them, so that columns add up to the time of all layers. */
export function timesByOperator(
  sides: readonly (readonly TimedLayer[])[],
  nodes: readonly (NodeOperators | undefined)[] = [],
): OperatorTime[] {
  const byOp = new Map<string, { layers: number; ms: number | null }[]>();
  for (const [side, layers] of sides.entries())
    for (const layer of layers) {
      const op = operatorOf(layer, nodes[side]);
      const found = byOp.get(op) ?? sides.map(() => ({ layers: 0, ms: null }));
      byOp.set(op, found);
      const sum = found[side]!;
      sum.layers++;
      if (layer.ms !== null) sum.ms = (sum.ms ?? 0) + layer.ms;
    }
  const most = (each: OperatorTime['sides']) =>
    Math.max(...each.map(({ ms, layers }) => (ms ?? 0) + layers / 1e9));
  return [...byOp]
    .map(([op, found]) => ({ op, sides: found }))
    .sort((one, other) => most(other.sides) - most(one.sides));
}
