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
