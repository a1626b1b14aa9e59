import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypes, elementCount, packedBytes } from './dtype.js';
import {
  type ByteFloat,
  bfloat16ToFloat32,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToByteFloat,
  float32ToFloat16,
  isByteFloat,
  isPackedInteger,
  isSmallFloat,
  smallFloatToFloat32,
  unpackIntegers,
} from './low-precision.js';

/** A dense tensor in C order: little-endian bytes, packed for dtypes under 8 bits. float16 and bfloat16 stay bits. */
export interface Tensor {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** The tensor with bytes of its own. Not by slice(): that of a Buffer is another view of the same memory. */
export const copiedTensor = (tensor: Tensor): Tensor => ({ ...tensor, bytes: new Uint8Array(tensor.bytes) });

type Shaped = Pick<Tensor, 'shape'>;
export const isSameShape = (a: Shaped, b: Shaped): boolean => a.shape.join() === b.shape.join();

/** Named tensors: what a session takes and gives, what an npz holds. */
export type NamedTensors = ReadonlyMap<string, Tensor>;

/** Values by name: a Map, or an object. */
export type ByName<T> = ReadonlyMap<string, T> | Readonly<Record<string, T>>;

export interface ElementArrays {
  readonly float32: Float32Array;
  readonly float64: Float64Array;
  readonly int8: Int8Array;
  readonly uint8: Uint8Array;
  readonly bool: Uint8Array;
  readonly int16: Int16Array;
  readonly uint16: Uint16Array;
  readonly int32: Int32Array;
  readonly uint32: Uint32Array;
  readonly int64: BigInt64Array;
  readonly uint64: BigUint64Array;
  /** Bits. */
  readonly float16: Uint16Array;
  /** Bits. */
  readonly bfloat16: Uint16Array;
}
export type ArrayDtype = keyof ElementArrays;
export type ElementArray<D extends ArrayDtype = ArrayDtype> = ElementArrays[D];

type ArrayMaker = new (buffer: ArrayBufferLike, byteOffset: number, length: number) => ElementArray;

const makers: Readonly<Record<ArrayDtype, ArrayMaker>> = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
};

export const isArrayDtype = (dtype: Dtype): dtype is ArrayDtype => dtype in makers;

/** Whether a typed array is of the class that a type has. */
const isElementsOf = (dtype: ArrayDtype | undefined, values: unknown): dtype is ArrayDtype =>
  dtype !== undefined && isArrayDtype(dtype) && values instanceof makers[dtype];

/** The elements of a tensor in their own type, halves as bits. A view where the bytes are aligned, otherwise a copy: treat it as read-only. */
export function elementsOf<D extends ArrayDtype>(tensor: Tensor & { readonly dtype: D }): ElementArray<D>;
export function elementsOf(tensor: Tensor & { readonly dtype: ArrayDtype }): ElementArray {
  const maker = makers[tensor.dtype];
  const count = elementCount(tensor.shape);
  const width = packedBytes(tensor.dtype, 1);
  // Not slice(): that of a Buffer is another view of the same memory.
  const bytes = tensor.bytes.byteOffset % width === 0 ? tensor.bytes : new Uint8Array(tensor.bytes);
  return new maker(bytes.buffer, bytes.byteOffset, count);
}

/** A tensor over the memory of a typed array. Throws RangeError when lengths do not agree. */
export function tensorFrom<D extends ArrayDtype>(
  dtype: D,
  shape: readonly number[],
  elements: ElementArray<D>,
): Tensor {
  if (elements.length !== elementCount(shape)) {
    throw new RangeError(`${elements.length} elements do not fill the shape [${shape}].`);
  }
  return {
    dtype,
    shape,
    bytes: new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength),
  };
}

/**
 * Every element as float32: exact for the narrower types, rounded for float64, 32 and 64-bit integers. No copy when the tensor is float32 already.
 * Throws TF_TENSOR_UNSUPPORTED for strings and complex numbers.
 */
