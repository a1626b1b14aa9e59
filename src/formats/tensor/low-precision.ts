import { type Dtype, dtypes } from './dtype.js';
import { roundHalfToEven } from './rounding.js';

/**
 * float32 to and from float16 and bfloat16 bits in bulk. Rounding is IEEE 754's round to nearest, ties to even; NaN stays NaN.
 * Measured over weights of a network on a shared 2-core machine: 1.1 to 1.8 GB of float32 a second into float16, about the same into bfloat16 and back.
 * All platforms that Node runs on are little-endian, which the two-at-a-time stores rely on.
 */

/** Counts of the passed values that float16 could not hold. A caller that keeps such a tensor in float32 needs no second pass to find out. */
export interface HalfLosses {
  /** Finite values of 65520 and more in magnitude, which became infinity. */
  readonly toInfinity: number;
  /** Values other than zero that became zero: 2^-25 and less in magnitude. */
  readonly toZero: number;
  /** Values that became subnormal (under 2^-14) and so keep fewer than 11 significant bits. */
  readonly toSubnormal: number;
}

const SIGN = 0x80000000 | 0;
const MAGNITUDE = 0x7fffffff;
/** 2^-14 as float32 bits: the smallest normal float16. */
const SMALLEST_NORMAL = 0x38800000;
/** 65520 as float32 bits: from here a tie or more rounds to infinity. */
const OVERFLOW = 0x477ff000;
const NORMAL_SPAN = OVERFLOW - SMALLEST_NORMAL;
/** Half of the 13 bits that float16 drops, less one: with the kept bit added, ties go to even. */
const ROUND = 0xfff;
/** The exponents' biases differ by 127 - 15 = 112. */
const REBIAS = 112 << 23;
const INFINITY = 0x7f800000;

/** Writes the float16 bits of each value of `source` into `target`, which must be as long. */
export function float32ToFloat16(source: Float32Array, target: Uint16Array): HalfLosses {
  checkLengths(source.length, target.length);
  const bits = new Int32Array(source.buffer, source.byteOffset, source.length);
  const losses = { toInfinity: 0, toZero: 0, toSubnormal: 0 };
  const head = Math.min(bits.length, (target.byteOffset & 2) >>> 1);
  const pairs = (bits.length - head) >>> 1;
  const target32 =
    pairs === 0 ? new Uint32Array() : new Uint32Array(target.buffer, target.byteOffset + 2 * head, pairs);
  if (head === 1) target[0] = encodeOne(bits[0]!, losses);
  for (let pair = 0, i = head; pair < pairs; pair++, i += 2) {
    const low = bits[i]!;
    const high = bits[i + 1]!;
    const x = low & MAGNITUDE;
    const y = high & MAGNITUDE;
    // The two conditions are true for nearly every weight, so the processor predicts them.
    const halfX =
      (x - SMALLEST_NORMAL) >>> 0 < NORMAL_SPAN
        ? (x + ROUND + ((x >>> 13) & 1) - REBIAS) >>> 13
        : encodeRare(x, losses);
    const halfY =
      (y - SMALLEST_NORMAL) >>> 0 < NORMAL_SPAN
        ? (y + ROUND + ((y >>> 13) & 1) - REBIAS) >>> 13
        : encodeRare(y, losses);
    target32[pair] = halfX | ((low >>> 16) & 0x8000) | (halfY << 16) | (high & SIGN);
  }
  const last = head + 2 * pairs;
  if (last < bits.length) target[last] = encodeOne(bits[last]!, losses);
  return losses;
}

/** Writes the float32 value of each float16 of `source` into `target`, which must be as long. */
export function float16ToFloat32(source: Uint16Array, target: Float32Array): void {
  checkLengths(source.length, target.length);
  const bits = new Int32Array(target.buffer, target.byteOffset, target.length);
  const table = decodingTable();
  for (let i = 0; i < bits.length; i++) bits[i] = table[source[i]!]!;
}

