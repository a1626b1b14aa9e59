import type { Session } from '../../../src/engines/runtime/session.js';
import { dtypes } from '../../../src/formats/tensor/dtype.js';
import { numbersOf } from '../../../src/formats/tensor/tensor.js';
import type { Kind, Sample, SampleTensor } from '../../models/kind.js';

/** What a model does otherwise than the original on real samples. */
export interface Effect {
  /** The largest RMS of the error of an output or slice, in shares of its own; of integers the share that differs of all, or of a label that is lost. Infinite where NaN or infinity is new. */
  readonly error: number;
  /** Of the elements of outputs of 0 to 1 that are above 0.5 on either side: those that are on one side only, as a share. */
  readonly decisions: number;
}

/** Of a slice of floats. */
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
/** A label of fewer elements is no slice. */
const FEWEST_OF_LABEL = 100;

/** Runs both on the samples; where channels have scales of their own, each is a slice. */
export async function effectOf(
  original: Session,
  other: Session,
  samples: readonly Sample[],
  { channelsHaveScales = false }: Pick<Kind, 'channelsHaveScales'>,
): Promise<Effect> {
  const slices = new Map<string, Sums>();
  const labels = new Map<string, { all: number; lost: number }>();
  const count = (key: string, isLost: boolean) => {
    const { all, lost } = labels.get(key) ?? { all: 0, lost: 0 };
    labels.set(key, { all: all + 1, lost: lost + Number(isLost) });
  };
  for (const sample of samples) {
    const [expected, actual] = [await original.run(sample), await other.run(sample)];
    for (const [name, tensor] of expected) {
      const [a, b] = [numbersOf(tensor), numbersOf(actual.get(name)!)];
      for (let i = 0; i < a.length; i++) {
        const [theirs, ours] = [a[i]!, b[i]!];
        if (dtypes[tensor.dtype].kind !== 'float') {
          count(name, ours !== theirs);
          count(`${name}/${theirs}`, ours !== theirs);
          continue;
        }
        const key = channelsHaveScales ? `${name}/${channelOf(tensor, i)}` : name;
        const sums = slices.get(key) ?? { error: 0, reference: 0, least: 0, most: 0, kept: 0, changed: 0 };
        slices.set(key, sums);
        sums.error += Number.isNaN(ours) ? Number.POSITIVE_INFINITY : (ours - theirs) ** 2;
        sums.reference += theirs ** 2;
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
  const lost = [...labels.values()].filter(({ all }) => all >= FEWEST_OF_LABEL);
  return {
    error: Math.max(
      ...judged.map(({ error, reference }) => Math.sqrt(error / reference)),
      ...lost.map(({ all, lost }) => lost / all),
    ),
    decisions: decided < FEWEST_DECISIONS ? 0 : changed / decided,
  };
}

/** The position along the axis after the batch. */
function channelOf({ shape }: Pick<SampleTensor, 'shape'>, index: number): number {
  const inner = shape.slice(2).reduce((product, size) => product * size, 1);
  return Math.floor(index / inner) % (shape[1] ?? 1);
}