export function float32Values(tensor: Tensor, name = 'the tensor'): Float32Array {
  const { dtype } = tensor;
  if (dtype === 'float32') return elementsOf({ ...tensor, dtype });
  const values = new Float32Array(elementCount(tensor.shape));
  if (dtype === 'float16') float16ToFloat32(elementsOf({ ...tensor, dtype }), values);
  else if (dtype === 'bfloat16') bfloat16ToFloat32(elementsOf({ ...tensor, dtype }), values);
  else if (isSmallFloat(dtype)) smallFloatToFloat32(dtype, tensor.bytes, values);
  else if (isPackedInteger(dtype)) {
    const integers = new Int8Array(values.length);
    unpackIntegers(dtype, tensor.bytes, integers);
    values.set(integers);
  } else if (isArrayDtype(dtype)) {
    const elements = elementsOf({ ...tensor, dtype });
    for (let i = 0; i < values.length; i++) values[i] = Number(elements[i]);
  } else throw unsupported(name, dtype);
  return values;
}

/**
 * The values of a float tensor as float32 that rounds to a narrower type as they themselves would: a float64 that lies between two float32 is the odd one
 * of them, which is never halfway between two numbers of fewer bits (rounding to odd; Boldo and Melquiond, 2008).
 */
export function narrowableValues(tensor: Tensor): Float32Array {
  const values = float32Values(tensor);
  if (tensor.dtype !== 'float64') return values;
  const bits = new Int32Array(values.buffer, values.byteOffset, values.length);
  const wide = elementsOf({ ...tensor, dtype: tensor.dtype });
  for (let i = 0; i < values.length; i++) {
    const [value, nearest] = [wide[i]!, values[i]!];
    if (nearest === value || Number.isNaN(value) || (bits[i]! & 1) === 1) continue;
    bits[i]! += Math.abs(nearest) < Math.abs(value) ? 1 : -1;
  }
  return values;
}

/** A tensor of one of the float types from float32 values, rounded to nearest even; those of one byte hold no more than their largest number. */
export function floatTensor(
  dtype: 'float16' | 'bfloat16' | 'float32' | 'float64' | ByteFloat,
  shape: readonly number[],
  values: Float32Array,
): Tensor {
  if (isByteFloat(dtype)) return { dtype, shape, bytes: float32ToByteFloat(dtype, values) };
  if (dtype === 'float32') return tensorFrom(dtype, shape, values);
  if (dtype === 'float64') return tensorFrom(dtype, shape, Float64Array.from(values));
  const bits = new Uint16Array(values.length);
  if (dtype === 'float16') float32ToFloat16(values, bits);
  else float32ToBfloat16(values, bits);
  return tensorFrom(dtype, shape, bits);
}

export const integerDtypes = [
  'int8',
  'uint8',
  'int16',
  'uint16',
  'int32',
  'uint32',
  'int64',
  'uint64',
] as const;
export type IntegerDtype = (typeof integerDtypes)[number];

export const isIntegerDtype = (dtype: Dtype): dtype is IntegerDtype =>
  (integerDtypes as readonly Dtype[]).includes(dtype);

/** Place of the first number that an integer type cannot hold; -1 when it contains all of them. */
export function firstBeyond(dtype: IntegerDtype, values: ArrayLike<number>): number {
  const { bits, kind } = dtypes[dtype];
  const isSigned = kind === 'int';
  // The largest 64-bit numbers are no doubles; the powers of two above them are.
  const [least, above] = [isSigned ? -(2 ** (bits - 1)) : 0, 2 ** (isSigned ? bits - 1 : bits)];
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (!(value >= least && value < above)) return i;
  }
  return -1;
}

