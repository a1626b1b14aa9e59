import { positionsOf, type SliceSums } from '../../formats/tensor/compare/slices.js';
import { type FloatReader, mappedFloats } from '../../formats/tensor/float-reader.js';
import type { PlantedError } from './result.js';

/** The reference of a sample. */
interface PlantedSample {
  readonly shape: readonly number[];
  readonly reference: FloatReader;
}

const factors: Readonly<Partial<Record<PlantedError, number>>> = {
  zeros: 0,
  'turned sign': -1,
  'non-zeros x 0.7': 0.7,
};

/**
 * The wrong outputs that an error makes of each sample's reference: its mean over all samples (by position of the axis), the outputs of the next
 * sample of the same shape, or the reference times a factor. Undefined where no other sample has the shape. No model runs for it.
 */
export function plantedIn(
  samples: readonly PlantedSample[],
  axis: number | null,
  sums: SliceSums,
  error: PlantedError,
): readonly FloatReader[] | undefined {
  if (error === 'another sample') {
    const others = samples.flatMap(({ shape }, at) => {
      const following = [...samples.slice(at + 1), ...samples.slice(0, at)];
      return following.find((other) => other.shape.join() === shape.join())?.reference ?? [];
    });
    return others.length === samples.length ? others : undefined;
  }
  const means = sums.reference.map((sum, at) => sum / Math.max(1, sums.count[at]!));
  return samples.map(({ shape, reference }) => {
    const place = positionsOf(shape, axis);
    const factor = factors[error];
    return mappedFloats(reference, (value, index) =>
      factor === undefined ? means[place.at(index)]! : value * factor,
    );
  });
}
