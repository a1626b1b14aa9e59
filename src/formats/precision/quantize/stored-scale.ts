import {
  bfloat16ToFloat32,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
} from '../../tensor/low-precision.js';
import { bf16 } from '../formats/bf16.js';
import { fp16 } from '../formats/fp16.js';
import type { RestId } from '../formats/index.js';

/**
 * The scale with which the largest code stands for a magnitude, as the type of the rest of the model holds it: the codes are computed with the rounded scale, so
 * its rounding costs nothing. 1 for a magnitude of zero. Undefined where the type cannot hold it: TensorRT takes an infinite scale without a word.
 */
export type StoredScale = (magnitude: number, largest: number) => number | undefined;

/** The smallest normal value of FP16, and the steps below it. */
const SMALLEST_NORMAL = 2 ** -14;
const SUBNORMAL_STEPS = 2 ** 24;

const one = new Float32Array(1);
const bits = new Uint16Array(1);

/** The rounding of scales for the type of the rest of the model. */
export const storedScales = (rest: RestId): StoredScale => {
  const round = rounding(rest);
  return (magnitude, largest) => {
    if (!Number.isFinite(magnitude)) return undefined;
    if (magnitude === 0) return 1;
    const scale = round(magnitude / largest);
    return Number.isFinite(scale) && scale > 0 ? scale : undefined;
  };
};

function rounding(rest: RestId): (scale: number) => number {
  const [toBits, toFloat] = holders.get(rest) ?? [];
  if (toBits === undefined || toFloat === undefined)
    return (scale) => Math.max(Math.fround(scale), 2 ** -126);
  return (scale) => {
    // Below the normal values a rounding down by a whole step would clip the largest values, and one to zero is refused.
    one[0] =
      scale < SMALLEST_NORMAL && toBits === float32ToFloat16
        ? Math.ceil(scale * SUBNORMAL_STEPS) / SUBNORMAL_STEPS
        : scale;
    toBits(one, bits);
    toFloat(bits, one);
    return one[0]!;
  };
}

const holders: ReadonlyMap<
  string,
  readonly [
    (source: Float32Array, target: Uint16Array) => unknown,
    (source: Uint16Array, target: Float32Array) => void,
  ]
> = new Map([
  [fp16.id, [float32ToFloat16, float16ToFloat32]],
  [bf16.id, [float32ToBfloat16, bfloat16ToFloat32]],
]);
