import { type Dtype, dtypes } from '../tensor/dtype.js';
import { isOnnxDomain, usedNames } from './graph.js';
import { attributeOf } from './node-types.js';
import type { GraphProto, NodeProto, TensorProto } from './onnx_pb.js';

/** Stored INT8 or UINT8 numbers that a Cast turns into floating point: weights that were quantized without a DequantizeLinear. */
export interface CastCodes {
  readonly codes: TensorProto;
  /** The value that holds them. */
  readonly name: string;
  /** What moves them in front of the Cast; nothing else reads what these make. */
  readonly movers: readonly NodeProto[];
  readonly cast: NodeProto;
}

/** Operators whose output has the values of their first input, and reads other inputs as places. */
const movers: ReadonlySet<string> = new Set(
  'Identity Reshape Flatten Squeeze Unsqueeze Transpose Slice Gather Expand Tile'.split(' '),
);
const codeTypes: ReadonlySet<number> = new Set([dtypes.int8.onnx, dtypes.uint8.onnx]);
const floatTypes: ReadonlySet<number> = new Set(
  (['float32', 'float16', 'bfloat16'] as const satisfies readonly Dtype[]).map((type) => dtypes[type].onnx),
);

/** Who makes and who reads the values of a graph. */
export class GraphUses {
  readonly constants = new Map<string, TensorProto>();
  readonly #producers = new Map<string, NodeProto>();
  readonly #readers = new Map<string, (NodeProto | null)[]>();

  constructor({ initializer, node, output }: GraphProto) {
    for (const tensor of initializer) this.constants.set(tensor.name, tensor);
    for (const each of node) {
      const stored = each.opType === 'Constant' ? attributeOf(each, 'value')?.t : undefined;
      if (stored !== undefined) this.constants.set(each.output[0] ?? '', stored);
      for (const name of each.output) this.#producers.set(name, each);
      for (const name of usedNames(each)) this.#read(name, each);
    }
    for (const { name } of output) this.#read(name, null);
  }

  #read(name: string, reader: NodeProto | null): void {
    const known = this.#readers.get(name);
    if (known === undefined) this.#readers.set(name, [reader]);
    else known.push(reader);
  }

  producer(name: string): NodeProto | undefined {
    return this.#producers.get(name);
  }

  isRead(name: string): boolean {
    return this.#readers.has(name);
  }

  /** The node that alone reads a value; undefined for an output of the graph too. */
  onlyReader(name: string): NodeProto | undefined {
    const [first, ...others] = this.#readers.get(name) ?? [];
    return others.length === 0 ? (first ?? undefined) : undefined;
  }
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
      const mover = uses.producer(name);
      if (mover === undefined || !movers.has(mover.opType) || !isOnnxDomain(mover.domain)) return [];
      if (uses.onlyReader(name) === undefined || between.includes(mover)) return [];
      between.unshift(mover);
      name = mover.input[0] ?? '';
    }
  });
}
