import { type Dtype, elementCount } from './dtype.js';
import { type ByteFloat, isByteFloat, smallFloats } from './low-precision.js';
import {
  floatTensor,
  type IntegerDtype,
  integerDtypes,
  integerTensor,
  isIntegerDtype,
  type Tensor,
  tensorFrom,
} from './tensor.js';

/**
 * Random numbers that are the same on every machine for the same seed. Generator: xoshiro128** 1.1 by Blackman and Vigna (period 2^128 - 1), its state
 * filled by splitmix32 from the seed and the stream's name, so that each tensor has numbers of its own whatever the order they are made in.
 */
export interface RandomStream {
  /** 32 random bits, 0 to 2^32 - 1. */
  bits(): number;
  /** From 0 (included) to 1 (excluded), 24 random bits: exact in float32. */
  uniform(): number;
  /** Mean 0, standard deviation 1: Marsaglia's polar method. */
  normal(): number;
  /** A whole number from `low` to `high`, both included, each as likely (values above the last full multiple are drawn again). */
  integer(low: number, high: number): number;
}

export function randomStream(seed: number, name = ''): RandomStream {
  const fill = splitmix32(hash(`${seed}/${name}`));
  let a = fill();
  let b = fill();
  let c = fill();
  let d = fill();
  let spare: number | undefined;

  const bits = (): number => {
    const scrambled = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = rotate(d, 11);
    return scrambled;
  };
  const uniform = (): number => (bits() >>> 8) / 2 ** 24;
  const normal = (): number => {
    if (spare !== undefined) {
      const kept = spare;
      spare = undefined;
      return kept;
    }
    for (;;) {
      const x = 2 * uniform() - 1;
      const y = 2 * uniform() - 1;
      const square = x * x + y * y;
      if (square >= 1 || square === 0) continue;
      const scale = Math.sqrt((-2 * Math.log(square)) / square);
      spare = y * scale;
      return x * scale;
    }
  };
  const integer = (low: number, high: number): number => {
    const span = high - low + 1;
    if (span > 2 ** 32)
      return low + Math.floor(((bits() >>> 5) * 2 ** 26 + (bits() >>> 6)) * (span / 2 ** 53));
    const limit = 2 ** 32 - (2 ** 32 % span);
    for (;;) {
      const drawn = bits();
      if (drawn < limit) return low + (drawn % span);
    }
  };
  return { bits, uniform, normal, integer };
}

/** The distribution of the elements of a random tensor. Bounds are included; for floats `high` itself is excluded. */
export type Spread = { readonly kind: 'normal'; readonly mean: number; readonly deviation: number } | Uniform;

export interface Uniform {
  readonly kind: 'uniform';
  readonly low: number;
  readonly high: number;
  /** Whole numbers of the range that come before the others where elements are drawn in turn. */
  readonly first?: readonly number[];
}

type FloatDtype = 'float16' | 'bfloat16' | 'float32' | 'float64' | ByteFloat;

/** Dtypes that random tensors can be made of. */
export type RandomDtype = IntegerDtype | FloatDtype | 'bool';

const randomDtypes: ReadonlySet<Dtype> = new Set<Dtype>([
  ...integerDtypes,
  ...(['float16', 'bfloat16', 'float32', 'float64', 'bool'] as const),
  ...smallFloats.filter(isByteFloat),
]);

export const isRandomDtype = (dtype: Dtype): dtype is RandomDtype => randomDtypes.has(dtype);

/** A tensor of random elements. Booleans are true half the time; integers are drawn uniformly, a normal spread is rounded; both only where `inTurn` leaves them open. */
export function randomTensor(
  dtype: RandomDtype,
  shape: readonly number[],
  spread: Spread,
  stream: RandomStream,
  inTurn: (element: number) => number | undefined = () => undefined,
): Tensor {
  const count = elementCount(shape);
  if (dtype === 'bool') {
    const elements = Uint8Array.from({ length: count }, (_, at) => inTurn(at) ?? stream.bits() >>> 31);
    return tensorFrom(dtype, shape, elements);
  }
  if (isIntegerDtype(dtype)) {
    const draw = integerSource(spread, stream);
    const elements = Float64Array.from({ length: count }, (_, at) => inTurn(at) ?? draw());
    return integerTensor(dtype, shape, elements);
  }
  const draw = floatSource(spread, stream);
  const values = new Float32Array(count);
  for (let i = 0; i < count; i++) values[i] = draw();
  return floatTensor(dtype, shape, values);
}

function floatSource(spread: Spread, stream: RandomStream): () => number {
  if (spread.kind === 'normal') return () => spread.mean + spread.deviation * stream.normal();
  return () => spread.low + (spread.high - spread.low) * stream.uniform();
}

function integerSource(spread: Spread, stream: RandomStream): () => number {
  if (spread.kind === 'normal') return () => Math.round(spread.mean + spread.deviation * stream.normal());
  const low = Math.ceil(spread.low);
  const high = Math.max(low, Math.floor(spread.high));
  return () => stream.integer(low, high);
}

/**
 * Every whole number of a range once: `first`, then the others in an order of the stream's, then undefined. A range of more than 2^32 has its `first` alone.
 * The order is a Feistel network of four rounds, walked on while it lands outside: any position is found without those before it.
 */
export function eachOnce(
  { low, high, first = [] }: Uniform,
  stream: RandomStream,
): (position: number) => number | undefined {
  const least = Math.ceil(low);
  const others = Math.floor(high) - least + 1 - first.length;
  const half = Math.ceil(Math.log2(Math.max(2, others)) / 2);
  const keys = Array.from({ length: 4 }, stream.bits);
  const shuffled = (at: number): number => {
    let [left, right] = [at >>> half, at & (2 ** half - 1)];
    for (const key of keys) [left, right] = [right, left ^ (mix(right ^ key) >>> (32 - half))];
    return left * 2 ** half + right;
  };
  const taken = first.toSorted((a, b) => a - b);
  return (position) => {
    if (position < first.length) return first[position];
    if (others > 2 ** 32 || position - first.length >= others) return undefined;
    let at = shuffled(position - first.length);
    while (at >= others) at = shuffled(at);
    return taken.reduce((value, skipped) => (value >= skipped ? value + 1 : value), least + at);
  };
}

const rotate = (value: number, by: number): number => (value << by) | (value >>> (32 - by));

/** FNV-1a over UTF-16 units. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

function splitmix32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    return mix(state);
  };
}

function mix(state: number): number {
  let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return mixed ^ (mixed >>> 15);
}
