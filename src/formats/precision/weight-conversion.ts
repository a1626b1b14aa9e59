import type { WeightStream } from '../onnx/weight.js';
import { dtypes } from '../tensor/dtype.js';
import { float32ToBfloat16, float32ToFloat16 } from '../tensor/float16.js';
import type { LowType } from './options.js';

/**
 * What a weight lost on its way to 16 bits. The policy: values are rounded to nearest even; finite values too large for the type become its
 * largest finite value with their sign, never infinity; values too small become subnormal or zero; infinities and NaN stay what they are.
 */
interface WeightLosses {
  readonly saturated: number;
  readonly toZero: number;
  readonly subnormal: number;
}

/** A stream of converted values that knows, once it was read to its end, what was lost. */
export interface ConvertedStream extends WeightStream {
  readonly losses: WeightLosses;
}

/** Bits of the largest finite value, and of infinity, without sign. */
const bitsOf: Readonly<Record<LowType, { readonly largest: number; readonly infinity: number }>> = {
  float16: { largest: 0x7bff, infinity: 0x7c00 },
  bfloat16: { largest: 0x7f7f, infinity: 0x7f80 },
};
const FLOAT32_INFINITY = 0x7f800000;

/** Converts FP32 values chunk by chunk as they are read; memory does not grow with the weight. */
export function convertedStream(source: WeightStream, to: LowType): ConvertedStream {
  let losses: WeightLosses = { saturated: 0, toZero: 0, subnormal: 0 };
  return {
    dtype: to,
    byteLength: (source.byteLength * dtypes[to].bits) / 32,
    get losses() {
      return losses;
    },
    *chunks(chunkBytes?: number) {
      const total = { saturated: 0, toZero: 0, subnormal: 0 };
      let target = new Uint16Array(0);
      for (const chunk of source.chunks(chunkBytes === undefined ? undefined : 2 * chunkBytes)) {
        const values = new Float32Array(chunk.buffer, chunk.byteOffset, chunk.byteLength >> 2);
        if (target.length < values.length) target = new Uint16Array(values.length);
        const converted = target.subarray(0, values.length);
        if (to === 'float16') {
          const { toInfinity, toZero, toSubnormal } = float32ToFloat16(values, converted);
          total.toZero += toZero;
          total.subnormal += toSubnormal;
          if (toInfinity > 0) total.saturated += saturate(values, converted, to);
        } else {
          float32ToBfloat16(values, converted);
          total.saturated += saturate(values, converted, to);
        }
        yield new Uint8Array(converted.buffer, converted.byteOffset, converted.byteLength);
      }
      losses = total;
    },
  };
}

/** Replaces infinities that were finite before by the largest finite value; returns how many. */
function saturate(values: Float32Array, converted: Uint16Array, to: LowType): number {
  const { largest, infinity } = bitsOf[to];
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
