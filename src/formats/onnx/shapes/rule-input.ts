import { type Dtype, dtypes } from '../../tensor/dtype.js';
import { attributeOf, textAttribute } from '../attributes.js';
import type { NodeProto, TensorProto } from '../onnx_pb.js';
import type { ValueType } from '../values.js';
import { isNumber, type MaybeSize, multiply, type Shape } from './size.js';

/** The known facts of one value of a graph. */
export interface ShapedValue {
  readonly type: ValueType | undefined;
  /** Undefined where not even the rank is known. */
  readonly shape: Shape | undefined;
  /** The elements of a small tensor that sizes may be computed from, in row-major order. */
  readonly elements: readonly MaybeSize[] | undefined;
  /** Whether weights alone decide it, so that it is computed once. */
  readonly isConstant: boolean;
}

/** Sizes are computed from few numbers: larger tensors are data. */
const MOST_ELEMENTS = 256;

/** Thrown by a rule where its result cannot be known; the walk catches it. */
export const UNKNOWN = Symbol('unknown shape');

/** Number of elements. */
export const elementsIn = (shape: Shape): MaybeSize => multiply(...shape);

/** Whether elements are kept of a tensor of this shape. Sizes beside a 0 count too, since rules list the places of each axis. */
export function isSmall(shape: Shape | undefined): shape is readonly number[] {
  if (shape?.every(isNumber) !== true) return false;
  return shape.reduce((count, size) => count * Math.max(1, size), 1) <= MOST_ELEMENTS;
}

/** Bytes of a tensor; undefined where its type or size is not known. */
export function bytesIn({ type = '', shape }: ShapedValue): MaybeSize {
  const bits = Object.hasOwn(dtypes, type) ? dtypes[type as Dtype].bits : 0;
  const bytes = bits === 0 || shape === undefined ? undefined : multiply(...shape, bits / 8);
  return isNumber(bytes) ? Math.ceil(bytes) : bytes;
}

/** One node with what is known of its inputs: what rules read. Accessors throw `UNKNOWN` for what they cannot give. */
export class Call {
  readonly node: NodeProto;
  readonly opset: number;
  readonly inputs: readonly (ShapedValue | undefined)[];
  readonly #stored: (tensor: TensorProto) => ShapedValue;

  constructor(
    node: NodeProto,
    opset: number,
    inputs: readonly (ShapedValue | undefined)[],
    stored: (tensor: TensorProto) => ShapedValue,
  ) {
    this.node = node;
    this.opset = opset;
    this.inputs = inputs;
    this.#stored = stored;
  }

  /** Whether an input is passed, known or not. */
  has(index: number): boolean {
    return (this.node.input[index] ?? '') !== '';
  }

  shape(index: number): Shape {
    return this.inputs[index]?.shape ?? unknown();
  }

  rank(index: number): number {
    return this.shape(index).length;
  }

  dim(index: number, axis: number): MaybeSize {
    const shape = this.shape(index);
    return shape[this.axis(axis, shape.length)];
  }

  /** The elements of an input that sizes depend on; of a small one that nothing determines, as many unknown ones. */
  elements(index: number): readonly MaybeSize[] {
    const shape = this.shape(index);
    if (!isSmall(shape)) return unknown();
    const count = shape.reduce((product, size) => product * size, 1);
    return this.inputs[index]?.elements ?? new Array(count).fill(undefined);
  }

  /** The same where every element has to be a number. */
  numbers(index: number): readonly number[] {
    return this.elements(index).map((size) => (isNumber(size) ? size : unknown()));
  }

  /** The one element of a scalar input. */
  scalar(index: number): MaybeSize {
    const elements = this.elements(index);
    return elements.length === 1 ? elements[0] : unknown();
  }

  int(name: string, otherwise: number): number {
    const attribute = attributeOf(this.node, name);
    return attribute === undefined ? otherwise : Number(attribute.i);
  }

  ints(name: string): readonly number[] | undefined {
    return attributeOf(this.node, name)?.ints.map(Number);
  }

  text(name: string, otherwise: string): string {
    return textAttribute(this.node, name, otherwise);
  }

  /** The tensor of an attribute; undefined where it is absent. */
  tensor(name: string): ShapedValue | undefined {
    const tensor = attributeOf(this.node, name)?.t;
    return tensor && this.#stored(tensor);
  }

  /** Integers that older opsets have as an attribute and newer ones as an input; undefined where absent. */
  intsFrom(index: number, name: string): readonly number[] | undefined {
    return this.has(index) ? this.numbers(index) : this.ints(name);
  }

  /** An axis counted from the front. */
  axis(axis: number, rank: number): number {
    const at = axis < 0 ? axis + rank : axis;
    return Number.isInteger(at) && at >= 0 && at < rank ? at : unknown();
  }

  axes(axes: readonly number[], rank: number): ReadonlySet<number> {
    return new Set(axes.map((axis) => this.axis(axis, rank)));
  }
}

/** The shapes of all inputs. */
export const allShapes = (call: Call): Shape[] => call.inputs.map((_, index) => call.shape(index));

/** Ends a rule that cannot know its result. */
export function unknown(): never {
  throw UNKNOWN;
}
