import type { GraphBuilder } from 'trtforge/onnx';
import { type Attributes, type Distribution, Network } from '../../examples/models/network.js';
import { RandomStream } from '../../examples/models/random.js';

/** Changes the values of one weight in place; `stream` belongs to the model's seed and the weight's name. */
export type Edit = (values: Float32Array, shape: readonly number[], stream: RandomStream) => void;

/** How a twin computes: as written, sums in another order, or with 10 mantissa bits in the weights or in both factors of every product. */
export type Arithmetic = 'plain' | 'reordered' | 'fp16-weights' | 'tf32';

export interface Variant {
  readonly arithmetic?: Arithmetic;
  /** What is done to each weight whose name matches. */
  readonly edits?: readonly { readonly weight: RegExp; readonly edit: Edit }[];
}

const PRODUCTS = new Set(['Conv', 'ConvTranspose', 'MatMul', 'Gemm', 'LSTM', 'GRU']);

/** A network that can be written as it is, broken, or as a healthy twin. */
export class VariantNetwork extends Network {
  readonly graph: GraphBuilder;
  /** Names of the edits' expressions that no weight has matched. */
  readonly unmatched: Set<RegExp>;
  readonly #seed: number;
  readonly #variant: Variant;
  readonly #weights = new Map<string, readonly number[]>();

  constructor(graph: GraphBuilder, seed: number, variant: Variant) {
    super(graph, seed);
    this.graph = graph;
    this.#seed = seed;
    this.#variant = variant;
    this.unmatched = new Set(variant.edits?.map(({ weight }) => weight));
  }

  override weight(name: string, shape: readonly number[], distribution: Distribution): string {
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
    const { mean = 0, deviation, zeroAt } = distribution;
    new RandomStream(this.#seed, name).fillNormal(values, mean, deviation);
    if (zeroAt !== undefined) for (let i = 0; i < values.length; i++) if (zeroAt(i)) values[i] = 0;
    return this.parameter(name, shape, values);
  }

  /** A float32 parameter of these values, edited and rounded as the variant has it. */
  parameter(name: string, shape: readonly number[], values: Float32Array): string {
    const { edits = [], arithmetic } = this.#variant;
    for (const { weight, edit } of edits) {
      if (!weight.test(name)) continue;
      this.unmatched.delete(weight);
      edit(values, shape, new RandomStream(this.#seed, `${name}/edit`));
    }
    if (arithmetic === 'tf32' || arithmetic === 'fp16-weights') roundToTenBits(values);
    this.#weights.set(name, shape);
    return this.computed(name, shape, (index) => values[index]!);
  }

  override node(
    opType: string,
    name: string,
    inputs: readonly string[],
    attributes: Attributes = {},
    output = `${name}.out`,
  ): string {
    const { arithmetic } = this.#variant;
    if (arithmetic === 'tf32' && PRODUCTS.has(opType))
      return super.node(opType, name, this.#narrow(name, inputs), attributes, output);
    if (arithmetic === 'reordered' && opType === 'Add' && inputs.length === 2)
      return super.node(opType, name, [inputs[1]!, inputs[0]!], attributes, output);
    const [rows = 0, columns = 0] = this.#weights.get(inputs[1] ?? '') ?? [];
    if (arithmetic === 'reordered' && opType === 'MatMul' && columns > 0 && rows % 2 === 0)
      return this.#halves(name, inputs[0]!, inputs[1]!, rows / 2, output);
    return super.node(opType, name, inputs, attributes, output);
  }

  override nodes(
    opType: string,
    name: string,
    inputs: readonly string[],
    attributes: Attributes,
    count: number,
  ): string[] {
    const isNarrow = this.#variant.arithmetic === 'tf32' && PRODUCTS.has(opType);
    return super.nodes(opType, name, isNarrow ? this.#narrow(name, inputs) : inputs, attributes, count);
  }

  /** Activations of a product as TF32 has them: FP16 has the same 10 bits of mantissa, and these values are within its range. */
  #narrow(name: string, inputs: readonly string[]): string[] {
    return inputs.map((input, index) => {
      if (input === '' || this.#weights.has(input)) return input;
      const half = super.node('Cast', `${name}.narrow${index}`, [input], { to: 10 });
      return super.node('Cast', `${name}.wide${index}`, [half], { to: 1 });
    });
  }

  /** A product over half of the terms, and over the other half. */
  #halves(name: string, x: string, weight: string, half: number, output: string): string {
    const sizes = this.integers([half, half]);
    const xs = super.nodes('Split', `${name}.left`, [x, sizes], { axis: -1 }, 2);
    const weights = super.nodes('Split', `${name}.right`, [weight, sizes], { axis: 0 }, 2);
    const products = xs.map((part, index) =>
      super.node('MatMul', `${name}.half${index}`, [part, weights[index]!]),
    );
    return super.node('Add', name, products.reverse(), {}, output);
  }
}

/** To the nearest of 10 mantissa bits, even on a tie: TF32, and FP16 within its range. */
function roundToTenBits(values: Float32Array): void {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let i = 0; i < bits.length; i++) {
    const value = bits[i]!;
    bits[i] = (value + 0xfff + ((value >>> 13) & 1)) & ~0x1fff;
  }
}
