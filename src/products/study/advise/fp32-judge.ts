import { join } from 'node:path';
import { TrtforgeError } from '../../../errors.js';
import { type NamedTensors, numbersOf } from '../../../formats/tensor/tensor.js';
import { knownSamples } from '../../../quality/verify/sample-plan.js';
import { SampleRuns } from '../../../quality/verify/sample-runs.js';
import { assertRepeats } from '../../../quality/verify/stability.js';
import { type Accuracy, AccuracySums } from '../accuracy.js';
import { writeMarked } from '../marked-model.js';
import { runSamples, type StudyPlace } from '../run-together.js';
import type { JudgedTensors } from './judged-tensors.js';

interface JudgePlace extends StudyPlace {
  /** A folder for copies. */
  readonly work: string;
}

/** Judges models by how close they are to FP32 on samples. */
export interface Fp32Judge {
  readonly samples: readonly NamedTensors[];
  judge(path: string): Promise<Accuracy>;
}

/**
 * Runs the FP32 model on the samples. Throws TF_CALIBRATION_INVALID where it computes NaN, TF_BISECT_REFERENCE where a second run of the first sample differs,
 * what opening and running it throw.
 */
export async function openFp32Judge(
  model: string,
  { names, areInside }: JudgedTensors,
  samples: readonly NamedTensors[],
  place: JudgePlace,
): Promise<Fp32Judge> {
  const { context, work, threads } = place;
  /** The model with the judged tensors as outputs: itself, or a copy that the next one replaces. */
  const marked = async (path: string): Promise<string> => {
    if (!areInside) return path;
    const copy = join(work, 'marked.onnx');
    await writeMarked(path, copy, names, 'dropped', context.signal);
    return copy;
  };
  const reference = await marked(model);
  const request = { reference, candidate: reference, threads };
  const runs = new SampleRuns(request, context, knownSamples(samples, 'held-out sample'));
  const run = await runs.reference(() => {});
  const expected = { ...run, bindings: run.bindings.filter(({ name }) => names.includes(name)) };
  assertNumbers(model, names, expected.outputs);
  await assertRepeats(request, 'fp32', runs, expected, 1, model);
  return {
    samples,
    judge: async (path) => {
      const sums = new AccuracySums(names);
      await runSamples([await marked(path)], samples, place, ([outputs], sample) =>
        sums.add(expected.outputs[sample]!, outputs!),
      );
      return sums.result();
    },
  };
}

function assertNumbers(model: string, names: readonly string[], expected: readonly NamedTensors[]): void {
  for (const [sample, outputs] of expected.entries())
    for (const name of names)
      if (numbersOf(outputs.get(name)!).some(Number.isNaN))
        throw new TrtforgeError(
          'TF_CALIBRATION_INVALID',
          `${model} in FP32 computes NaN: its ${name} has NaN in held-out sample ${sample + 1} of ${expected.length}.`,
          {
            remedy: 'Remove the sample, or correct the model: a candidate cannot be compared with NaN.',
            details: { tensor: name, sample },
          },
        );
}