/** Writes the bfloat16 bits of each value of `source` into `target`, which must be as long. */
export function float32ToBfloat16(source: Float32Array, target: Uint16Array): void {
  checkLengths(source.length, target.length);
  const bits = new Int32Array(source.buffer, source.byteOffset, source.length);
  for (let i = 0; i < bits.length; i++) target[i] = encodeBfloat(bits[i]!);
}

/** Writes the float32 value of each bfloat16 of `source` into `target`, which must be as long. Exact. */
export function bfloat16ToFloat32(source: Uint16Array, target: Float32Array): void {
  checkLengths(source.length, target.length);
  const bits = new Int32Array(target.buffer, target.byteOffset, target.length);
  for (let i = 0; i < bits.length; i++) bits[i] = source[i]! << 16;
}

type Counters = { -readonly [K in keyof HalfLosses]: number };

function encodeOne(bits: number, losses: Counters): number {
  const x = bits & MAGNITUDE;
  const isNormal = (x - SMALLEST_NORMAL) >>> 0 < NORMAL_SPAN;
  const half = isNormal ? (x + ROUND + ((x >>> 13) & 1) - REBIAS) >>> 13 : encodeRare(x, losses);
  return half | ((bits >>> 16) & 0x8000);
}

/** Zero, subnormal results, infinity and NaN; `x` is the magnitude's float32 bits. */
function encodeRare(x: number, losses: Counters): number {
  if (x === 0) return 0;
  if (x >= OVERFLOW) {
    if (x > INFINITY) return 0x7e00 | ((x >>> 13) & 0x3ff);
    if (x !== INFINITY) losses.toInfinity++;
    return 0x7c00;
  }
  const shift = 126 - (x >>> 23);
  if (shift > 24) {
    losses.toZero++;
    return 0;
  }
  const mantissa = (x & 0x7fffff) | 0x800000;
  const kept = mantissa >>> shift;
  const dropped = mantissa & ((1 << shift) - 1);
  const half = 1 << (shift - 1);
  const rounded = dropped > half || (dropped === half && (kept & 1) === 1) ? kept + 1 : kept;
  if (rounded === 0) losses.toZero++;
  else if (rounded < 0x400) losses.toSubnormal++;
  return rounded;
}

