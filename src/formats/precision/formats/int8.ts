import { roundHalfToEven } from '../../tensor/rounding.js';
import type { QuantizedFormat } from './format.js';

/** Integers of 8 bits, symmetric: TensorRT takes no zero point but 0. */
export const int8: QuantizedFormat & { readonly id: 'int8' } = {
  id: 'int8',
  label: 'INT8',
  tolerance: {
    bound: 0.1,
    why: 'INT8 against FP32: 0.1, twice the error at the signal-to-noise ratio (25 to 28 dB) that INT8 reaches on convolutional networks and encoders',
    ofWeights: 10,
    differing: 0.05,
  },
  builderFlag: 'int8',
  // Tried on TensorRT-RTX 1.7.1: for 7.5 convolutions build and run in FP32, without a word.
  computeCapability: 80,
  storedDtype: 'int8',
  largest: 127,
  activations: true,
  blocks: [],
  convolutionScale: 'channel',
  scaleDtype: null,
  clips: [1],
  grid: { share: 0, step: 1, lowest: -127, highest: 127 },
  fewestChannels: 16,
  fewestInGroup: 16,
  largestKernel: Number.POSITIVE_INFINITY,
  operators: new Set(['Conv', 'Gemm', 'MatMul', 'Add', 'AveragePool', 'GlobalAveragePool']),
  opset: 13,
  encode: (scaled, target) => {
    const codes = new Int8Array(target.buffer, target.byteOffset, target.length);
    for (let i = 0; i < scaled.length; i++) {
      codes[i] = Math.max(-127, Math.min(127, roundHalfToEven(scaled[i]!)));
    }
  },
};
