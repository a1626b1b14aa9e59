import { compareExactly, zerosOutside } from '../../formats/tensor/compare/comparison.js';
import { positionsOf, type SliceSums } from '../../formats/tensor/compare/slices.js';
import { isSameShape } from '../../formats/tensor/tensor.js';
import { type FloatReader, mappedFloats, type TensorReader } from '../../formats/tensor/tensor-reader.js';
import { sliceText } from './checks.js';
import type { JudgeRequest } from './judged.js';
import type { PlantedError, VerifiedOutput } from './result.js';
import { type ExactLimits, mostDiffering } from './tolerance.js';

/** A candidate that is this much nearer to the reference than a planted error is told apart from it, however wide the limits are. */
export const TELLS_APART = 4;

/** The error that the limits accept in the place of the candidate, its place, and the input that would decide. */
export function undecidedSentence({ reachedBy }: JudgeRequest, [first]: VerifiedOutput['planted']): string {
  const inputs = reachedBy?.() ?? [];
  const remedy =
    inputs.length === 0
      ? 'Compare runs in which it varies more.'
      : `Pass real samples of ${inputs.join(', ')} in which it varies: --inputs.`;
  return `these samples cannot decide: the limits would accept ${plantedText(first!)}. ${remedy}`;
}

/** `zeros at positions 4, 5 of axis 1`. */
export const plantedText = ({ error, slice }: VerifiedOutput['planted'][number]): string =>
  `${plantedTexts[error]}${slice === null ? '' : ` at ${sliceText(slice.axis, ...slice.positions)}`}`;

const plantedTexts: Readonly<Record<VerifiedOutput['planted'][number]['error'], string>> = {
  zeros: 'zeros',
  mean: 'the mean of the reference everywhere',
  'another sample': "another sample's outputs",
  'turned sign': 'the reference with its sign turned',
  'non-zeros x 0.7': 'the reference times 0.7',
};

/** The reference of a sample. */
interface PlantedSample {
  readonly shape: readonly number[];
  readonly reference: FloatReader;
}

/** Planted errors that are the reference times a factor. */
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

/** The planted errors that would pass, and that the candidate is not clearly nearer to the reference than: zeros, and what another sample has. */
export function acceptedBy(
  request: JudgeRequest,
  limits: ExactLimits,
  found: { readonly elements: number; readonly outside: number },
): VerifiedOutput['planted'] {
  const { name, reference } = request;
  const { elements } = found;
  const isAccepted = (planted: number) =>
    planted <= mostDiffering(limits, elements) && (planted === 0 || found.outside * TELLS_APART > planted);
  const outside = (candidate: (at: number) => TensorReader | undefined) =>
    reference.reduce((sum, tensor, at) => {
      const other = candidate(at);
      return (
        sum +
        (other === undefined ? elements : compareExactly(other, tensor, name, 0, limits.tolerance).outside)
      );
    }, 0);
  const zeros = reference.reduce((sum, tensor) => sum + zerosOutside(tensor, limits.tolerance, name), 0);
  const following = (at: number) => reference[(at + 1) % reference.length]!;
  const hasOther =
    reference.length > 1 && reference.every((tensor, at) => isSameShape(tensor, following(at)));
  const planted = [
    ...(isAccepted(zeros) ? (['zeros'] as const) : []),
    ...(hasOther && isAccepted(outside(following)) ? (['another sample'] as const) : []),
  ];
  return planted.map((error) => ({ error, slice: null }));
}
