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
  /** What becomes of each node whose name matches. */
  readonly rewrites?: readonly { readonly node: RegExp; readonly rewrite: Rewrite }[];
  /** Parts of the names of two layers, each of which has the weights of the other. */
  readonly swapped?: readonly [string, string];
}

/** A node as a network is about to add it. */
export interface PlannedNode {
  readonly opType: string;
  readonly inputs: readonly string[];
  readonly attributes: Attributes;
}

/** Another node in the place of one; `network` adds what it needs. */
export type Rewrite = (node: PlannedNode, network: VariantNetwork) => Partial<PlannedNode>;

const PRODUCTS = new Set(['Conv', 'ConvTranspose', 'MatMul', 'Gemm', 'LSTM', 'GRU']);

/** A network that can be written as it is, broken, or as a healthy twin. */
export class VariantNetwork extends Network {
  readonly graph: GraphBuilder;
  /** What no weight and no node has matched. */
  readonly unmatched: Set<RegExp | string>;
  readonly #seed: number;
  readonly #variant: Variant;
  readonly #weights = new Map<string, readonly number[]>();

  constructor(graph: GraphBuilder, seed: number, variant: Variant) {
    super(graph, seed);
    this.graph = graph;
    this.#seed = seed;
    this.#variant = variant;
    const { edits = [], rewrites = [], swapped = [] } = variant;
    this.unmatched = new Set([
      ...edits.map(({ weight }) => weight),
      ...rewrites.map(({ node }) => node),
      ...swapped,
    ]);
  }

  /** `made` makes a value of the one that is drawn for its place. */
  override weight(
    name: string,
    shape: readonly number[],
    distribution: Distribution,
    made: (drawn: number, index: number) => number = (drawn) => drawn,
  ): string {
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
    const { mean = 0, deviation, zeroAt } = distribution;
    new RandomStream(this.#seed, this.#drawnAs(name)).fillNormal(values, mean, deviation);
    if (zeroAt !== undefined) for (let i = 0; i < values.length; i++) if (zeroAt(i)) values[i] = 0;
    return this.parameter(name, shape, values.map(made));
  }

  /** The name by which a weight is drawn. */
  #drawnAs(name: string): string {
    const [one, other] = this.#variant.swapped ?? [];
    for (const [part, its] of [
      [one, other],
      [other, one],
    ])
      if (part !== undefined && name.includes(part)) {
        this.unmatched.delete(part);
        return name.replace(part, its!);
      }
    return name;
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
    const rewritten = this.#rewritten(name, { opType, inputs, attributes });
    return this.#computed(name, rewritten, output);
  }

  #computed(name: string, { opType, inputs, attributes }: PlannedNode, output: string): string {
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
    const planned = this.#rewritten(name, { opType, inputs, attributes });
    const isNarrow = this.#variant.arithmetic === 'tf32' && PRODUCTS.has(opType);
    const given = isNarrow ? this.#narrow(name, planned.inputs) : planned.inputs;
    return super.nodes(planned.opType, name, given, planned.attributes, count);
  }

  #rewritten(name: string, planned: PlannedNode): PlannedNode {
    let now = planned;
    for (const { node, rewrite } of this.#variant.rewrites ?? []) {
      if (!node.test(name)) continue;
      this.unmatched.delete(node);
      now = { ...now, ...rewrite(now, this) };
    }
    return now;
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
