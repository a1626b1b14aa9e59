import { attributeOf, textAttribute } from '../../onnx/attributes.js';
import type { ModelShapes } from '../../onnx/shapes/infer.js';
import { isNumber, type MaybeSize } from '../../onnx/shapes/size.js';
import type { WeightStream } from '../../onnx/weight.js';
import { isFloat32, isStored, type Operation, original, type Value } from '../flow.js';
import type { QuantizedFormat } from '../formats/format.js';
import { roundingErrors } from './rounding-errors.js';
import { forTiles } from './tiles.js';
import type { WeightOperand } from './weight-operand.js';
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
 * The shift of the mean of each output channel by the codes of a weight: the sum over W - Ŵ times the mean of the input (Nagel et al., "Data-free
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
  const errorsOf = roundingErrors(format, { mean: byTerm, variance: byTerm });
  forTiles(source, layout, sum, (tiles) => {
    const scaleOf = (lane: number) => tiles.scale + lane * tiles.scaleStride;
    const scales = Float64Array.from({ length: tiles.lanes }, (_, lane) => at(scaleOf(lane)));
    const { sums } = errorsOf(tiles, scales);
    for (const [lane, scale] of scales.entries()) {
      const index = scaleOf(lane);
      const channel =
        layout.kind === 'runs' ? Math.floor((index * layout.run) / sum.terms) : index % layout.columns;
      error[channel]! -= scale * sums[lane]!;
    }
  });
  return error;
}

/**
 * The share of output positions at which each tap of a kernel [space…] lies inside the input of a convolution: at the others it multiplies padding. Row-major. 1 along
 * axes whose size the model does not fix.
 */
export function tapShares(
  operation: Operation,
  kernel: readonly number[],
  shapes: ModelShapes,
): readonly number[] {
  const [input] = operation.inputs;
  const { producer } = input ?? {};
  const shapeIn =
    producer === undefined
      ? shapes.inputs.get(input?.name ?? '')
      : shapes.nodes.get(producer.node)?.shapes[producer.outputs.indexOf(input)];
  const shapeOut = shapes.nodes.get(operation.node)?.shapes[0];
  return kernel.reduce<readonly number[]>(
    (shares, taps, axis) => {
      const along = sharesAlong(operation, axis, taps, shapeIn?.[axis + 2], shapeOut?.[axis + 2]);
      return shares.flatMap((share) => along.map((other) => share * other));
    },
    [1],
  );
}

function sharesAlong(
  { node }: Operation,
  axis: number,
  taps: number,
  size: MaybeSize,
  positions: MaybeSize,
): readonly number[] {
  if (!isNumber(size) || !isNumber(positions) || positions === 0) return new Array(taps).fill(1);
  const stride = Number(attributeOf(node, 'strides')?.ints[axis] ?? 1);
  const dilation = Number(attributeOf(node, 'dilations')?.ints[axis] ?? 1);
  const autoPad = textAttribute(node, 'auto_pad', 'NOTSET');
  const same = Math.max(0, (positions - 1) * stride + (taps - 1) * dilation + 1 - size) / 2;
  const before =
    autoPad === 'SAME_UPPER'
      ? Math.floor(same)
      : autoPad === 'SAME_LOWER'
        ? Math.ceil(same)
        : Number(attributeOf(node, 'pads')?.ints[axis] ?? 0);
  return Array.from({ length: taps }, (_, tap) => {
    // At output position p the tap is at p · stride - offset.
    const offset = before - tap * dilation;
    const first = Math.max(0, Math.ceil(offset / stride));
    const last = Math.min(positions - 1, Math.floor((size - 1 + offset) / stride));
    return Math.max(0, last - first + 1) / positions;
  });
}
