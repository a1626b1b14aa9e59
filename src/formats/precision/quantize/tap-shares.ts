import { attributeOf, textAttribute } from '../../onnx/node-types.js';
import type { ModelShapes } from '../../onnx/shapes/infer.js';
import { isNumber, type MaybeSize } from '../../onnx/shapes/size.js';
import type { Operation } from '../flow.js';

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
