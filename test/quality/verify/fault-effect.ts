import type { Session } from '../../../src/engines/runtime/session.js';
import { dtypes } from '../../../src/formats/tensor/dtype.js';
import { numbersOf } from '../../../src/formats/tensor/values.js';
import type { Kind, Sample, SampleTensor } from '../../models/kind.js';

/** What a model does otherwise than the original on real samples. */
export interface Effect {
  /** The largest RMS of the error of an output or slice, in shares of its own; of integers the share that differs. Infinite where NaN or infinity is new. */
  readonly error: number;
  /** Of the elements of an output of 0 to 1 that are above 0.5 in the original: those that are lost or new, as a share. */
  readonly decisions: number;
}

interface Sums {
  error: number;
  reference: number;
  least: number;
  most: number;
  kept: number;
  changed: number;
}

/** Fewer decide nothing. */
const FEWEST_DECISIONS = 20;
/** A class that never has a score above this is in none of the samples. */
const LEAST_SCORE = 0.1;

/** Runs both on the samples; where channels have scales of their own, each is a slice. */
export async function effectOf(
  original: Session,
  other: Session,
  samples: readonly Sample[],
  { channelsHaveScales = false }: Pick<Kind, 'channelsHaveScales'>,
): Promise<Effect> {
  const slices = new Map<string, Sums>();
  for (const sample of samples) {
    const [expected, actual] = [await original.run(sample), await other.run(sample)];
    for (const [name, tensor] of expected) {
      const [a, b] = [numbersOf(tensor), numbersOf(actual.get(name)!)];
      const isExact = dtypes[tensor.dtype].kind !== 'float';
      for (let i = 0; i < a.length; i++) {
        const key = channelsHaveScales ? `${name}/${channelOf(tensor, i)}` : name;
        const sums = slices.get(key) ?? { error: 0, reference: 0, least: 0, most: 0, kept: 0, changed: 0 };
        slices.set(key, sums);
        const [ours, theirs] = [b[i]!, a[i]!];
        const distance = isExact ? Number(ours !== theirs) : ours - theirs;
        sums.error += Number.isNaN(distance) ? Number.POSITIVE_INFINITY : distance ** 2;
        sums.reference += isExact ? 1 : theirs ** 2;
        sums.least = Math.min(sums.least, theirs);
        sums.most = Math.max(sums.most, theirs);
        if (theirs > 0.5 && ours > 0.5) sums.kept++;
        else if (theirs > 0.5 || ours > 0.5) sums.changed++;
      }
    }
  }
  const judged = [...slices.values()].filter(({ most }) => !channelsHaveScales || most > LEAST_SCORE);
  const shares = judged.filter(({ least, most }) => least === 0 && most <= 1);
  const changed = shares.reduce((sum, each) => sum + each.changed, 0);
  const decided = shares.reduce((sum, each) => sum + each.kept + each.changed, 0);
  return {
    error: Math.max(...judged.map(({ error, reference }) => Math.sqrt(error / reference))),
    decisions: decided < FEWEST_DECISIONS ? 0 : changed / decided,
  };
}

/** The position along the axis after the batch. */
function channelOf({ shape }: Pick<SampleTensor, 'shape'>, index: number): number {
  const inner = shape.slice(2).reduce((product, size) => product * size, 1);
  return Math.floor(index / inner) % (shape[1] ?? 1);
}
