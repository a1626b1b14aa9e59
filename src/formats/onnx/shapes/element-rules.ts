import { typeAttribute } from '../attributes.js';
import { broadcast } from './broadcast.js';
import { shapeRange, slicesOf } from './movement-rules.js';
import { type Call, isSmall, unknown } from './rule-input.js';
import {
  add,
  divide,
  equals,
  isAtLeast,
  isNumber,
  type MaybeSize,
  maximum,
  minimum,
  multiply,
  roundDown,
  type Shape,
  subtract,
} from './size.js';

type Elements = readonly MaybeSize[];

/** Gives the elements of a node's outputs, which have numbers for dimensions and at most `MOST_ELEMENTS`. */
type ElementRule = (call: Call, shapes: readonly (Shape | undefined)[]) => readonly Elements[];

const countOf = (shape: readonly number[]) => shape.reduce((product, size) => product * size, 1);
const numericShape = (shape: Shape): readonly number[] =>
  shape.map((size) => (isNumber(size) ? size : unknown()));

function elementwise(apply: (...sizes: readonly MaybeSize[]) => MaybeSize): ElementRule {
  return (call) => {
    const inputs = call.inputs.map((_, index) => ({
      elements: call.elements(index),
      shape: numericShape(call.shape(index)),
    }));
    const shape = broadcast(...inputs.map((input) => input.shape));
    // Before opset 7 the result has the shape of the first operand, whatever the others have.
    if (!isSmall(shape)) return unknown();
    return [
      Array.from({ length: countOf(shape) }, (_, at) =>
        apply(...inputs.map((input) => input.elements[offset(at, shape, input.shape)])),
      ),
    ];
  };
}

/** Where an element of a broadcast result comes from. */
function offset(at: number, result: readonly number[], shape: readonly number[]): number {
  let [rest, place, stride] = [at, 0, 1];
  for (let axis = 1; axis <= shape.length; axis++) {
    const [size, own] = [result.at(-axis) ?? 1, shape.at(-axis) ?? 1];
    place += (own === 1 ? 0 : rest % size) * stride;
    rest = Math.floor(rest / size);
    stride *= own;
  }
  return place;
}

const isInteger = (call: Call): boolean => /int/.test(call.inputs[0]?.type ?? '');
const truncated = (size: MaybeSize): MaybeSize => (isNumber(size) ? Math.trunc(size) : roundDown(size));
const flag = (value: boolean | undefined): MaybeSize => (value === undefined ? undefined : Number(value));
const negated = (value: MaybeSize): MaybeSize => (isNumber(value) ? Number(value === 0) : undefined);

function quotient(call: Call): readonly Elements[] {
  const whole = isInteger(call);
  return elementwise((a, b) => {
    if (isNumber(a) && isNumber(b)) return b === 0 ? undefined : whole ? Math.trunc(a / b) : a / b;
    return whole ? divide(a, b) : isNumber(b) && b !== 0 ? multiply(a, 1 / b) : undefined;
  })(call, []);
}

const modulo = (a: MaybeSize, b: MaybeSize): MaybeSize =>
  isNumber(b) && b > 0 ? subtract(a, multiply(divide(a, b), b)) : undefined;

function isEqual(a: MaybeSize, b: MaybeSize): MaybeSize {
  if (a !== undefined && equals(a, b)) return 1;
  const [isAbove, isBelow] = [isAtLeast(a, add(b, 1)), isAtLeast(b, add(a, 1))];
  return isAbove === true || isBelow === true ? 0 : undefined;
}

function chosen(condition: MaybeSize, a: MaybeSize, b: MaybeSize): MaybeSize {
  if (isNumber(condition)) return condition === 0 ? b : a;
  return equals(a, b) ? a : undefined;
}

const folded = (apply: (a: MaybeSize, b: MaybeSize) => MaybeSize): ElementRule =>
  elementwise((...sizes) => sizes.reduce(apply));

/** Of a list as a whole; of more axes than one nothing is computed. */
const reduction =
  (apply: (a: MaybeSize, b: MaybeSize) => MaybeSize): ElementRule =>
  (call) =>
    call.rank(0) === 1 && call.elements(0).length > 0 ? [[call.elements(0).reduce(apply)]] : unknown();

const sameElements: ElementRule = (call) => [call.elements(0)];

/** The elements at these places of each axis. */
function picked(data: Elements, shape: readonly number[], places: readonly (readonly number[])[]): Elements {
  let at: readonly number[] = [0];
  for (const [axis, size] of shape.entries())
    at = at.flatMap((before) => (places[axis] ?? []).map((place) => before * size + place));
  return at.map((place) => data[place]);
}

const allPlaces = (shape: readonly number[]): number[][] =>
  shape.map((size) => Array.from({ length: size }, (_, at) => at));

function gather(call: Call): readonly Elements[] {
  const [data, shape, indices] = [call.elements(0), numericShape(call.shape(0)), call.numbers(1)];
  const axis = call.axis(call.int('axis', 0), shape.length);
  const size = shape[axis] ?? 0;
  return [
    picked(
      data,
      shape,
      allPlaces(shape).with(
        axis,
        indices.map((index) => (index < 0 ? index + size : index)),
      ),
    ),
  ];
}

