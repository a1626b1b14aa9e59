import type { WeightFacts } from '../../onnx/weight.js';
import { float32ToFloat16 } from '../../tensor/low-precision.js';
import { sixteenBitStream } from '../weight-conversion.js';
import type { FloatFormat } from './format.js';

/** IEEE half precision: 11 significant bits, and a range that ends at 65504 and 6.1e-5 (subnormal to 6.0e-8). */
export const fp16: FloatFormat & { readonly id: 'fp16' } = {
  id: 'fp16',
  label: 'FP16',
  dtype: 'float16',
  maxFinite: 65504,
  // A factor of 64 between what calibration saw and the largest value, for data never seen.
  dataMax: 1024,
  narrowRange: true,
  resolution: 2 ** -12,
  // Six masks may be added up; scores of up to 4 disappear in it, as they do in -1e9.
  maskLimit: 1e4,
  tolerance: {
    bound: 5e-3,
    why: "FP16 against FP32: 5e-3, NVIDIA's own bound for strongly typed models against their original",
    differing: 0.01,
  },
  builderFlag: 'fp16',
  computeCapability: null,
  // Tried on TensorRT-RTX 1.7.1 for compute capability 8.9.
  notBuilt: new Set(['MeanVarianceNormalization', 'Celu']),
  weightLoss: mostlySubnormal,
  convertWeight: (source, limit) =>
    sixteenBitStream(
      source,
      {
        dtype: 'float16',
        largest: 0x7bff,
        infinity: 0x7c00,
        round: (values, target) => {
          const { toInfinity, toZero, toSubnormal } = float32ToFloat16(values, target);
          return { hasInfinity: toInfinity > 0, toZero, subnormal: toSubnormal };
        },
      },
      limit,
    ),
};

function mostlySubnormal(name: string, facts: WeightFacts): string | undefined {
  const nonZero = facts.elements - facts.zero - facts.notFinite;
  if (facts.subnormal * 2 <= nonZero) return undefined;
  return facts.elements === 1
    ? `"${name}" is ${Number(facts.maxAbs.toPrecision(5))}, which FP16 represents with fewer than 11 bits or not at all`
    : `${facts.subnormal} of ${nonZero} values of weight "${name}" are below 6.1e-5, where FP16 loses digits`;
}
