import { positionsOf, type SliceSums, sliceSums } from '../../formats/tensor/compare/slices.js';
import { type FloatReader, mappedFloats } from '../../formats/tensor/float-reader.js';
import type { PlantedError, VerifiedOutput } from './result.js';

/** What a sample's reference is planted with. */
export interface PlantedSample {
  readonly shape: readonly number[];
  readonly values: FloatReader;
  /** Of the reference alone, by slice. */
  readonly sums: SliceSums;
  /** What the error of each slice may be, as a root mean square. */
  readonly limits: Float64Array;
}

type AcceptedErrors = VerifiedOutput['planted'];

const FACTORS = { zeros: 0, 'turned sign': -1, 'non-zeros x 0.7': 0.7 } as const;

/**
 * The planted errors that limits accept in the place of a candidate: zeros, the mean over all samples, the outputs of another sample, the sign turned,
 * non-zeros times 0.7; first over the whole output (`accepts` judges one sample), then in one slice alone. No model runs for it.
 */
export function acceptedErrors(
  samples: readonly PlantedSample[],
  axis: number | null,
  accepts: (sample: number, planted: FloatReader) => boolean,
  factors: readonly (keyof typeof FACTORS)[] = ['zeros', 'turned sign', 'non-zeros x 0.7'],
): AcceptedErrors {
  const means = meansOf(samples);
  const others = samples.map((sample, at) => otherSample(samples, sample, at));
  const whole = (error: PlantedError, planted: (sample: number) => FloatReader | undefined) => {
    const isAccepted = samples.every((_, at) => {
      const candidate = planted(at);
      return candidate !== undefined && accepts(at, candidate);
    });
    return isAccepted ? [{ error, slice: null }] : [];
  };
  const found = [
    ...factors.flatMap((error) =>
      whole(error, (at) => mappedFloats(samples[at]!.values, (value) => value * FACTORS[error])),
    ),
    ...whole('mean', (at) => {
      const { shape, values } = samples[at]!;
      const place = positionsOf(shape, axis);
      return mappedFloats(values, (_, index) => means[place.at(index)]!);
    }),
    ...whole('another sample', (at) => others[at]?.values),
  ];
  if (found.length > 0 || axis === null) return found;
  return inSlices(samples, axis, means, others);
}

function inSlices(
  samples: readonly PlantedSample[],
  axis: number,
  means: Float64Array,
  others: readonly (PlantedSample | undefined)[],
): AcceptedErrors {
  const size = samples[0]!.limits.length;
  const between = samples.map(({ values, shape }, at) => {
    const other = others[at];
    return other && sliceSums({ candidate: other.values, reference: values }, shape, axis);
  });
  const squares: Readonly<Record<PlantedError, (sample: number, position: number) => number>> = {
    ...(Object.fromEntries(
      Object.entries(FACTORS).map(([error, factor]) => [
        error,
        (at: number, position: number) => samples[at]!.sums.referenceSquares[position]! * (1 - factor) ** 2,
      ]),
    ) as Record<keyof typeof FACTORS, (sample: number, position: number) => number>),
    mean: (at, position) => {
      const { sums } = samples[at]!;
      const mean = means[position]!;
      const { [position]: count = 0 } = sums.count;
      return sums.referenceSquares[position]! - 2 * mean * sums.reference[position]! + count * mean ** 2;
    },
    'another sample': (at, position) => between[at]?.errorSquares[position] ?? Number.POSITIVE_INFINITY,
  };
  return (Object.keys(squares) as PlantedError[]).flatMap((error) => {
    const positions = Array.from({ length: size }, (_, position) => position).filter((position) => {
      const isJudged = samples.some(({ sums }) => sums.referenceSquares[position]! > 0);
      return (
        isJudged &&
        samples.every(({ sums, limits }, at) => {
          const count = sums.count[position]!;
          return Math.sqrt(Math.max(0, squares[error](at, position)) / count) <= limits[position]!;
        })
      );
    });
    return positions.length === 0 ? [] : [{ error, slice: { axis, positions } }];
  });
}

function meansOf(samples: readonly PlantedSample[]): Float64Array {
  const size = samples[0]?.limits.length ?? 0;
  const total = (of: (sums: SliceSums) => Float64Array, at: number) =>
    samples.reduce((sum, { sums }) => sum + of(sums)[at]!, 0);
  return Float64Array.from(
    { length: size },
    (_, at) =>
      total(({ reference }) => reference, at) /
      Math.max(
        1,
        total(({ count }) => count, at),
      ),
  );
}

/** The next sample of the same shape. */
function otherSample(samples: readonly PlantedSample[], { shape }: PlantedSample, at: number) {
  const following = [...samples.slice(at + 1), ...samples.slice(0, at)];
  return following.find((other) => other.shape.join() === shape.join());
}
