import { float32ToE4m3 } from '../../tensor/low-precision.js';
import type { QuantizedFormat } from './format.js';

const LARGEST = 448;

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
  grid: { share: 1 / 8, step: 2 ** -9, lowest: -LARGEST, highest: LARGEST },
  // ModelOpt's bound.
  fewestChannels: 17,
  // TensorRT's release notes (10.13, limitations): no optimized FP8 kernels for groups, and slow FP16 or FP32 ones for kernels larger than 32.
  fewestInGroup: Number.POSITIVE_INFINITY,
  largestKernel: 32,
  operators: new Set(['Conv', 'Gemm', 'MatMul']),
  opset: 19,
  encode: float32ToE4m3,
};
