import type { QuantizedFormat } from './format.js';
import { roundHalfToEven } from './rounding.js';

const LARGEST = 448;
/** The code of 448; the next one is NaN. */
const LARGEST_CODE = 0x7e;
const NAN_CODE = 0x7f;
/** 2^-6, the smallest normal value, and the steps below it: 2^-9. */
const SMALLEST_NORMAL_BITS = (127 - 6) << 23;
const SUBNORMAL_STEPS = 2 ** 9;

/** E4M3 of the OCP's 8-bit formats: 4 bits of exponent, 3 of mantissa, no infinity. */
export const fp8: QuantizedFormat & { readonly id: 'fp8' } = {
  id: 'fp8',
  label: 'FP8',
  tolerance: {
    bound: 0.2,
    why: 'FP8 against FP32: 0.2, twice that of INT8: E4M3 keeps 4 significant bits whatever the range (20 to 24 dB on networks with random weights)',
    ofWeights: 2,
    differing: 0.1,
  },
  builderFlag: 'fp8',
  // TensorRT-RTX 1.7.1 for 8.6: "the model contains HW-specific datatypes: fp8_e4m3".
  computeCapability: 89,
  storedDtype: 'float8_e4m3fn',
  largest: LARGEST,
  activations: true,
  blocks: [],
  convolutionScale: 'tensor',
  scaleDtype: null,
  clips: [1],
  grid: { share: 1 / 8, step: 1 / SUBNORMAL_STEPS, lowest: -LARGEST, highest: LARGEST },
  // ModelOpt's bound.
  fewestChannels: 17,
  // TensorRT's release notes (10.13, limitations): no optimized FP8 kernels for groups, and slow FP16 or FP32 ones for kernels larger than 32.
  fewestInGroup: Number.POSITIVE_INFINITY,
  largestKernel: 32,
  operators: new Set(['Conv', 'Gemm', 'MatMul']),
  opset: 19,
  encode: encodeE4m3,
};

function encodeE4m3(values: Float32Array, target: Uint8Array): void {
  const bits = new Int32Array(values.buffer, values.byteOffset, values.length);
  for (let i = 0; i < values.length; i++) target[i] = codeOf(values[i]!, bits[i]!);
}

/** Rounds on the bits of FP32: 20 of the 23 bits of its mantissa go, and the exponents' biases differ by 120. */
function codeOf(value: number, bits: number): number {
  const sign = (bits >>> 24) & 0x80;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | NAN_CODE;
  if (magnitude < SMALLEST_NORMAL_BITS) return sign | roundHalfToEven(Math.abs(value) * SUBNORMAL_STEPS);
  return (
    sign | Math.min(LARGEST_CODE, ((magnitude + 0x7ffff + ((magnitude >>> 20) & 1)) >>> 20) - (120 << 3))
  );
}
