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

/** Numbers as a comparison works on them. */
export type FloatArray = Float32Array | Float64Array;

/** One of the two formats in which numbers are compared (IEEE 754), and what its bits mean. */
export interface FloatFormat {
  readonly name: 'float32' | 'float64';
  readonly bytes: 4 | 8;
  readonly exponentBits: 8 | 11;
  /** The number subtracted from the exponent's bits to get the exponent. */
  readonly bias: 127 | 1023;
  /** A result of arithmetic in float64 as this format holds it. */
  readonly round: (value: number) => number;
  readonly make: (length: number) => FloatArray;
}

export const float32Format: FloatFormat = {
  name: 'float32',
  bytes: 4,
  exponentBits: 8,
  bias: 127,
  round: Math.fround,
  make: (length) => new Float32Array(length),
};

export const float64Format: FloatFormat = {
  name: 'float64',
  bytes: 8,
  exponentBits: 11,
  bias: 1023,
  round: (value) => value,
  make: (length) => new Float64Array(length),
};

export const formatOf = (values: FloatArray): FloatFormat =>
  values instanceof Float64Array ? float64Format : float32Format;