function slice(call: Call): readonly Elements[] {
  const [data, shape] = [call.elements(0), numericShape(call.shape(0))];
  const places = allPlaces(shape);
  for (const { axis, start, end, step } of slicesOf(call)) {
    if (!isNumber(start) || !isNumber(end)) return unknown();
    // From the end, the first place is the last.
    const [all, from, to] =
      step > 0 ? [places[axis], start, end] : [places[axis]?.toReversed(), -1 - start, -1 - end];
    places[axis] = (all ?? []).slice(from, to).filter((_, at) => at % Math.abs(step) === 0);
  }
  return [picked(data, shape, places)];
}

function transpose(call: Call, [result = unknown()]: readonly (Shape | undefined)[]): readonly Elements[] {
  const [data, shape, to] = [call.elements(0), numericShape(call.shape(0)), numericShape(result)];
  const perm = call.ints('perm') ?? shape.map((_, axis) => shape.length - 1 - axis);
  const strides = shape.map((_, axis) => countOf(shape.slice(axis + 1)));
  let at: readonly number[] = [0];
  for (const [axis, size] of to.entries()) {
    const stride = strides[call.axis(perm[axis] ?? 0, shape.length)] ?? 0;
    at = at.flatMap((before) => Array.from({ length: size }, (_, place) => before + place * stride));
  }
  return [at.map((place) => data[place])];
}

function concat(call: Call): readonly Elements[] {
  const axis = call.int('axis', 0);
  return axis === 0 || call.rank(0) === 1
    ? [call.inputs.flatMap((_, index) => call.elements(index))]
    : unknown();
}

function split(call: Call, shapes: readonly (Shape | undefined)[]): readonly Elements[] {
  const [data, shape] = [call.elements(0), numericShape(call.shape(0))];
  const axis = call.axis(call.int('axis', 0), shape.length);
  let from = 0;
  return shapes.map((part) => {
    const size = numericShape(part ?? unknown())[axis] ?? 0;
    from += size;
    return picked(
      data,
      shape,
      allPlaces(shape).with(
        axis,
        Array.from({ length: size }, (_, at) => from - size + at),
      ),
    );
  });
}

function range(call: Call): readonly Elements[] {
  const [[start], [limit], [delta]] = [call.numbers(0), call.numbers(1), call.numbers(2)];
  if (start === undefined || limit === undefined || delta === undefined) return unknown();
  return [
    Array.from({ length: Math.max(0, Math.ceil((limit - start) / delta)) }, (_, at) => start + at * delta),
  ];
}

function expand(call: Call, [shape = unknown()]: readonly (Shape | undefined)[]): readonly Elements[] {
  const [data, from, to] = [call.elements(0), numericShape(call.shape(0)), numericShape(shape)];
  return [Array.from({ length: countOf(to) }, (_, at) => data[offset(at, to, from)])];
}

function cast(call: Call): readonly Elements[] {
  const type = typeAttribute(call.node, 'to') ?? unknown();
  const change =
    type === 'bool' ? (size: MaybeSize) => negated(negated(size)) : /int/.test(type) ? truncated : undefined;
  return [change === undefined ? call.elements(0) : call.elements(0).map(change)];
}

function filled(call: Call, [shape = unknown()]: readonly (Shape | undefined)[]): readonly Elements[] {
  const value = call.tensor('value');
  const [element] = value === undefined ? [0] : (value.elements ?? unknown());
  return [new Array(countOf(numericShape(shape))).fill(element)];
}

/** Rules for the small tensors that sizes come from: `Shape`, `Gather`, `Concat` and the operators that exporters put between. */
export const elementRules: ReadonlyMap<string, ElementRule> = new Map<string, ElementRule>([
  ['Shape', (call) => [shapeRange(call)]],
  ['Size', (call) => [[multiply(...call.shape(0))]]],
  ...'Identity Reshape Flatten Squeeze Unsqueeze Dropout'
    .split(' ')
    .map((name) => [name, sameElements] as const),
  ['Cast', cast],
  ['Gather', gather],
  ['Slice', slice],
  ['Transpose', transpose],
  ['Concat', concat],
  ['Split', split],
  ['Range', range],
  ['Expand', expand],
  ['ConstantOfShape', filled],
  ['Add', elementwise((a, b) => add(a, b))],
  ['Sub', elementwise(subtract)],
  ['Mul', elementwise((a, b) => multiply(a, b))],
  ['Div', quotient],
  ['Mod', elementwise(modulo)],
  ['Neg', elementwise((a) => multiply(a, -1))],
  ['Floor', elementwise(roundDown)],
  ['Ceil', elementwise((a) => multiply(roundDown(multiply(a, -1)), -1))],
  ['Min', folded(minimum)],
  ['Max', folded(maximum)],
  ['Equal', elementwise(isEqual)],
  ['Less', elementwise((a, b) => negated(flag(isAtLeast(a, b))))],
  ['Greater', elementwise((a, b) => negated(flag(isAtLeast(b, a))))],
  ['GreaterOrEqual', elementwise((a, b) => flag(isAtLeast(a, b)))],
  ['LessOrEqual', elementwise((a, b) => flag(isAtLeast(b, a)))],
  ['Not', elementwise(negated)],
  ['And', elementwise((a, b) => multiply(a, b))],
  ['Or', folded(maximum)],
  ['Where', elementwise(chosen)],
  ['ReduceProd', reduction((a, b) => multiply(a, b))],
  ['ReduceSum', reduction((a, b) => add(a, b))],
  ['ReduceMax', reduction(maximum)],
  ['ReduceMin', reduction(minimum)],
]);
