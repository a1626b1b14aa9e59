import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import { extremesOf } from '../../formats/precision/calibrate/histogram.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { float32Values } from '../../formats/tensor/values.js';
import { inDtype } from '../run/inputs.js';
import type { Binding } from '../runtime/session.js';
import { checkInputs, rejectUnknown } from '../runtime/session-inputs.js';
import { type CalibrationSample, ofSample, type SampleSource } from './sample-source.js';

const floats: ReadonlySet<string> = new Set(['float16', 'bfloat16', 'float32', 'float64']);

/**
 * The samples in the types of the inputs, each checked: names, types, shapes, NaN and infinities, and at the end that no float input was 0 in all of
 * them. `began` gets how messages call each, before it. Throws TF_SESSION_INPUT and TF_CALIBRATION_INVALID with the input and the file, what reading throws, TF_CANCELLED.
 */
export async function* preparedSamples(
  sources: readonly SampleSource[],
  inputs: readonly Binding[],
  signal: AbortSignal | undefined,
  began: (origin: string) => void = () => {},
): AsyncIterable<NamedTensors> {
  const largest = new Map<string, number>();
  for (const source of sources)
    for await (const sample of source.samples(inputs)) {
      throwIfCancelled(signal, 'reading the calibration data');
      const { inputs: tensors } = typedSample(sample, inputs);
      ofSample(sample.origin, () => checkInputs(inputs, tensors));
      for (const [name, tensor] of tensors) note(largest, name, tensor, sample.origin);
      began(sample.origin);
      yield tensors;
    }
  for (const [name, magnitude] of largest)
    if (magnitude === 0)
      throw new TrtforgeError(
        'TF_CALIBRATION_INVALID',
        `The input ${name} is 0 in every calibration sample.`,
        {
          remedy: 'Pass real inputs: from zeros no range of an activation can be learned.',
        },
      );
}

/** A sample in the types of the inputs; it may lack some. Throws TF_SESSION_INPUT for names, types and shapes that are not those of the inputs, with the sample. */
export const typedSample = (
  { origin, inputs: tensors }: CalibrationSample,
  inputs: readonly Binding[],
): CalibrationSample =>
  ofSample(origin, () => {
    rejectUnknown(inputs, tensors.keys());
    const own = inputs.filter(({ name }) => tensors.has(name));
    const typed = new Map(
      own.map((input) => [input.name, inDtype(input, tensors.get(input.name)!, input.name)]),
    );
    checkInputs(own, typed);
    return { origin, inputs: typed };
  });

function note(largest: Map<string, number>, name: string, tensor: Tensor, origin: string): void {
  if (!floats.has(tensor.dtype)) return;
  const { min, max } = extremesOf(float32Values(tensor));
  const magnitude = Math.max(-min, max);
  if (!Number.isFinite(magnitude))
    throw new TrtforgeError(
      'TF_CALIBRATION_INVALID',
      `The input ${name} has ${Number.isNaN(magnitude) ? 'NaN' : 'an infinity'} in ${origin}.`,
      { remedy: 'Remove the sample, or repair what wrote it.' },
    );
  largest.set(name, Math.max(largest.get(name) ?? 0, magnitude));
}
