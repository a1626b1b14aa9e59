import { type Comparison, comparePairs } from '../../formats/tensor/compare/comparison.js';
import type { FloatPairs, FloatReader } from '../../formats/tensor/float-reader.js';
import { measure, type VerifiedOutput } from './result.js';

/** Polygraphy's statistics of an output's errors, and those of its logs, in the order to print them; what was not looked for is left out. */
export function errorStatistics(comparison: Comparison): VerifiedOutput['statistics'] {
  const { absolute, relative } = comparison;
  const named: readonly (readonly [string, number | null])[] = [
    ['max', absolute.max],
    ['mean', absolute.mean],
    ['deviation', absolute.deviation],
    ['median', absolute.median],
    ['p90', absolute.p90],
    ['p95', absolute.p95],
    ['p99', absolute.p99],
    ['max relative', relative.max],
    ['mean relative', relative.mean],
    ['deviation relative', relative.deviation],
    ['median relative', relative.median],
    ['p90 relative', relative.p90],
    ['p95 relative', relative.p95],
    ['p99 relative', relative.p99],
    ['outside tolerance', comparison.outside],
    ['cosine similarity', comparison.cosineSimilarity],
    ['SNR in dB', comparison.signalToNoise],
    ['PSNR in dB', comparison.peakSignalToNoise],
    ['L2', comparison.l2],
  ];
  return named.flatMap(([name, value]) => (value === null ? [] : [{ name, amount: measure(value) }]));
}

/** The values on either side: all finite ones of each, whatever the other side has there. */
export function sidesOf(
  { candidate, reference, finite, elements, tolerance }: Comparison,
  pairs: FloatPairs,
): NonNullable<VerifiedOutput['sides']> {
  // Compared with itself, a side has nothing beside its numbers that could leave them out.
  const alone = (side: FloatReader) =>
    comparePairs({ candidate: side, reference: side }, tolerance, 'none').reference;
  const isWhole = finite === elements;
  const sideOf = ({ min, max, mean, deviation }: Comparison['candidate']) => ({
    min: measure(min),
    max: measure(max),
    mean: measure(mean),
    deviation: measure(deviation),
  });
  return {
    candidate: sideOf(isWhole ? candidate : alone(pairs.candidate)),
    reference: sideOf(isWhole ? reference : alone(pairs.reference)),
  };
}
