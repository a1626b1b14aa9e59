import { attributeOf } from '../../onnx/node-types.js';
import type { WeightStream } from '../../onnx/weight.js';
import { isFloat32, isStored, type Operation, type Value } from '../flow.js';
import type { QuantizedFormat } from '../formats/format.js';
import type { WeightOperand } from './operands.js';
import { CHUNK_BYTES, floatsOf, forSegments } from './scale-layout.js';
import type { WeightScales } from './weight-scales.js';

/** Where the bias of an operation is read; without a value there is none, and the operation takes one. */
export interface BiasOperand {
  readonly operation: Operation;
  readonly index: number;
  readonly value: Value | undefined;
}

/** The stored bias of an operation with a stored weight, one value an output channel; undefined where nothing can take up a correction. */
export function biasOperand(
  operation: Operation,
  { dims, channelAxis }: WeightOperand,
): BiasOperand | undefined {
  const channels = dims[channelAxis] ?? 0;
  const { node, inputs, outputs } = operation;
  const fits = (value: Value | undefined): value is Value => {
    if (value === undefined || !isStored(value) || !isFloat32(value) || value.tensor === undefined)
      return false;
    const shape = value.tensor.dims.map(Number);
    return shape.at(-1) === channels && shape.reduce((product, dim) => product * dim, 1) === channels;
  };
  if (node.opType === 'Gemm' && (attributeOf(node, 'beta')?.f ?? 1) !== 1) return undefined;
  if (node.opType !== 'MatMul') {
    const value = inputs[2];
    return value === undefined || fits(value) ? { operation, index: 2, value } : undefined;
  }
  const [use, ...others] = outputs[0]?.uses ?? [];
  if (use?.kind !== 'input' || others.length > 0 || use.operation.node.opType !== 'Add') return undefined;
  const index = 1 - use.index;
  const value = use.operation.inputs[index];
  return fits(value) ? { operation: use.operation, index, value } : undefined;
}

/**
 * What the codes of a weight change in the mean of each output channel: the sum over W - Ŵ times the mean of the input (Nagel et al., "Data-free
 * quantization through weight equalization and bias correction", 2019, section 4.2). Reads the weight once. At the borders of a padded convolution it counts the
 * padding as inputs of the mean.
 */
export function meanError(
  source: WeightStream,
  { dims, channelAxis }: WeightOperand,
  operation: Operation,
  scales: WeightScales,
  { nearest }: QuantizedFormat,
  mean: Float32Array,
): Float64Array {
  const [outputs = 0, perGroup = 0, ...kernel] = dims;
  const error = new Float64Array(dims[channelAxis] ?? 0);
  const taps = kernel.reduce((product, dim) => product * dim, 1);
  const width = perGroup * taps;
  const groups = Number(attributeOf(operation.node, 'group')?.i ?? 1);
  const one = new Float32Array(1);
  const differenceOf = (value: number, scale: number): number => {
    // As the codes are made: with a reciprocal, in 32 bits.
    one[0] = value * (1 / scale);
    return value - nearest(one[0]!) * scale;
  };
  let position = 0;
  for (const chunk of source.chunks(CHUNK_BYTES)) {
    const values = floatsOf(chunk);
    forSegments(scales.layout, position, values.length, (from, to, scale, isRow) => {
      const row = Math.floor((position + from) / width);
      const column = position + from - row * width;
      if (isRow) {
        for (let i = from; i < to; i++)
          error[column + i - from]! += differenceOf(values[i]!, scales.at(scale + i - from)) * mean[row]!;
        return;
      }
      const factor = scales.at(scale);
      const offset = Math.floor((row * groups) / outputs) * perGroup;
      let sum = 0;
      for (let i = from; i < to; i++)
        sum += differenceOf(values[i]!, factor) * mean[offset + Math.floor((column + i - from) / taps)]!;
      error[row]! += sum;
    });
    position += values.length;
  }
  return error;
}
