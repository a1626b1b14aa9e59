import type { WeightStream } from '../onnx/weight.js';
import type { Dtype } from '../tensor/dtype.js';

/**
 * The losses of a weight in its conversion. The policy: values are rounded to nearest even; finite values too large for the type become its
 * largest finite value with their sign, never infinity; values too small become subnormal or zero; infinities and NaN stay what they are.
 */
interface WeightLosses {
  readonly saturated: number;
  readonly toZero: number;
  readonly subnormal: number;
}

/** A stream of converted values that knows, once it was read to its end, how many there were and what was lost. */
export interface ConvertedStream extends WeightStream {
  readonly elements: number;
  readonly losses: WeightLosses;
}

/** A floating-point type of 16 bits. */
interface SixteenBits {
  readonly dtype: Dtype;
  /** Bits of the largest finite value, and of infinity, without sign. */
  readonly largest: number;
  readonly infinity: number;
  /** Writes the bits of each value into the target. `hasInfinity` is false where no finite value became infinite for sure. */
  readonly round: (
    values: Float32Array,
    target: Uint16Array,
  ) => { readonly hasInfinity: boolean; readonly toZero: number; readonly subnormal: number };
}

const FLOAT32_INFINITY = 0x7f800000;

/** Converts FP32 values to a type of 16 bits chunk by chunk as they are read; memory does not grow with the weight. Finite magnitudes beyond `limit` become it. */
export function sixteenBitStream(
  source: WeightStream,
  type: SixteenBits,
  limit = Number.POSITIVE_INFINITY,
): ConvertedStream {
  let losses: WeightLosses = { saturated: 0, toZero: 0, subnormal: 0 };
  return {
    dtype: type.dtype,
    byteLength: source.byteLength / 2,
    elements: source.byteLength / 4,
    get losses() {
      return losses;
    },
    *chunks(chunkBytes?: number) {
      const total = { saturated: 0, toZero: 0, subnormal: 0 };
      let target = new Uint16Array(0);
      for (const chunk of source.chunks(chunkBytes === undefined ? undefined : 2 * chunkBytes)) {
        const read = new Float32Array(chunk.buffer, chunk.byteOffset, chunk.byteLength >> 2);
        const values = Number.isFinite(limit) ? read.map(within(limit)) : read;
        if (values !== read) total.saturated += values.filter((value, index) => value !== read[index]).length;
        if (target.length < values.length) target = new Uint16Array(values.length);
        const converted = target.subarray(0, values.length);
        const { hasInfinity, toZero, subnormal } = type.round(values, converted);
        total.toZero += toZero;
        total.subnormal += subnormal;
        if (hasInfinity) total.saturated += saturate(values, converted, type);
        yield new Uint8Array(converted.buffer, converted.byteOffset, converted.byteLength);
      }
      losses = total;
    },
  };
}

const within = (limit: number) => (value: number) =>
  Number.isFinite(value) ? Math.max(-limit, Math.min(limit, value)) : value;

/** Replaces infinities that were finite before by the largest finite value; returns how many. */
function saturate(values: Float32Array, converted: Uint16Array, { largest, infinity }: SixteenBits): number {
  const bits = new Int32Array(values.buffer, values.byteOffset, values.length);
  let count = 0;
  for (let index = 0; index < converted.length; index++) {
    const half = converted[index]!;
    if ((half & 0x7fff) !== infinity || (bits[index]! & 0x7fffffff) === FLOAT32_INFINITY) continue;
    converted[index] = (half & 0x8000) | largest;
    count++;
  }
  return count;
}
