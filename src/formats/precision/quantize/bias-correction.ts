import { attributeOf } from '../../onnx/node-types.js';
import type { WeightStream } from '../../onnx/weight.js';
import { isFloat32, isStored, type Operation, type Value } from '../flow.js';
import type { QuantizedFormat } from '../formats/format.js';
import { original, type WeightOperand } from './operands.js';
import { roundingErrors } from './rounding-errors.js';
import { forTiles } from './tiles.js';
import type { WeightScales } from './weight-scales.js';

/** Where the bias of an operation is read, and the stored value; without one there is none, and the operation takes one. */
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
    const value = inputs[2] && original(inputs[2]);
    return value === undefined || fits(value) ? { operation, index: 2, value } : undefined;
  }
  const [use, ...others] = outputs[0]?.uses ?? [];
  if (use?.kind !== 'input' || others.length > 0 || use.operation.node.opType !== 'Add') return undefined;
  const index = 1 - use.index;
  const read = use.operation.inputs[index];
  const value = read && original(read);
  return fits(value) ? { operation: use.operation, index, value } : undefined;
}

/**
 * What the codes of a weight change in the mean of each output channel: the sum over W - Ŵ times the mean of the input (Nagel et al., "Data-free
 * quantization through weight equalization and bias correction", 2019, section 4.2). Each tap of a kernel counts by the share of
 * positions at which it reads the input (`tapShares`), since padding is zero. Reads the weight once.
 */
export function meanError(
  source: WeightStream,
  { dims, channelAxis }: WeightOperand,
  operation: Operation,
  { layout, at }: WeightScales,
  format: QuantizedFormat,
  { mean, shares }: { readonly mean: Float32Array; readonly shares: readonly number[] },
): Float64Array {
  const [outputs = 0, perGroup = 0] = dims;
  const error = new Float64Array(dims[channelAxis] ?? 0);
  const taps = shares.length;
  const byTerm = Float32Array.from(
    { length: mean.length * taps },
    (_, term) => mean[Math.floor(term / taps)]! * shares[term % taps]!,
  );
  const groups = Number(attributeOf(operation.node, 'group')?.i ?? 1);
  const sum =
    layout.kind === 'runs' ? { terms: perGroup * taps, channels: outputs / groups } : { terms: mean.length };
  const moments = { mean: byTerm, variance: byTerm };
  forTiles(source, layout, sum, (values, from, rows, place, index) => {
    const scale = at(index);
    const channel =
      layout.kind === 'runs' ? Math.floor((index * layout.run) / sum.terms) : index % layout.columns;
    error[channel]! -= scale * roundingErrors(values, from, rows, scale, format, moments, place).sum;
  });
  return error;
}
