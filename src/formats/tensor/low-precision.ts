import { type Dtype, dtypes } from './dtype.js';

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
  const patterns = finitePatterns(dtype);
  const notANumber = smallFloatTable(dtype).findIndex((value) => Number.isNaN(value));
  return Uint8Array.from(values, (value) => (Number.isNaN(value) ? notANumber : nearest(patterns, value)));
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