function encodeBfloat(bits: number): number {
  // A NaN is kept quiet and never rounded up into infinity.
  return (bits & MAGNITUDE) > INFINITY ? (bits >>> 16) | 0x40 : (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

let table: Int32Array | undefined;

/** Float32 bits of all 65,536 halves: a look-up is faster than taking the bits apart. Made when first needed. */
function decodingTable(): Int32Array {
  table ??= Int32Array.from({ length: 1 << 16 }, (_, bits) => decodeOne(bits));
  return table;
}

function decodeOne(bits: number): number {
  const sign = (bits & 0x8000) << 16;
  const exponent = (bits >>> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  if (exponent === 0x1f) return sign | INFINITY | (mantissa << 13);
  if (exponent !== 0) return sign | ((exponent + 112) << 23) | (mantissa << 13);
  if (mantissa === 0) return sign;
  // A subnormal half is mantissa * 2^-24: shift its leading one into float32's implicit place.
  const lead = Math.clz32(mantissa) - 21;
  return sign | ((113 - lead) << 23) | ((mantissa << (13 + lead)) & 0x7fffff);
}

function checkLengths(source: number, target: number): void {
  if (source !== target)
    throw new RangeError(`${source} values cannot be converted into a place for ${target}.`);
}

/** Dtypes of 8 bits and fewer that hold floats. Layouts: OCP 8-bit and MX formats, as ONNX's float8 and float4 pages spell them. */
export const smallFloats = [
  'float8_e4m3fn',
  'float8_e4m3fnuz',
  'float8_e5m2',
  'float8_e5m2fnuz',
  'float8_e8m0fnu',
  'float4_e2m1fn',
] as const satisfies readonly Dtype[];
export type SmallFloat = (typeof smallFloats)[number];

/** Dtypes that ONNX packs several to a byte, the first in the lowest bits. */
const packedIntegers = ['int4', 'uint4', 'int2', 'uint2'] as const satisfies readonly Dtype[];
export type PackedInteger = (typeof packedIntegers)[number];

export const isSmallFloat = (dtype: Dtype): dtype is SmallFloat =>
  (smallFloats as readonly Dtype[]).includes(dtype);

export const isPackedInteger = (dtype: Dtype): dtype is PackedInteger =>
  (packedIntegers as readonly Dtype[]).includes(dtype);

interface FloatLayout {
  readonly exponentBits: number;
  readonly mantissaBits: number;
  readonly bias: number;
  /** The meaning of the patterns beyond the finite numbers. */
  readonly specials: 'ieee' | 'all-ones-is-nan' | 'negative-zero-is-nan' | 'none';
}

const layouts: Readonly<Record<Exclude<SmallFloat, 'float8_e8m0fnu'>, FloatLayout>> = {
  float8_e4m3fn: { exponentBits: 4, mantissaBits: 3, bias: 7, specials: 'all-ones-is-nan' },
  float8_e4m3fnuz: { exponentBits: 4, mantissaBits: 3, bias: 8, specials: 'negative-zero-is-nan' },
  float8_e5m2: { exponentBits: 5, mantissaBits: 2, bias: 15, specials: 'ieee' },
  float8_e5m2fnuz: { exponentBits: 5, mantissaBits: 2, bias: 16, specials: 'negative-zero-is-nan' },
  float4_e2m1fn: { exponentBits: 2, mantissaBits: 1, bias: 1, specials: 'none' },
};

/** Writes the value of each of `target.length` small floats in `bytes` into `target`. Exact: float32 holds them all. */
export function smallFloatToFloat32(dtype: SmallFloat, bytes: Uint8Array, target: Float32Array): void {
  const table = smallFloatTable(dtype);
  if (dtypes[dtype].bits === 8) {
    for (let i = 0; i < target.length; i++) target[i] = table[bytes[i]!]!;
    return;
  }
  for (let i = 0; i < target.length; i++) target[i] = table[(bytes[i >>> 1]! >>> (4 * (i & 1))) & 15]!;
}

/** Writes each of `target.length` packed integers into `target`, one a place. */
export function unpackIntegers(
  dtype: PackedInteger,
  bytes: Uint8Array,
  target: Int8Array | Uint8Array,
): void {
  const { bits, kind } = dtypes[dtype];
  const perByte = 8 / bits;
  const unused = 32 - bits;
  for (let i = 0; i < target.length; i++) {
    const lifted = (bytes[Math.floor(i / perByte)]! >>> (bits * (i % perByte))) << unused;
    target[i] = kind === 'int' ? lifted >> unused : lifted >>> unused;
  }
}

/** Small floats of one byte. */
export type ByteFloat = Exclude<SmallFloat, 'float4_e2m1fn'>;

export const isByteFloat = (dtype: Dtype): dtype is ByteFloat =>
  isSmallFloat(dtype) && dtypes[dtype].bits === 8;

/**
 * The bytes of small floats from float32 values, each rounded to the nearest finite one (of two as near, to the even bits) as a saturating cast does; NaN stays
 * NaN.
 */
export function float32ToByteFloat(dtype: ByteFloat, values: Float32Array): Uint8Array {
  if (dtype === 'float8_e4m3fn') {
    const codes = new Uint8Array(values.length);
    float32ToE4m3(values, codes);
    // As of the others a zero has no sign.
    return codes.map((code) => (code === 0x80 ? 0 : code));
  }
  const patterns = finitePatterns(dtype);
  const notANumber = smallFloatTable(dtype).findIndex((value) => Number.isNaN(value));
  return Uint8Array.from(values, (value) => (Number.isNaN(value) ? notANumber : nearest(patterns, value)));
}

/** The code of 448, the largest of E4M3; the next one is NaN. */
const LARGEST_E4M3 = 0x7e;
const NAN_E4M3 = 0x7f;
/** 2^-6, the smallest normal value of E4M3, and the steps below it: 2^-9. */
const NORMAL_E4M3 = (127 - 6) << 23;
const STEPS_E4M3 = 2 ** 9;

/** Writes the E4M3 codes (float8_e4m3fn) of float32 values, each rounded to the nearest, of two as near to the even one, and saturated; NaN stays NaN. */
export function float32ToE4m3(values: Float32Array, target: Uint8Array): void {
  const bits = new Int32Array(values.buffer, values.byteOffset, values.length);
  for (let i = 0; i < values.length; i++) target[i] = e4m3Of(values[i]!, bits[i]!);
}

/** Rounds on the bits of FP32: 20 of the 23 bits of its mantissa go, and the exponents' biases differ by 120. */
function e4m3Of(value: number, bits: number): number {
  const sign = (bits >>> 24) & 0x80;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | NAN_E4M3;
  if (magnitude < NORMAL_E4M3) return sign | roundHalfToEven(Math.abs(value) * STEPS_E4M3);
  const rounded = ((magnitude + 0x7ffff + ((magnitude >>> 20) & 1)) >>> 20) - (120 << 3);
  return sign | Math.min(LARGEST_E4M3, rounded);
}

interface Pattern {
  readonly bits: number;
  readonly value: number;
}

/** From the least value to the greatest; zero without a sign. */
function finitePatterns(dtype: SmallFloat): readonly Pattern[] {
  return [...smallFloatTable(dtype)]
    .map((value, bits) => ({ bits, value }))
    .filter(({ value }) => Number.isFinite(value) && !Object.is(value, -0))
    .sort((a, b) => a.value - b.value);
}

function nearest(patterns: readonly Pattern[], wanted: number): number {
  let [low, high] = [0, patterns.length - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (patterns[middle]!.value < wanted) low = middle + 1;
    else high = middle;
  }
  const [above, below] = [patterns[low]!, patterns[Math.max(0, low - 1)]!];
  const [up, down] = [above.value - wanted, wanted - below.value];
  if (up === down) return above.bits % 2 === 0 ? above.bits : below.bits;
  return Math.abs(up) < Math.abs(down) ? above.bits : below.bits;
}

const tables = new Map<SmallFloat, Float32Array>();

/** The value of every bit pattern of a small float: 256 of them, or 16. */
export function smallFloatTable(dtype: SmallFloat): Float32Array {
  const known = tables.get(dtype);
  if (known !== undefined) return known;
  const patterns = 1 << dtypes[dtype].bits;
  const table = Float32Array.from({ length: patterns }, (_, bits) =>
    dtype === 'float8_e8m0fnu' ? powerOfTwo(bits) : valueOfPattern(layouts[dtype], bits),
  );
  tables.set(dtype, table);
  return table;
}

/** e8m0 is an exponent and nothing else: 2^(bits - 127), all ones is NaN. */
function powerOfTwo(bits: number): number {
  return bits === 255 ? Number.NaN : 2 ** (bits - 127);
}

function valueOfPattern(layout: FloatLayout, bits: number): number {
  const { exponentBits, mantissaBits, bias, specials } = layout;
  const sign = bits >>> (exponentBits + mantissaBits) ? -1 : 1;
  const largestExponent = (1 << exponentBits) - 1;
  const largestMantissa = (1 << mantissaBits) - 1;
  const exponent = (bits >>> mantissaBits) & largestExponent;
  const mantissa = bits & largestMantissa;
  if (exponent === largestExponent) {
    if (specials === 'ieee') return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
    if (specials === 'all-ones-is-nan' && mantissa === largestMantissa) return Number.NaN;
  }
  if (exponent === 0) {
    if (specials === 'negative-zero-is-nan' && mantissa === 0 && sign < 0) return Number.NaN;
    return sign * mantissa * 2 ** (1 - bias - mantissaBits);
  }
  return sign * (1 + mantissa / (1 << mantissaBits)) * 2 ** (exponent - bias);
}