/** A tensor of one of the integer types; numbers wrap around as typed arrays let them (see `firstBeyond`). */
export function integerTensor(
  dtype: IntegerDtype,
  shape: readonly number[],
  values: ArrayLike<number>,
): Tensor {
  if (dtype === 'int64')
    return tensorFrom(
      dtype,
      shape,
      BigInt64Array.from(values, (value) => BigInt(value)),
    );
  if (dtype === 'uint64')
    return tensorFrom(
      dtype,
      shape,
      BigUint64Array.from(values, (value) => BigInt(value)),
    );
  const elements = new narrowIntegers[dtype](values.length);
  for (let i = 0; i < elements.length; i++) elements[i] = values[i]!;
  return tensorFrom(dtype, shape, elements);
}

const narrowIntegers = {
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
} as const;

/** Numbers in an array of a type that holds them. */
export type NumberArray = Float32Array | Float64Array | Int32Array | Uint32Array;

/** The elements as exact numbers; 64-bit integers beyond 2^53 lose their last bits. Throws TF_TENSOR_UNSUPPORTED like `float32Values`. */
export function numbersOf(tensor: Tensor, name = 'the tensor'): NumberArray {
  const { dtype } = tensor;
  if (dtype === 'int64' || dtype === 'uint64') {
    const elements = elementsOf({ ...tensor, dtype });
    // Several times as fast as Float64Array.from, which goes through an iterator.
    const values = new Float64Array(elements.length);
    for (let i = 0; i < values.length; i++) values[i] = Number(elements[i]);
    return values;
  }
  if (dtype === 'float64') return elementsOf({ ...tensor, dtype });
  if (dtype === 'int32') return elementsOf({ ...tensor, dtype });
  if (dtype === 'uint32') return elementsOf({ ...tensor, dtype });
  return float32Values(tensor, name);
}

function unsupported(name: string, dtype: Dtype): TrtforgeError {
  return new TrtforgeError('TF_TENSOR_UNSUPPORTED', `The elements of ${name} are ${dtype}, not numbers.`);
}

/** A tensor with its elements as a typed array, halves as bits; null for types that JavaScript has no array of. */
export interface TypedTensor extends Tensor {
  readonly data: ElementArray | null;
}

/** The type of each typed array; an `Uint16Array` of halves needs its type named. */
const dtypeOfArray: Readonly<Record<string, ArrayDtype>> = {
  ...{ Float32Array: 'float32', Float64Array: 'float64', Int8Array: 'int8', Uint8Array: 'uint8' },
  ...{ Int16Array: 'int16', Uint16Array: 'uint16', Int32Array: 'int32', Uint32Array: 'uint32' },
  ...{ BigInt64Array: 'int64', BigUint64Array: 'uint64' },
};

/**
 * A tensor over the memory of a typed array, or one that a session returned with its `data`. Not a promise. Throws TF_USAGE for what is no typed array, or does not
 * fill the shape.
 *
 * ```ts
 * const image = tensor(new Float32Array(6), [2, 3]);
 * use(tensor(image).data);
 * ```
 */
export function tensor(
  values: Tensor | ElementArray,
  shape: readonly number[] = [],
  type?: ArrayDtype,
): TypedTensor {
  // JavaScript calls it with anything, such as the type first, as onnxruntime-node takes it.
  if (typeof values === 'object' && values !== null && 'dtype' in values) {
    const { dtype } = values;
    return { ...values, data: isArrayDtype(dtype) ? elementsOf({ ...values, dtype }) : null };
  }
  const dtype = type ?? dtypeOfArray[values?.constructor?.name];
  const isShape = Array.isArray(shape) && shape.every((size) => Number.isSafeInteger(size) && size >= 0);
  if (!isShape || !isElementsOf(dtype, values) || values.length !== elementCount(shape)) {
    const named = type === undefined ? '' : ` and the type ${type}`;
    const what = ArrayBuffer.isView(values) ? `${values.length} elements` : 'Values without a typed array';
    throw new TrtforgeError('TF_USAGE', `${what} do not make a tensor of the shape [${shape}]${named}.`, {
      remedy: 'Pass a typed array and its dimensions: tensor(new Float32Array(6), [2, 3]).',
    });
  }
  return { ...tensorFrom(dtype, shape, values), data: values };
}
