import { type Call, unknown } from './rule-input.js';
import {
  add,
  divide,
  divideUp,
  isNumber,
  type MaybeSize,
  multiply,
  roundDown,
  type Shape,
  subtract,
} from './size.js';

interface Window {
  readonly kernel: readonly MaybeSize[];
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  /** Padding at both ends of each axis; undefined where `auto_pad` chooses it. */
  readonly pads: readonly number[] | undefined;
  readonly autoPad: string;
}

function windowOf(call: Call, kernel: readonly MaybeSize[]): Window {
  const ones = kernel.map(() => 1);
  const autoPad = call.text('auto_pad', 'NOTSET');
  const pads = call.ints('pads') ?? [...ones, ...ones].fill(0);
  return {
    kernel,
    strides: call.ints('strides') ?? ones,
    dilations: call.ints('dilations') ?? ones,
    pads:
      autoPad === 'NOTSET'
        ? ones.map((_, axis) => (pads[axis] ?? 0) + (pads[axis + ones.length] ?? 0))
        : undefined,
    autoPad,
  };
}

/** The extent that a kernel covers: (k - 1)·d + 1. */
const reach = ({ kernel, dilations }: Window, axis: number): MaybeSize =>
  add(multiply(subtract(kernel[axis], 1), dilations[axis]), 1);

/** Sizes that a window slides to, as the specification of ONNX computes them for Conv and the pools. */
function slid(call: Call, window: Window): Shape {
  const isCeil = call.int('ceil_mode', 0) !== 0;
  return call
    .shape(0)
    .slice(2)
    .map((size, axis) => {
      const stride = window.strides[axis] ?? 1;
      if (stride < 1) return unknown();
      if (window.autoPad.startsWith('SAME')) return divideUp(size, stride);
      const pads = window.pads?.[axis] ?? 0;
      const room = add(size, pads, multiply(reach(window, axis), -1));
      if (isNumber(room) && room < 0) return unknown();
      if (!isCeil) return add(divide(room, stride), 1);
      const count = add(divideUp(room, stride), 1);
      // A window that would start in the padding at the end is left out.
      const start = call.ints('pads')?.[axis] ?? 0;
      return isNumber(count) && isNumber(size) && (count - 1) * stride >= size + start ? count - 1 : count;
    });
}

/** [batch, channels, space…] convolved with the weight [filters, channels / group, kernel…] of an input. */
export function convolved(call: Call, weight: number): Shape {
  const [filters, , ...kernel] = call.shape(weight);
  return [call.dim(0, 0), filters, ...slid(call, windowOf(call, call.ints('kernel_shape') ?? kernel))];
}

export const pooled = (call: Call): Shape => [
  ...call.shape(0).slice(0, 2),
  ...slid(call, windowOf(call, call.ints('kernel_shape') ?? unknown())),
];

/** The weight is [channels, filters / group, kernel…]. */
export function deconvolved(call: Call): Shape {
  const [, filters, ...kernel] = call.shape(1);
  const outer = [call.dim(0, 0), multiply(filters, call.int('group', 1))];
  const given = call.ints('output_shape');
  if (given !== undefined) return [...outer, ...given.slice(-kernel.length)];
  const window = windowOf(call, call.ints('kernel_shape') ?? kernel);
  const more = call.ints('output_padding');
  const space = call.shape(0).slice(2);
  return [
    ...outer,
    ...space.map((size, axis) => {
      const stride = window.strides[axis] ?? 1;
      if (window.autoPad.startsWith('SAME')) return multiply(size, stride);
      const whole = add(multiply(subtract(size, 1), stride), more?.[axis] ?? 0, reach(window, axis));
      return subtract(whole, window.pads?.[axis] ?? 0);
    }),
  ];
}

export function unpooled(call: Call): Shape {
  if (call.has(2)) return call.elements(2);
  const window = windowOf(call, call.ints('kernel_shape') ?? unknown());
  const space = call.shape(0).slice(2);
  return [
    ...call.shape(0).slice(0, 2),
    ...space.map((size, axis) =>
      subtract(
        add(multiply(subtract(size, 1), window.strides[axis]), window.kernel[axis]),
        window.pads?.[axis] ?? 0,
      ),
    ),
  ];
}

/** Resize and Upsample: by sizes, or by scales rounded down. */
export function resized(call: Call): Shape {
  const shape = call.shape(0);
  const isCropped = call.text('coordinate_transformation_mode', '') === 'tf_crop_and_resize';
  if (isCropped) return unknown();
  const axes = call.ints('axes') ?? shape.map((_, axis) => axis);
  const place = (change: (size: MaybeSize, index: number) => MaybeSize): Shape =>
    shape.map((size, axis) => {
      const index = axes.findIndex((each) => call.axis(each, shape.length) === axis);
      return index < 0 ? size : change(size, index);
    });
  if (call.node.opType === 'Resize' && call.has(3)) {
    if (call.text('keep_aspect_ratio_policy', 'stretch') !== 'stretch') return unknown();
    const sizes = call.elements(3);
    return place((_, index) => sizes[index]);
  }
  const scales = scalesOf(call);
  return place((size, index) => {
    const scaled = multiply(size, scales[index]);
    // Runtimes multiply in float32: 10 × 0.7 is 7 there.
    return isNumber(scaled) ? Math.floor(Math.fround(scaled)) : roundDown(scaled);
  });
}

function scalesOf(call: Call): readonly MaybeSize[] {
  const isAttribute = call.node.opType === 'Upsample' && call.opset < 9;
  if (isAttribute) return call.node.attribute.find(({ name }) => name === 'scales')?.floats ?? unknown();
  return call.elements(call.node.opType === 'Upsample' || call.opset < 11 ? 1 : 2);
}
