import { canonicalJson, sha256 } from '../../base/files/digest.js';
import type { CalibrationSample, SampleSource } from './sample-source.js';

/** Samples are divided into those that ranges are observed on and those that a result is judged by, so that no result is judged by what it was fitted to. */
export type SamplePart = 'calibration' | 'held-out';

/** One of so many is held out, the last of them: a stream of similar samples is in both parts. */
const EACH = 4;
const FEWEST_HELD_OUT = 2;
/** More show little new, and each is run for every choice that is judged. */
export const MOST_HELD_OUT = 32;
/** Of fewer samples none is held out: both parts have all. */
export const FEWEST_SAMPLES = 4;

/** In a sentence. */
export const PART_RULE = `every ${EACH}th sample is held out, at least ${FEWEST_HELD_OUT}, at most ${MOST_HELD_OUT}; the others calibrate`;

const END = EACH * MOST_HELD_OUT;
const isHeldOut = (index: number): boolean => index % EACH === EACH - 1 && index < END;
/** From so many on every fourth is enough; of fewer the second is held out too. */
const MANY = EACH * FEWEST_HELD_OUT;

/**
 * One part of the samples of some sources, in their order; `counted` gets how many samples both parts have. The digest of a part is another than that of all,
 * and of another rule.
 */
export function partOf(
  sources: readonly SampleSource[],
  part: SamplePart,
  counted: (samples: number) => void = () => {},
): SampleSource {
  return {
    total: undefined,
    isFor: (inputs) => sources.every((source) => source.isFor(inputs)),
    // One digest: the order of the samples decides which are in the part.
    digests: () => [
      sha256(canonicalJson([part, PART_RULE, ...sources.flatMap((source) => source.digests())])),
    ],
    async *samples(inputs): AsyncIterable<CalibrationSample> {
      let index = 0;
      const first: CalibrationSample[] = [];
      const isIn = (at: number) => isHeldOut(at) === (part === 'held-out');
      for (const source of sources) {
        const start = index;
        for await (const sample of source.samples(inputs)) {
          // Images that are not looked at need not be decoded.
          const isOver = part === 'held-out' && index >= END;
          if (isOver && source.total !== undefined) {
            index = start + source.total;
            break;
          }
          // The number of samples decides the part of the first ones.
          if (index < MANY) first.push(sample);
          if (++index === MANY) yield* first.filter((_, at) => isIn(at));
          else if (index > MANY && isIn(index - 1)) yield sample;
        }
      }
      if (index < FEWEST_SAMPLES) yield* first;
      else if (index < MANY)
        yield* first.filter((_, at) => (at % 2 === 1 && at < MANY / 2) === (part === 'held-out'));
      counted(index);
    },
  };
}
