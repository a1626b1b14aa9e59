import {
  type AttributeValue,
  attribute,
  buildModel,
  GraphBuilder,
  type ModelLike,
} from '../../../../src/formats/onnx/index.js';
import { type Dtype, elementCount, packedBytes } from '../../../../src/formats/tensor/dtype.js';
import { floatTensor } from '../../../../src/formats/tensor/tensor.js';

export interface PairOptions {
  /** Of the codes; default int8. */
  readonly dtype?: Dtype;
  /** One, or one for each index of `axis`; default 0.05. */
  readonly scales?: readonly number[];
  readonly axis?: number;
  /** Of all codes; default 0, null leaves zero points out. */
  readonly zeroPoint?: number | null;
  /** The value that the scale is; default a constant. */
  readonly scale?: string;
  /** Whether a Clip of the codes is in front of the DequantizeLinear, as Brevitas has it. */
  readonly isClipped?: boolean;
}

export interface WeightOptions extends PairOptions {
  readonly scaleShape?: readonly number[];
  readonly block?: number;
}

/** A graph with pairs of QuantizeLinear and DequantizeLinear; its values are FP32, its codes 0. */
export class QuantizedNet extends GraphBuilder {
  constructor() {
    super('quantized');
  }

  /** Quantizes and dequantizes a value; its nodes are named `NAME_Q` and `NAME_DQ`. */
  pair(value: string, options: PairOptions = {}): string {
    const { inputs, attributes } = this.#parameters(value, options);
    this.node('QuantizeLinear', {
      name: `${value}_Q`,
      inputs: [value, ...inputs],
      outputs: [`${value}_codes`],
      attributes,
    });
    return this.#dequantized(value, inputs, attributes, options);
  }

  /** A stored weight behind a DequantizeLinear. */
  weight(name: string, shape: readonly number[], options: WeightOptions = {}): string {
    const { dtype = 'int8', block } = options;
    this.initializer(`${name}_codes`, {
      dtype,
      shape,
      bytes: new Uint8Array(packedBytes(dtype, elementCount(shape))).fill(1),
    });
    const { inputs, attributes } = this.#parameters(name, options);
    if (block !== undefined) attributes.block_size = attribute.int(block);
    return this.#dequantized(name, inputs, attributes, options);
  }

  /** A float weight. */
  floats(name: string, shape: readonly number[]): string {
    return this.initializer(
      name,
      floatTensor('float32', shape, new Float32Array(elementCount(shape)).fill(0.1)),
    );
  }

  op(
    opType: string,
    inputs: readonly string[],
    output: string,
    attributes: Record<string, AttributeValue> = {},
  ) {
    this.node(opType, { name: `${output}_${opType}`, inputs, outputs: [output], attributes });
    return output;
  }

  model(opset = 21): ModelLike {
    return buildModel(this, { opset });
  }

  #dequantized(
    name: string,
    inputs: readonly string[],
    attributes: Readonly<Record<string, AttributeValue>>,
    { isClipped = false }: PairOptions,
  ): string {
    const codes = isClipped ? this.op('Clip', [`${name}_codes`], `${name}_clipped`) : `${name}_codes`;
    this.node('DequantizeLinear', {
      name: `${name}_DQ`,
      inputs: [codes, ...inputs],
      outputs: [`${name}_dq`],
      attributes,
    });
    return `${name}_dq`;
  }

  #parameters(name: string, options: WeightOptions) {
    const { dtype = 'int8', scales = [0.05], axis, zeroPoint = 0, scale, scaleShape } = options;
    const shape = scaleShape ?? (scales.length === 1 ? [] : [scales.length]);
    const inputs = [
      scale ?? this.initializer(`${name}_scale`, floatTensor('float32', shape, fill(shape, scales))),
    ];
    if (zeroPoint !== null) {
      const bytes = new Uint8Array(packedBytes(dtype, elementCount(shape))).fill(zeroPoint);
      inputs.push(this.initializer(`${name}_zero`, { dtype, shape, bytes }));
    }
    const attributes: Record<string, AttributeValue> =
      axis === undefined ? {} : { axis: attribute.int(axis) };
    return { inputs, attributes };
  }
}

const fill = (shape: readonly number[], scales: readonly number[]) =>
  Float32Array.from({ length: elementCount(shape) }, (_, index) => scales[index % scales.length]!);

export const perChannel = (channels: number): number[] => new Array(channels).fill(0.01);

export interface ConvOptions {
  /** Null: not quantized. */
  readonly activations?: PairOptions | null;
  readonly weights?: WeightOptions | null;
  readonly opType?: 'Conv' | 'ConvTranspose';
  /** What computes between the pair and the convolution. */
  readonly between?: string;
}

/** x [4,64,16,16] → convolution `y0_Conv` of 3×3 → Relu → y. */
export function convolution({
  activations = {},
  weights = { scales: perChannel(64), axis: 0 },
  opType = 'Conv',
  between,
}: ConvOptions = {}): QuantizedNet {
  const net = new QuantizedNet();
  const shape = [64, 64, 3, 3];
  net.input('x', 'float32', [4, 64, 16, 16]);
  const paired = activations === null ? 'x' : net.pair('x', activations);
  const data = between === undefined ? paired : net.op(between, [paired], 'between');
  const filter = weights === null ? net.floats('w', shape) : net.weight('w', shape, weights);
  net.op(opType, [data, filter], 'y0', { pads: attribute.ints([1, 1, 1, 1]) });
  net.op('Relu', ['y0'], 'y');
  net.output('y', 'float32', [4, 64, 16, 16]);
  return net;
}

/** x [64,256] → product `y_MatMul` or `y_Gemm` with [256,128] (transposed: [128,256]) → y. */
export function product(
  activations: PairOptions | null,
  weights: WeightOptions,
  opType: 'MatMul' | 'Gemm' = 'MatMul',
  transposed = false,
): QuantizedNet {
  const net = new QuantizedNet();
  net.input('x', 'float32', [64, 256]);
  const data = activations === null ? 'x' : net.pair('x', activations);
  const matrix = net.weight('w', transposed ? [128, 256] : [256, 128], weights);
  net.op(opType, [data, matrix], 'y', transposed ? { transB: attribute.int(1) } : {});
  net.output('y', 'float32', [64, 128]);
  return net;
}

/** softmax(q · k) · v of 4 heads with pairs on these of `q k v scores probabilities result`; what reads the result is `y_Relu`. */
export function attention(
  pairs: readonly string[],
  dtype: Dtype = 'int8',
  batch: number | string = 2,
  head = 64,
  positions = 64,
): QuantizedNet {
  const net = new QuantizedNet();
  const paired = (value: string) => (pairs.includes(value) ? net.pair(value, { dtype }) : value);
  for (const name of ['q', 'v']) net.input(name, 'float32', [batch, 4, positions, head]);
  net.input('k', 'float32', [batch, 4, head, positions]);
  net.op('MatMul', [paired('q'), paired('k')], 'scores');
  net.op(
    'Mul',
    [paired('scores'), net.initializer('factor', floatTensor('float32', [], Float32Array.of(0.125)))],
    'scaled',
  );
  net.op('Softmax', ['scaled'], 'probabilities', { axis: attribute.int(-1) });
  net.op('MatMul', [paired('probabilities'), paired('v')], 'result');
  net.op('Relu', [paired('result')], 'y');
  net.output('y', 'float32', [batch, 4, positions, head]);
  return net;
}
