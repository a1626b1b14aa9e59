import { canonicalJson, sha256, sha256OfFile } from '../../base/files/digest.js';
import { TrtforgeError } from '../../errors.js';
import { firstFrames, type LogMelOptions, logMel, nemoFrontEnd } from '../../formats/audio/log-mel.js';
import { readAudio } from '../../formats/audio/read-audio.js';
import { resample } from '../../formats/audio/resample.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { integerTensor, isIntegerDtype, tensorFrom } from '../../formats/tensor/values.js';
import type { Binding } from '../runtime/session.js';
import { type CalibrationSample, isFound, type SampleSource } from './sample-source.js';

/** Utterances as log-mel features, as NeMo computes them for Parakeet and FastConformer: whole, one after another. */
export function audioSamples(paths: readonly string[]): SampleSource {
  return {
    total: paths.length,
    digests: () =>
      paths.map((path) =>
        sha256(canonicalJson({ audio: sha256OfFile(path), frontEnd: { ...nemoFrontEnd } })),
      ),
    isFor: (inputs) => isFound(() => audioInputs(inputs)),
    async *samples(inputs): AsyncIterable<CalibrationSample> {
      const network = audioInputs(inputs);
      for (const path of paths) yield { origin: path, inputs: await featuresOf(path, network) };
    },
  };
}

interface AudioInputs {
  readonly features: string;
  readonly length: Binding | undefined;
  readonly frontEnd: LogMelOptions;
}

/** Finds the inputs of an encoder. Throws TF_SESSION_BINDING where there is not one float input [1, mels, frames], and at most one of integers, [1], for its length. */
function audioInputs(inputs: readonly Binding[]): AudioInputs {
  const lengths = inputs.filter(({ dtype, shape }) => isIntegerDtype(dtype) && shape?.length === 1);
  const [features, ...others] = inputs.filter((input) => !lengths.includes(input));
  const mels = features?.shape?.[1];
  if (
    features?.shape?.length !== 3 ||
    others.length > 0 ||
    lengths.length > 1 ||
    features.dtype !== 'float32'
  )
    throw new TrtforgeError('TF_SESSION_BINDING', 'The network cannot be run on audio.', {
      remedy:
        'Audio is for encoders with one float32 input [1, mels, frames] and one integer input [1], its length; record the inputs of others as npz.',
      details: { inputs },
    });
  const frontEnd = typeof mels === 'number' ? { ...nemoFrontEnd, mels } : nemoFrontEnd;
  return { features: features.name, length: lengths[0], frontEnd };
}

async function featuresOf(path: string, { features, length, frontEnd }: AudioInputs): Promise<NamedTensors> {
  const { samples } = resample(await readAudio(path), frontEnd.rate);
  const computed = logMel(samples, frontEnd);
  const { mels, valid } = computed;
  // Whole utterances end with the last valid frame.
  const kept = firstFrames(computed, valid);
  const tensors = new Map([[features, tensorFrom('float32', [1, mels, valid], kept)]]);
  if (length !== undefined && isIntegerDtype(length.dtype))
    tensors.set(length.name, integerTensor(length.dtype, [1], [valid]));
  return tensors;
}
