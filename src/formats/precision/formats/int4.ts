import { roundHalfToEven } from '../../tensor/rounding.js';
import type { QuantizedFormat } from './format.js';
import { packedPairs } from './packed-pairs.js';

/** Integers of 4 bits, for weights alone: TensorRT multiplies them in 16 bits, so they save memory and its bandwidth. */
export const int4: QuantizedFormat & { readonly id: 'int4' } = {
  id: 'int4',
  label: 'INT4',
  tolerance: {
    bound: 0.35,
    why: 'INT4 weights against FP32: 0.35, twice the error at the signal-to-noise ratio (11 to 15 dB) of blocks of 128 on encoders with random weights',
    ofWeights: 2,
    differing: 0.15,
  },
  builderFlag: 'int4',
  // TensorRT-RTX 1.7.1 for 7.5: "the model contains HW-specific datatypes: int4".
  computeCapability: 80,
  storedDtype: 'int4',
  largest: 7,
  activations: false,
  // Scales per channel build, but a kernel then writes the whole matrix in 16 bits in every run.
  blocks: [128, 64, 32, 16],
  convolutionScale: 'channel',
  scaleDtype: null,
  clips: [1, 0.95, 0.9, 0.85, 0.8, 0.75],
  grid: { share: 0, step: 1, lowest: -8, highest: 7 },
  fewestChannels: 16,
  fewestInGroup: 16,
  largestKernel: Number.POSITIVE_INFINITY,
  operators: new Set(['Gemm', 'MatMul']),
  opset: 21,
  encode: packedPairs(code),
};

function code(scaled: number): number {
  return Math.max(-8, Math.min(7, roundHalfToEven(scaled))) & 15;
}
