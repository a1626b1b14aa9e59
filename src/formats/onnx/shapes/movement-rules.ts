import { merged } from './broadcast.js';
import { allShapes, type Call, elementsIn, unknown } from './rule-input.js';
import {
  add,
  divide,
  divideExactly,
  divideUp,
  equals,
  isAtLeast,
  isNumber,
  type MaybeSize,
  maximum,
  minimum,
  multiply,
  type Shape,
  subtract,
} from './size.js';

/** The number that exporters write for "to the end", and more. */
const INT32_MAX = 2 ** 31 - 1;

export function reshape(call: Call): readonly Shape[] {
  const sizes = call.has(1) ? call.elements(1) : (call.ints('shape') ?? unknown());
  return [reshaped(call.shape(0), sizes, call.int('allowzero', 0) !== 0)];
}

/** The one size that is -1, or not known while the others are, is what divides the number of elements. */
function reshaped(from: Shape, target: readonly MaybeSize[], allowZero: boolean): Shape {
  const sizes = target.map((size, axis) =>
    size === 0 && !allowZero ? from[axis] : size === -1 ? undefined : size,
  );
  const open = sizes.indexOf(undefined);
  if (open < 0 || sizes.indexOf(undefined, open + 1) >= 0) return sizes;
  // Sizes on both sides are removed first: unknown sizes may be among them.
  const rest = [...from];
  const others = sizes.toSpliced(open, 1).filter((size) => {
    const at = rest.findIndex((each) => equals(each, size));
    if (at >= 0) rest.splice(at, 1);
    return at < 0;
  });
  const [total, known] = [elementsIn(rest), elementsIn(others)];
  if (isNumber(total) && isNumber(known) && !Number.isInteger(total / known)) return unknown();
  return sizes.with(open, divideExactly(total, known) ?? divide(total, known));
}

export function squeeze(call: Call): readonly Shape[] {
  const shape = call.shape(0);
  const axes = call.intsFrom(1, 'axes');
  if (axes === undefined) return [shape.every(isNumber) ? shape.filter((size) => size !== 1) : unknown()];
  const gone = call.axes(axes, shape.length);
  return [shape.filter((_, axis) => !gone.has(axis))];
}

export function unsqueeze(call: Call): readonly Shape[] {
  const shape = call.shape(0);
  const axes = call.intsFrom(1, 'axes') ?? unknown();
  const rank = shape.length + axes.length;
  const added = call.axes(axes, rank);
  let at = 0;
  return [Array.from({ length: rank }, (_, axis) => (added.has(axis) ? 1 : shape[at++]))];
}

export function transpose(call: Call): readonly Shape[] {
  const shape = call.shape(0);
  const perm = call.ints('perm') ?? shape.map((_, axis) => shape.length - 1 - axis);
  return [
    perm.length === shape.length ? perm.map((axis) => shape[call.axis(axis, shape.length)]) : unknown(),
  ];
}

export function concat(call: Call): readonly Shape[] {
  const shapes = allShapes(call);
  const [first = unknown()] = shapes;
  const axis = call.axis(call.int('axis', 1), first.length);
  return [
    first.map((_, at) => {
      const sizes = shapes.map((shape) => (shape.length === first.length ? shape[at] : unknown()));
      return at === axis ? add(...sizes) : sizes.reduce(merged);
    }),
  ];
}

export function split(call: Call): readonly Shape[] {
  const shape = call.shape(0);
  const axis = call.axis(call.int('axis', 0), shape.length);
  const given = call.has(1) ? call.elements(1) : call.ints('split');
  const count = call.int('num_outputs', call.node.output.length);
  const part = divideUp(shape[axis], count);
  // The last part is smaller where the division leaves something over.
  const sizes =
    given ??
    call.node.output.map((_, index) =>
      index < count - 1 ? part : subtract(shape[axis], multiply(part, count - 1)),
    );
  return sizes.map((size) => shape.with(axis, size));
}

/** The ranges that Slice takes of the axes: attributes before opset 10, inputs since. */
export function slicesOf(call: Call): readonly {
  readonly axis: number;
  readonly start: MaybeSize;
  readonly end: MaybeSize;
  readonly step: number;
}[] {
  const isOld = call.opset < 10;
  const starts = isOld ? (call.ints('starts') ?? unknown()) : call.elements(1);
  const ends = isOld ? (call.ints('ends') ?? unknown()) : call.elements(2);
  const axes = isOld ? call.ints('axes') : call.has(3) ? call.numbers(3) : undefined;
  const steps = !isOld && call.has(4) ? call.numbers(4) : [];
  return starts.map((start, index) => ({
    axis: call.axis(axes?.[index] ?? index, call.rank(0)),
    start,
    end: ends[index],
    step: steps[index] || 1,
  }));
}

export function slice(call: Call): readonly Shape[] {
  const isTable = call.inputs[0]?.isConstant === true;
  const slices = slicesOf(call);
  return [
    call.shape(0).map((size, axis) => {
      const part = slices.findLast((each) => each.axis === axis);
      return part === undefined ? size : sliced(size, part, isTable);
    }),
  ];
}

