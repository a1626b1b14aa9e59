import { canonicalJson, sha256 } from '../../base/files/digest.js';
import { TrtforgeError } from '../../errors.js';
import type { Placement } from '../../formats/images/preprocess.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import type { Binding } from '../runtime/session.js';

/** A picture or a recording that a sample is made of. */
export interface SampleFile {
  readonly path: string;
  readonly sha256: string;
  /** Of a picture: its size and that of the network's input in pixels, and where it lies there. */
  readonly picture?: {
    readonly width: number;
    readonly height: number;
    readonly placement: Placement;
    readonly canvas: { readonly width: number; readonly height: number };
  };
}

/** One sample of a model's inputs, and how messages call it: `in.npz`, `row 3 of x.npy`. */
export interface CalibrationSample {
  readonly origin: string;
  readonly inputs: NamedTensors;
  /** Of a batch how many samples it holds, each counted once; default one. */
  readonly items?: number;
  /** The file of each row of the batch; absent where tensors come from files as they are. */
  readonly files?: readonly SampleFile[];
}

/** Samples of one kind, from files. Nothing is read before it is asked for, and memory is that of a few samples. */
export interface SampleSource {
  /** Digests of the samples' content, one for each file or sample. Throws what reading throws. */
  digests(): readonly string[];
  /** In their order, for a model with these inputs; values are as the files have them. Throws what reading throws, TF_CALIBRATION_INVALID, TF_SESSION_INPUT. */
  samples(inputs: readonly Binding[]): AsyncIterable<CalibrationSample> | Iterable<CalibrationSample>;
  /** Whether samples are of a model with these inputs, by what can be seen without their values. */
  isFor(inputs: readonly Binding[]): boolean;
  /** Number of samples, where that is known without reading them. */
  readonly total: number | undefined;
}

/** Whether there is nothing in a sample that the model does not take. */
export const areInputs = (names: readonly string[], inputs: readonly Binding[]): boolean =>
  names.every((name) => inputs.some((input) => input.name === name));

/** Whether finding the inputs of a kind of samples throws TF_SESSION_BINDING. */
export function isFound(find: () => unknown): boolean {
  try {
    find();
    return true;
  } catch (error) {
    if (error instanceof TrtforgeError && error.code === 'TF_SESSION_BINDING') return false;
    throw error;
  }
}

/** Names the sample in an error about it. */
export function ofSample<T>(origin: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    const { code, message, remedy, details } = error;
    throw new TrtforgeError(code, `${origin} is not a sample of the model's inputs: ${message}`, {
      cause: error,
      remedy,
      details,
    });
  }
}

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
/** From this many on every fourth is enough; of fewer the second is held out too. */
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
