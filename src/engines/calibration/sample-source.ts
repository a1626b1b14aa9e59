import { TrtforgeError } from '../../errors.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import type { Binding } from '../runtime/session.js';

/** One sample of a model's inputs, and how messages call it: `in.npz`, `row 3 of x.npy`. */
export interface CalibrationSample {
  readonly origin: string;
  readonly inputs: NamedTensors;
  /** Of a batch how many samples it holds, each counted once; default one. */
  readonly items?: number;
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
