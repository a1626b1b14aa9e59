import { positionsOf, type SliceSums, sliceSums } from '../../formats/tensor/compare/slices.js';
import { type FloatReader, mappedFloats } from '../../formats/tensor/float-reader.js';
import { type PlantedError, plantedErrors, type VerifiedOutput } from './result.js';

/** A sample whose reference is planted with errors. */
export interface PlantedSample {
  readonly shape: readonly number[];
  readonly values: FloatReader;
  /** Of the reference alone, by slice. */
  readonly sums: SliceSums;
  /** What the error of each slice may be, as a root mean square. */
  readonly limits: Float64Array;
}

/**
 * The planted errors that limits accept in the place of a candidate: zeros, the mean over all samples, the outputs of another sample, the sign turned,
 * non-zeros times 0.7; in the whole output (`accepts` judges one sample), else in the slices whose limit is not exceeded in any sample. No model runs for it.
 */
export function acceptedErrors(
  samples: readonly PlantedSample[],
  axis: number | null,
  accepts: (sample: number, planted: FloatReader) => boolean,
  errors: readonly PlantedError[] = plantedErrors,
): VerifiedOutput['planted'] {
  const plant = planter(samples, axis);
  const judged = Array.from(samples[0]?.limits.keys() ?? []).filter((position) =>
    samples.some(({ sums }) => sums.referenceSquares[position]! > 0),
  );
  return errors.flatMap((error): VerifiedOutput['planted'] => {
    const planted = samples.map((_, at) => plant[error](at));
    let positions = judged;
    for (const [at, candidate] of planted.entries()) {
      if (candidate === undefined) return [];
      const { shape, values, limits } = samples[at]!;
      const { count, errorSquares } = sliceSums({ candidate, reference: values }, shape, axis);
      positions = positions.filter((each) => Math.sqrt(errorSquares[each]! / count[each]!) <= limits[each]!);
      if (positions.length === 0 && judged.length > 0) return [];
    }
    if (positions.length < judged.length) return axis === null ? [] : [{ error, slice: { axis, positions } }];
    return planted.every((candidate, at) => accepts(at, candidate!)) ? [{ error, slice: null }] : [];
  });
}

/** What an error makes of a sample; undefined where there is no other sample of its shape. */
function planter(
  samples: readonly PlantedSample[],
  axis: number | null,
): Readonly<Record<PlantedError, (sample: number) => FloatReader | undefined>> {
  const total = (of: (sums: SliceSums) => Float64Array, at: number) =>
    samples.reduce((sum, { sums }) => sum + of(sums)[at]!, 0);
  const means = Array.from(
    samples[0]?.limits.keys() ?? [],
    (at) =>
      total(({ reference }) => reference, at) /
      Math.max(
        1,
        total(({ count }) => count, at),
      ),
  );
  const times = (factor: number) => (at: number) =>
    mappedFloats(samples[at]!.values, (value) => value * factor);
  return {
    zeros: times(0),
    mean: (at) => {
      const place = positionsOf(samples[at]!.shape, axis);
      return mappedFloats(samples[at]!.values, (_, index) => means[place.at(index)]!);
    },
    'another sample': (at) => {
      const following = [...samples.slice(at + 1), ...samples.slice(0, at)];
      return following.find(({ shape }) => shape.join() === samples[at]!.shape.join())?.values;
    },
    'turned sign': times(-1),
    'non-zeros x 0.7': times(0.7),
  };
}
