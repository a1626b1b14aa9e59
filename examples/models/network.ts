import {
  type AttributeValue,
  attribute,
  type Dimension,
  type GeneratedValues,
  type GraphBuilder,
} from 'trtforge/onnx';
import { RandomStream } from './random.js';

/** Bytes made at a time when the writer names no size. */
const CHUNK_BYTES = 1 << 20;

/** The element types the example models use, with their numbers in ONNX (`TensorProto.DataType`). */
const ONNX_TYPE = { float32: 1, int64: 7 } as const;
export type ExampleDtype = keyof typeof ONNX_TYPE;

/** Plain numbers are integers, as most of ONNX's attributes are; floats are `attribute.float(…)`. */
export type Attributes = Readonly<Record<string, number | string | readonly number[] | AttributeValue>>;

/** A normal distribution, cut off at ±4 deviations; the mean is 0 unless given. */
export interface Distribution {
  readonly mean?: number;
  readonly deviation: number;
  /** Indices of the flattened tensor whose values are zero instead. */
  readonly zeroAt?: (index: number) => boolean;
}

/** Names, weights and constants over a graph builder: methods return the name of the value they made. */
export class Network {
  /** Parameters so far (constants of the graph itself not counted). */
  parameters = 0;
  readonly #graph: GraphBuilder;
  readonly #seed: number;
  readonly #constants = new Set<string>();

  constructor(graph: GraphBuilder, seed: number) {
    this.#graph = graph;
    this.#seed = seed;
  }

  input(name: string, dtype: ExampleDtype, shape: readonly Dimension[]): string {
    return this.#graph.input(name, dtype, shape);
  }

  output(name: string, dtype: ExampleDtype, shape: readonly Dimension[]): void {
    this.#graph.output(name, dtype, shape);
  }

  /** A node with one output, called `output` or after the node. */
  node(
    opType: string,
    name: string,
    inputs: readonly string[],
    attributes: Attributes = {},
    output = `${name}.out`,
  ): string {
    return this.#add(opType, name, inputs, attributes, [output])[0]!;
  }

  /** A node with several outputs. */
  nodes(
    opType: string,
    name: string,
    inputs: readonly string[],
    attributes: Attributes,
    count: number,
  ): string[] {
    const outputs = Array.from({ length: count }, (_, index) => `${name}.out${index}`);
    return this.#add(opType, name, inputs, attributes, outputs);
  }

  cast(name: string, x: string, dtype: ExampleDtype, output?: string): string {
    return this.node('Cast', name, [x], { to: ONNX_TYPE[dtype] }, output);
  }

  /** A float32 parameter whose values depend on the model's seed and its own name only. */
  weight(name: string, shape: readonly number[], { mean = 0, deviation, zeroAt }: Distribution): string {
    return this.#parameter(name, shape, () => {
      const stream = new RandomStream(this.#seed, name);
      let filled = 0;
      return (target) => {
        stream.fillNormal(target, mean, deviation);
        if (zeroAt !== undefined)
          for (let i = 0; i < target.length; i++) if (zeroAt(filled + i)) target[i] = 0;
        filled += target.length;
      };
    });
  }

  /** A float32 parameter by formula: the value at each index of the flattened tensor. */
  computed(name: string, shape: readonly number[], valueAt: (index: number) => number): string {
    return this.#parameter(name, shape, () => {
      let index = 0;
      return (target) => {
        for (let i = 0; i < target.length; i++) target[i] = valueAt(index++);
      };
    });
  }

  /** An int64 constant of one dimension. */
  integers(values: readonly (number | bigint)[]): string {
    const bytes = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
    return this.#constant(`integers_${values.join('_')}`, { dtype: 'int64', shape: [values.length], bytes });
  }

  /** An int64 constant without dimensions. */
  integer(value: number): string {
    const bytes = new Uint8Array(BigInt64Array.of(BigInt(value)).buffer);
    return this.#constant(`integer_${value}`, { dtype: 'int64', shape: [], bytes });
  }

  /** A float32 constant without dimensions. */
  scalar(value: number): string {
    const bytes = new Uint8Array(Float32Array.of(value).buffer);
    return this.#constant(`scalar_${value}`, { dtype: 'float32', shape: [], bytes });
  }

  #add(
    opType: string,
    name: string,
    inputs: readonly string[],
    attributes: Attributes,
    outputs: string[],
  ): string[] {
    const typed = Object.entries(attributes).map(([key, value]) => [key, typedAttribute(value)]);
    this.#graph.node(opType, { name, inputs, outputs, attributes: Object.fromEntries(typed) });
    return outputs;
  }

  #parameter(name: string, shape: readonly number[], open: () => (target: Float32Array) => void): string {
    const elements = shape.reduce((product, size) => product * size, 1);
    this.parameters += elements;
    const values: GeneratedValues = {
      dtype: 'float32',
      shape,
      chunks: (chunkBytes = CHUNK_BYTES) => generated(elements, chunkBytes, open()),
    };
    return this.#graph.initializer(name, values);
  }

  /** Equal constants are one initializer, as exporters' optimizers leave them. */
  #constant(name: string, value: Parameters<GraphBuilder['initializer']>[1]): string {
    if (this.#constants.has(name)) return name;
    this.#constants.add(name);
    return this.#graph.initializer(name, value);
  }
}

function typedAttribute(value: Attributes[string]): AttributeValue {
  if (typeof value === 'number') return attribute.int(value);
  if (typeof value === 'string') return attribute.string(value);
  return typeof value === 'function' ? value : attribute.ints(value);
}

function* generated(
  elements: number,
  chunkBytes: number,
  fill: (target: Float32Array) => void,
): Generator<Uint8Array> {
  const buffer = new Float32Array(Math.min(elements, Math.max(4, 4 * Math.ceil(chunkBytes / 16))));
  for (let done = 0; done < elements; ) {
    const part = buffer.subarray(0, Math.min(buffer.length, elements - done));
    fill(part);
    yield new Uint8Array(part.buffer, 0, part.byteLength);
    done += part.length;
  }
}
