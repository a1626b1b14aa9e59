import { float32ToBfloat16 } from '../../tensor/low-precision.js';
import { sixteenBitStream } from '../weight-conversion.js';
import type { FloatFormat } from './format.js';

/** The upper half of FP32: its range, and 8 significant bits. */
export const bf16: FloatFormat & { readonly id: 'bf16' } = {
  id: 'bf16',
  label: 'BF16',
  dtype: 'bfloat16',
  maxFinite: 3.3895313892515355e38,
  dataMax: 3.3895313892515355e38,
  narrowRange: false,
  resolution: 2 ** -9,
  maskLimit: 1e38,
  tolerance: {
    bound: 4e-2,
    why: 'BF16 against FP32: 4e-2, eight times the bound for FP16, as BF16 keeps 8 significant bits where FP16 keeps 11',
    differing: 0.01,
  },
  builderFlag: 'bf16',
  // TensorRT-RTX 1.7.1 for 7.5: "the model contains HW-specific datatypes: b16".
  computeCapability: 80,
  // Tried on TensorRT-RTX 1.7.1 for compute capability 8.9; Resize on TensorRT 10.6 for 9.0 ("No supported formats").
  notBuilt: new Set(
    'ConvTranspose GRU HardSwish Mish Shrink LpPool GlobalLpPool LpNormalization MeanVarianceNormalization Celu Resize'.split(
      ' ',
    ),
  ),
  weightLoss: null,
  convertWeight: (source, limit) =>
    sixteenBitStream(
      source,
      {
        dtype: 'bfloat16',
        largest: 0x7f7f,
        infinity: 0x7f80,
        round: (values, target) => {
          float32ToBfloat16(values, target);
          return { hasInfinity: true, toZero: 0, subnormal: 0 };
        },
      },
      limit,
    ),
};
