import { type FloatFormat, float64Format } from '../float-format.js';
import {
  type Code,
  f32,
  f32x4,
  f64,
  f64x2,
  i16x8,
  i32,
  i32x4,
  i64,
  i64x2,
  type Local,
  v128,
} from './wasm-assembler.js';

/** What differs between the vector kernels of the two formats. */
export interface KernelLanes {
  readonly bytes: FloatFormat['bytes'];
  /** The type of a single number. */
  readonly scalar: 'f32' | 'f64';
  readonly constant: (value: number) => Code;
  /** Arithmetic on a vector of numbers. */
  readonly float: Omit<typeof f64x2, 'promoteLow'>;
  /** Subtracts integers as wide as the numbers: what a comparison gives is -1 where it holds. */
  readonly subtractCounts: typeof i32x4.subtract;
  /** A vector's numbers added up to two float64. */
  readonly total: (value: Local) => Code;
  /** The keys (upper 16 bits) of the eight numbers at `at`. */
  readonly keys: (at: Local) => Code;
  /** Copies the number at an address to another. */
  readonly copy: (to: Code, from: Code) => Code;
}

const upwards = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);

/** The upper two 32-bit lanes in the place of the lower. */
const upperHalf = (value: Code): Code => v128.shuffle(value, value, [...upwards(8, 8), ...upwards(0, 8)]);

const lanes32: KernelLanes = {
  bytes: 4,
  scalar: 'f32',
  constant: f32.constant,
  float: f32x4,
  subtractCounts: i32x4.subtract,
  total: ({ get }) => f64x2.add(f64x2.promoteLow(get), f64x2.promoteLow(upperHalf(get))),
  keys: (at) => {
    const upper = (offset: number) => i32x4.shiftRightUnsigned(v128.load(at.get, offset), i32.constant(16));
    return i16x8.narrowUnsigned(upper(0), upper(16));
  },
  copy: (to, from) => i32.store(to, i32.load(from)),
};

/** The upper 16 bits of the four numbers of two vectors, twice. */
const UPPER_WORDS = [6, 14, 22, 30, 6, 14, 22, 30].flatMap((byte) => [byte, byte + 1]);

const lanes64: KernelLanes = {
  bytes: 8,
  scalar: 'f64',
  constant: f64.constant,
  float: f64x2,
  subtractCounts: i64x2.subtract,
  total: ({ get }) => get,
  keys: (at) => {
    const upper = (offset: number) =>
      v128.shuffle(v128.load(at.get, offset), v128.load(at.get, offset + 16), UPPER_WORDS);
    return v128.shuffle(upper(0), upper(32), [...upwards(0, 8), ...upwards(16, 8)]);
  },
  copy: (to, from) => i64.store(to, i64.load(from)),
};

export const lanesOf = (format: FloatFormat): KernelLanes => (format === float64Format ? lanes64 : lanes32);
