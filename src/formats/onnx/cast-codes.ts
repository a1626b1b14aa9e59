import { type Dtype, dtypes } from '../tensor/dtype.js';
import { type GraphUses, isOnnxDomain, rearrangers } from './graph.js';
import { attributeOf } from './node-types.js';
import type { GraphProto, NodeProto, TensorProto } from './onnx_pb.js';

/** Stored INT8 or UINT8 numbers that a Cast turns into floating point: weights that were quantized without a DequantizeLinear. */
export interface CastCodes {
  readonly codes: TensorProto;
  /** The value that holds them. */
  readonly name: string;
  /** The nodes that move them in front of the Cast; nothing else reads what these make. */
  readonly movers: readonly NodeProto[];
  readonly cast: NodeProto;
}

const movers: ReadonlySet<string> = new Set(rearrangers);
const codeTypes: ReadonlySet<number> = new Set([dtypes.int8.onnx, dtypes.uint8.onnx]);
const floatTypes: ReadonlySet<number> = new Set(
  (['float32', 'float16', 'bfloat16'] as const satisfies readonly Dtype[]).map((type) => dtypes[type].onnx),
);

/** The node that alone reads a value of a graph; undefined for an output too. */
export function onlyReader(name: string, graph: GraphProto, uses: GraphUses): NodeProto | undefined {
  const [first, ...others] = uses.readers(name);
  const isOutput = graph.output.some((output) => output.name === name);
  return others.length === 0 && !isOutput ? first : undefined;
}

/** Every such place of one graph, without its bodies. */
export function castCodes(graph: GraphProto, uses: GraphUses): readonly CastCodes[] {
  return graph.node.flatMap((cast) => {
    if (cast.opType !== 'Cast' || !isOnnxDomain(cast.domain)) return [];
    if (!floatTypes.has(Number(attributeOf(cast, 'to')?.i ?? 0))) return [];
    const between: NodeProto[] = [];
    let [name = ''] = cast.input;
    for (;;) {
      const codes = uses.constants.get(name);
      if (codes !== undefined)
        return codeTypes.has(codes.dataType) ? [{ codes, name, movers: between, cast }] : [];
      const mover = uses.producers.get(name);
      if (mover === undefined || !movers.has(mover.opType) || !isOnnxDomain(mover.domain)) return [];
      if (onlyReader(name, graph, uses) === undefined || between.includes(mover)) return [];
      between.unshift(mover);
      name = mover.input[0] ?? '';
    }
  });
}
