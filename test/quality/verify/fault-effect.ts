import type { Session } from '../../../src/engines/runtime/session.js';
import type { Tensor } from '../../../src/formats/tensor/tensor.js';
import { numbersOf } from '../../../src/formats/tensor/values.js';
import type { Kind, Sample } from '../../models/kind.js';

interface Sums {
  error: number;
  reference: number;
}

/**
 * What a fault does to the outputs of real samples: the largest RMS of the error of an output, in shares of the output's own; where channels have scales of their
 * own, of a channel.
 */
export async function effectOf(
  original: Session,
  faulty: Session,
  samples: readonly Sample[],
  { channelsHaveScales = false }: Pick<Kind, 'channelsHaveScales'>,
): Promise<number> {
  const slices = new Map<string, Sums>();
  for (const sample of samples) {
    const [expected, actual] = [await original.run(sample), await faulty.run(sample)];
    for (const [name, tensor] of expected) {
      const [a, b] = [numbersOf(tensor), numbersOf(actual.get(name)!)];
      for (let i = 0; i < a.length; i++) {
        const key = channelsHaveScales ? `${name}/${channelOf(tensor, i)}` : name;
        const sums = slices.get(key) ?? { error: 0, reference: 0 };
        slices.set(key, sums);
        sums.error += (a[i]! - b[i]!) ** 2;
        sums.reference += a[i]! ** 2;
      }
    }
  }
  return Math.max(...[...slices.values()].map(({ error, reference }) => Math.sqrt(error / reference)));
}

/** The position along the axis after the batch. */
function channelOf({ shape }: Tensor, index: number): number {
  const inner = shape.slice(2).reduce((product, size) => product * size, 1);
  return Math.floor(index / inner) % (shape[1] ?? 1);
}
