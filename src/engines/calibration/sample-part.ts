import type { CalibrationSample, SampleSource } from './sample-source.js';

/** Samples are divided into those that ranges are observed on and those that a result is judged by, so that no result is judged by what it was fitted to. */
export type SamplePart = 'calibration' | 'held-out';

/** One of so many is held out, the last of them: a stream of similar samples is in both parts. */
const EACH = 4;
/** More show little new, and each is run for every choice that is judged. */
export const MOST_HELD_OUT = 64;

/** In a sentence. */
export const PART_RULE = `every ${EACH}th sample is held out, at most ${MOST_HELD_OUT}; the others calibrate`;

/** The fewest samples of which one is held out. */
export const FEWEST_SAMPLES = EACH;

const isHeldOut = (index: number): boolean => index % EACH === EACH - 1 && index < EACH * MOST_HELD_OUT;

/** One part of the samples of some sources, in their order; `counted` gets how many samples both parts have. The digest of a part is another than that of all. */
export function partOf(
  sources: readonly SampleSource[],
  part: SamplePart,
  counted: (samples: number) => void = () => {},
): SampleSource {
  return {
    total: undefined,
    isFor: (inputs) => sources.every((source) => source.isFor(inputs)),
    digests: () => [part, ...sources.flatMap((source) => source.digests())],
    async *samples(inputs): AsyncIterable<CalibrationSample> {
      let index = 0;
      for (const source of sources) {
        const start = index;
        for await (const sample of source.samples(inputs)) {
          // Images that are not looked at need not be decoded.
          const isOver = part === 'held-out' && index >= EACH * MOST_HELD_OUT;
          if (isOver && source.total !== undefined) {
            index = start + source.total;
            break;
          }
          if (isHeldOut(index++) === (part === 'held-out')) yield sample;
        }
      }
      counted(index);
    },
  };
}
