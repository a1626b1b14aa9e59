import { create } from '@bufbuild/protobuf';
import {
  type AttributeProto,
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type GraphProto,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  TensorProtoSchema,
} from '../../onnx/onnx_pb.js';
import { onnxNumber } from '../../onnx/values.js';
import type { Dtype } from '../../tensor/dtype.js';
import type { Flow, Operation, Value } from '../flow.js';
import type { QuantizedFormat } from '../formats/format.js';
import { NodeInsertions } from '../node-insertions.js';
import type { BiasOperand } from './bias-correction.js';
import type { Placement } from './placement.js';
import type { WeightOperand } from './weight-operand.js';
import type { WeightScales } from './weight-scales.js';

/** A tensor of codes that are made from a FP32 weight while the model is written. */
export interface QuantizedTensor {
  readonly tensor: TensorProto;
  readonly source: TensorProto;
  readonly scales: WeightScales;
  readonly format: QuantizedFormat;
}

/** The changes made to the graph. */
export interface InsertedQuantizers {
  readonly weights: readonly QuantizedTensor[];
  /** Tensors that no rule needs to check: scales, which are rounded already, and biases that are only a correction, however small. */
  readonly additions: ReadonlySet<TensorProto>;
  readonly pairs: number;
}

/** The scale of an activation and the scales of a weight, which the caller has found. */
export interface Scales {
  activation(value: Value): number;
  weight(operand: WeightOperand): WeightScales;
  /** The biases that change, with what they become. */
  readonly biases: readonly (readonly [BiasOperand, Float32Array])[];
  /** Activations whose QuantizeLinear would make ONNX Runtime's optimizer rewrite what computes them. */
  readonly rewritten: ReadonlySet<Value>;
}

/**
 * Writes a placement into the messages that `flow` was read from: a QuantizeLinear and a DequantizeLinear behind each activation, read by what is
 * quantized and by nothing else; a DequantizeLinear behind the codes of each weight, in the place of the FP32 weight. Everything is FP32, and of the
 * opset that the format needs.
 */
export const insertQuantizers = (
  flow: Flow,
  placement: Placement,
  format: QuantizedFormat,
  scales: Scales,
): InsertedQuantizers => new Inserter(flow, format, scales).run(placement);

class Inserter {
  readonly #flow: Flow;
  readonly #format: QuantizedFormat;
  readonly #scales: Scales;
  readonly #nodes: NodeInsertions;
  readonly #dequantized = new Map<Value, string>();
  /** Dequantized weights by the axis of their scales. */
  readonly #weightNames = new Map<Value, Map<number, string>>();
  /** Transposes of dequantized weights by the name of these. */
  readonly #transposedNames = new Map<string, string>();
  /** Nodes that read the codes of a weight, or another bias, now. */
  readonly #replaced = new Map<Value, Set<NodeProto>>();
  readonly #dropped = new Set<NodeProto>();
  readonly #weights: QuantizedTensor[] = [];
  readonly #additions = new Set<TensorProto>();
  #zeroPoint: string | undefined;

  constructor(flow: Flow, format: QuantizedFormat, scales: Scales) {
    this.#flow = flow;
    this.#format = format;
    this.#scales = scales;
    this.#nodes = new NodeInsertions(flow);
  }

  run({ decisions, activations }: Placement): InsertedQuantizers {
    for (const value of activations) this.#dequantized.set(value, this.#addPair(value));
    for (const { operation: reader, quantized, activations: inputs, weight } of decisions) {
      if (!quantized) continue;
      for (const { operation, index, value } of inputs)
        operation.node.input[index] = this.#dequantized.get(value) ?? value.name;
      if (weight !== undefined) this.#readWeight(reader, weight);
    }
    for (const [bias, values] of this.#scales.biases) this.#replaceBias(bias, values);
    for (const value of this.#replaced.keys()) this.#dropUnread(value);
    this.#nodes.apply(this.#dropped);
    return { weights: this.#weights, additions: this.#additions, pairs: activations.length };
  }

  #addPair(value: Value): string {
    const { graph } = value.scope;
    const scale = this.#addScale(
      graph,
      `${value.name}_scale`,
      [],
      Float32Array.of(this.#scales.activation(value)),
    );
    return this.#pairBehind(
      value,
      this.#scales.rewritten.has(value) ? this.#sumOf(value) : value.name,
      scale,
    );
  }

  /** A Sum of one operand, which ONNX Runtime's optimizer stops at, where it drops an Identity. TensorRT's parser reads it as an Identity, and the plan has nothing of it. */
  #sumOf(value: Value): string {
    const output = this.#nodes.unique(`${value.name}_sum`);
    const place = value.producer?.node ?? value.scope.graph;
    this.#nodes.insertAfter(place, this.#node('Sum', [value.name], output));
    return output;
  }