/** Number of elements that `start:end:step` takes of an axis, as Python counts. */
function sliced(
  size: MaybeSize,
  { start, end, step }: ReturnType<typeof slicesOf>[number],
  isTable: boolean,
): MaybeSize {
  if (step < 0) {
    // Backwards through all of it is what exporters write.
    if (start === -1 && isNumber(end) && end <= -INT32_MAX) return divideUp(size, -step);
    if (!isNumber(size) || !isNumber(start) || !isNumber(end)) return undefined;
    const [first, last] = [start, end].map((at) => Math.min(size - 1, Math.max(-1, at < 0 ? at + size : at)));
    return Math.max(0, Math.ceil(((first ?? 0) - (last ?? 0)) / -step));
  }
  // A part of a table of weights is inside it, or the model could not run: positions that depend on inputs need no bound.
  const isInside = (at: MaybeSize) => isTable && isNumber(size) && !isNumber(at);
  const to = isInside(end) ? end : placed(end, size);
  // A start behind the end takes nothing, so it needs no bound at the end.
  const from = isInside(start) || isAtLeast(start, 0) === true ? start : placed(start, size);
  const length =
    to === size && isNumber(start) && start < 0 ? minimum(size, -start) : maximum(0, subtract(to, from));
  return step === 1 ? length : divideUp(length, step);
}

/** A position from the front, no further than the end. */
function placed(at: MaybeSize, size: MaybeSize): MaybeSize {
  if (isNumber(at) && at >= INT32_MAX) return size;
  const isNegative = isAtLeast(-1, at);
  if (isNegative === undefined) return undefined;
  return isNegative ? maximum(0, add(at, size)) : minimum(at, size);
}

export function gather(call: Call): readonly Shape[] {
  const [data, indices] = [call.shape(0), call.shape(1)];
  const axis = call.axis(call.int('axis', 0), data.length);
  return [[...data.slice(0, axis), ...indices, ...data.slice(axis + 1)]];
}

export function gatherND(call: Call): readonly Shape[] {
  const [data, indices, batch] = [call.shape(0), call.shape(1), call.int('batch_dims', 0)];
  const depth = indices.at(-1);
  if (!isNumber(depth) || batch + depth > data.length) return unknown();
  return [[...indices.slice(0, -1), ...data.slice(batch + depth)]];
}

export function pad(call: Call): readonly Shape[] {
  const shape = call.shape(0);
  const pads = call.has(1) ? call.elements(1) : (call.ints('pads') ?? call.ints('paddings') ?? unknown());
  const axes = call.has(3) ? call.numbers(3) : shape.map((_, axis) => axis);
  return [
    axes.reduce<Shape>((sizes, each, index) => {
      const axis = call.axis(each, shape.length);
      return sizes.with(axis, add(sizes[axis], pads[index], pads[index + axes.length]));
    }, shape),
  ];
}

export function range(call: Call): readonly Shape[] {
  const [start, limit, delta] = [call.scalar(0), call.scalar(1), call.scalar(2)];
  return [
    [
      isNumber(delta) && delta < 0
        ? maximum(0, divideUp(subtract(start, limit), -delta))
        : maximum(0, divideUp(subtract(limit, start), delta)),
    ],
  ];
}

export function topK(call: Call): readonly Shape[] {
  const shape = call.shape(0);
  const size = call.has(1) ? call.elements(1)[0] : call.int('k', -1);
  const kept = shape.with(call.axis(call.int('axis', -1), shape.length), size);
  return [kept, kept];
}

/** [batch, channels, height, width] with `block` × `block` points moved between channels and space. */
export function blocks(call: Call): readonly Shape[] {
  const [batch, channels, ...space] = call.shape(0);
  const block = call.int('blocksize', 0);
  return call.node.opType === 'DepthToSpace'
    ? [[batch, divideExactly(channels, block * block), ...space.map((size) => multiply(size, block))]]
    : [[batch, multiply(channels, block * block), ...space.map((size) => divide(size, block))]];
}

export function oneHot(call: Call): readonly Shape[] {
  const shape = call.shape(0);
  const axis = call.axis(call.int('axis', -1), shape.length + 1);
  return [[...shape.slice(0, axis), call.elements(1)[0], ...shape.slice(axis)]];
}

export function flatten(call: Call): readonly Shape[] {
  const shape = call.shape(0);
  const axis = call.int('axis', 1);
  const at = axis === shape.length ? axis : call.axis(axis, shape.length);
  return [[elementsIn(shape.slice(0, at)), elementsIn(shape.slice(at))]];
}

/** The dimensions that Shape gives: all, or those from `start` to `end`. */
export function shapeRange(call: Call): Shape {
  const end = call.ints('end') === undefined ? undefined : call.int('end', 0);
  return call.shape(0).slice(call.int('start', 0), end);
}
