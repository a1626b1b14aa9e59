import type { QuantizedFormat } from './format.js';
import { packedPairs } from './packed-pairs.js';

/** E2M1 in blocks of 16, whose scales are E4M3 with a scale of the tensor; for weights alone. */
export const nvfp4: QuantizedFormat & { readonly id: 'nvfp4' } = {
  id: 'nvfp4',
  label: 'NVFP4',
  tolerance: {
    bound: 0.35,
    why: 'NVFP4 weights against FP32: 0.35, as INT4: both have 16 codes',
    ofWeights: 2,
    differing: 0.15,
  },
  builderFlag: 'fp4',
  // TensorRT-RTX 1.7.1 for 8.9: "the model contains HW-specific datatypes: fp4_e2m1".
  computeCapability: 100,
  storedDtype: 'float4_e2m1fn',
  largest: 6,
  activations: false,
  blocks: [16],
  convolutionScale: 'channel',
  scaleDtype: 'float8_e4m3fn',
  // The codes are dense up to 4: a block whose values lie there is nearer to them with a larger scale.
  clips: [1, 1.5],
  grid: { share: 1 / 2, step: 1 / 2, lowest: -6, highest: 6 },
  fewestChannels: 16,
  fewestInGroup: 16,
  largestKernel: Number.POSITIVE_INFINITY,
  operators: new Set(['Gemm', 'MatMul']),
  opset: 23,
  encode: packedPairs(code),
};

function code(scaled: number): number {
  return magnitudeCode(Math.abs(scaled)) | (scaled < 0 ? 8 : 0);
}

/** The magnitudes by code are 0, 0.5, 1, 1.5, 2, 3, 4, 6; of two as near, the even code. */
function magnitudeCode(magnitude: number): number {
  if (magnitude <= 1.25) return magnitude <= 0.25 ? 0 : magnitude < 0.75 ? 1 : 2;
  if (magnitude <= 2.5) return magnitude < 1.75 ? 3 : 4;
  return magnitude < 3.5 ? 5 : magnitude <= 5 ? 6 : 7;
}