  /** A QuantizeLinear and a DequantizeLinear of one scale behind what `input` names. */
  #pairBehind(value: Value, input: string, scale: string): string {
    const zeroPoint = this.#zero();
    const codes = this.#nodes.unique(`${value.name}_quantized`);
    const output = this.#nodes.unique(`${value.name}_dequantized`);
    const place = value.producer?.node ?? value.scope.graph;
    this.#nodes.insertAfter(place, this.#node('QuantizeLinear', [input, scale, zeroPoint], codes));
    this.#nodes.insertAfter(place, this.#node('DequantizeLinear', [codes, scale, zeroPoint], output));
    return output;
  }

  #readWeight({ node, inputs }: Operation, weight: WeightOperand): void {
    const dequantized = this.#weightName(weight);
    node.input[1] = weight.isBehindTranspose ? this.#transposed(dequantized, weight.value) : dequantized;
    this.#noteReplaced(inputs[1], node);
  }

  /** A Transpose of its own: the model's may have readers that are not quantized, or that need other scales. */
  #transposed(dequantized: string, { producer, scope }: Value): string {
    const known = this.#transposedNames.get(dequantized);
    if (known !== undefined) return known;
    const output = this.#nodes.unique(`${dequantized}_transposed`);
    this.#nodes.insertAfter(
      producer?.node ?? scope.graph,
      this.#node('Transpose', [dequantized], output, { perm: [1, 0] }),
    );
    this.#transposedNames.set(dequantized, output);
    return output;
  }

  #replaceBias({ operation, index, value }: BiasOperand, values: Float32Array): void {
    const { node, scope } = operation;
    const name = value?.name ?? `${node.name || node.output[0]}_bias`;
    // A bias of more dimensions than the product has decides the rank of the sum.
    const dims = value?.tensor?.dims.map(Number) ?? [values.length];
    const tensor = this.#addFloats(scope.graph, `${name}_corrected`, dims, values);
    node.input[index] = tensor.name;
    if (value === undefined) this.#additions.add(tensor);
    else this.#noteReplaced(operation.inputs[index], node);
  }

  #noteReplaced(value: Value | undefined, reader: NodeProto): void {
    if (value === undefined) return;
    const replaced = this.#replaced.get(value) ?? new Set();
    this.#replaced.set(value, replaced.add(reader));
  }

  /** One tensor of codes for all that read a weight along the same axis. */
  #weightName(weight: WeightOperand): string {
    const { value } = weight;
    const scales = this.#scales.weight(weight);
    const names = this.#weightNames.get(value) ?? new Map<number, string>();
    this.#weightNames.set(value, names);
    const known = names.get(scales.axis);
    if (known !== undefined) return known;
    const { graph } = value.scope;
    const source = value.tensor as TensorProto;
    const tensor = create(TensorProtoSchema, {
      dims: source.dims,
      dataType: onnxNumber(this.#format.storedDtype),
      name: this.#nodes.unique(`${value.name}_quantized`),
    });
    graph.initializer.push(tensor);
    this.#weights.push({ tensor, source, scales, format: this.#format });
    const place = value.producer?.node ?? graph;
    const scale = this.#weightScale(value, scales, place);
    const isTensorScale = scales.dims.length === 0;
    const dequantized = this.#nodes.unique(`${value.name}_dequantized`);
    this.#nodes.insertAfter(
      place,
      this.#node('DequantizeLinear', [tensor.name, scale], dequantized, {
        ...(isTensorScale ? {} : { axis: scales.axis }),
        ...(scales.block === undefined ? {} : { block_size: scales.block }),
      }),
    );
    // TensorRT 10.6 has FP8 kernels for convolutions only where a QuantizeLinear makes the weight: behind stored codes alone it computes in 16 bits.
    const output = isTensorScale ? this.#pairBehind(value, dequantized, scale) : dequantized;
    names.set(scales.axis, output);
    return output;
  }

  /** The scales as a tensor of floats, or computed from their codes and the scale of the tensor. */
  #weightScale(value: Value, { dims, stored }: WeightScales, place: NodeProto | GraphProto): string {
    const { graph } = value.scope;
    if (stored instanceof Float32Array) return this.#addScale(graph, `${value.name}_scale`, dims, stored);
    const codes = create(TensorProtoSchema, {
      dims: dims.map(BigInt),
      dataType: onnxNumber(this.#format.scaleDtype as Dtype),
      name: this.#nodes.unique(`${value.name}_scale_quantized`),
      rawData: stored.codes,
    });
    graph.initializer.push(codes);
    const tensorScale = this.#addScale(
      graph,
      `${value.name}_scale_scale`,
      [],
      Float32Array.of(stored.tensorScale),
    );
    const output = this.#nodes.unique(`${value.name}_scale`);
    this.#nodes.insertAfter(place, this.#node('DequantizeLinear', [codes.name, tensorScale], output));
    return output;
  }

  #addScale(graph: GraphProto, name: string, dims: readonly number[], values: Float32Array): string {
    const tensor = this.#addFloats(graph, name, dims, values);
    this.#additions.add(tensor);
    return tensor.name;
  }

  #addFloats(graph: GraphProto, name: string, dims: readonly number[], values: Float32Array): TensorProto {
    const tensor = create(TensorProtoSchema, {
      name: this.#nodes.unique(name),
      dims: dims.map(BigInt),
      dataType: onnxNumber('float32'),
      rawData: new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
    });
    graph.initializer.push(tensor);
    return tensor;
  }

  /** The zero point is 0, and its type is the type of the codes. */
  #zero(): string {
    if (this.#zeroPoint === undefined) {
      const name = this.#nodes.unique(`${this.#format.id}_zero_point`);
      const dataType = onnxNumber(this.#format.storedDtype);
      this.#flow.root.graph.initializer.push(
        create(TensorProtoSchema, { name, dataType, rawData: new Uint8Array(1) }),
      );
      this.#zeroPoint = name;
    }
    return this.#zeroPoint;
  }

  /** A FP32 weight that nothing reads any more does not go into the file, nor an Identity or a Transpose between. */
  #dropUnread(value: Value): void {
    const isRead = value.uses.some(
      (use) => use.kind === 'output' || this.#replaced.get(value)?.has(use.operation.node) !== true,
    );
    if (isRead) return;
    const { graph } = value.scope;
    const { producer } = value;
    if (producer !== undefined) {
      this.#dropped.add(producer.node);
      const [from] = producer.inputs;
      this.#noteReplaced(from, producer.node);
      if (from !== undefined) this.#dropUnread(from);
    }
    graph.initializer = graph.initializer.filter((tensor) => tensor !== value.tensor);
    graph.input = graph.input.filter(({ name }) => producer !== undefined || name !== value.name);
    graph.valueInfo = graph.valueInfo.filter(({ name }) => name !== value.name);
  }

  #node(
    opType: string,
    input: string[],
    output: string,
    attributes: Readonly<Record<string, number | readonly number[]>> = {},
  ): NodeProto {
    return create(NodeProtoSchema, {
      opType,
      name: this.#nodes.unique(`${output}_${opType}`),
      input,
      output: [output],
      attribute: Object.entries(attributes).map(
        ([name, value]): AttributeProto =>
          create(
            AttributeProtoSchema,
            typeof value === 'number'
              ? { name, type: AttributeProto_AttributeType.INT, i: BigInt(value) }
              : { name, type: AttributeProto_AttributeType.INTS, ints: value.map(BigInt) },
          ),
      ),
    });
  }
}
