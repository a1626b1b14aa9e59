import {
  type DerivedProfile,
  type ProfileInputs,
  type ProfileSource,
  profileOfSamples,
} from '../../engines/calibration/sample-profile.js';
import type { CalibrationSample } from '../../engines/calibration/sample-source.js';
import { checkConvertible } from '../../engines/run/inputs.js';
import { TrtforgeError } from '../../errors.js';
import { isCompactReference } from '../../formats/reference/compact.js';
import { openReference } from '../../formats/reference/open.js';
import { readContract } from './contract/file.js';

/** The profiles that a contract states, in its order. Throws TF_CONTRACT_INVALID, TF_PROFILE_MISSING without one, TF_SESSION_INPUT for another dtype than the model's. */
export const contractProfiles: ProfileSource = {
  takes: (path) => /\.json$/i.test(path),
  read: async (path, { inputs }): Promise<readonly DerivedProfile[]> => {
    const { profiles, inputs: declared } = readContract(path);
    for (const { name, dtype } of declared) {
      const input = inputs.find((each) => each.name === name);
      if (input !== undefined && dtype !== null) checkConvertible(input, dtype, path);
    }
    if (profiles.length === 0)
      throw new TrtforgeError('TF_PROFILE_MISSING', `The contract ${path} has no profiles.`, {
        remedy:
          'Draft it with the sizes of its chunks, `trtforge stream draft MODEL --schedule 41,57`, or pass a recorded stream.',
      });
    return profiles.map(({ name, ranges }) => ({
      from: `${path}, profile "${name}"`,
      samples: null,
      profile: new Map(
        Object.entries(ranges).map(([input, dims]) => [
          input,
          {
            min: dims.map(({ min }) => min),
            opt: dims.map(({ opt }) => opt),
            max: dims.map(({ max }) => max),
            values: false,
          },
        ]),
      ),
    }));
  },
};

/** One profile that includes every chunk of a recorded stream. */
export const referenceProfiles: ProfileSource = {
  takes: (path) => /\.jsonl$/i.test(path) || isCompactReference(path),
  read: async (path, inputs, signal) => [
    await profileOfSamples(path, chunksOf(path, inputs, signal), inputs, signal),
  ],
};

async function* chunksOf(
  path: string,
  { inputs }: ProfileInputs,
  signal: AbortSignal,
): AsyncIterable<CalibrationSample> {
  using reference = openReference(path);
  const names = new Set(inputs.map(({ name }) => name));
  const select = (side: 'inputs' | 'outputs', name: string) => side === 'inputs' && names.has(name);
  for await (const { index, inputs: tensors } of reference.chunks({ select, signal }))
    yield { origin: `chunk ${index} of ${path}`, inputs: tensors };
}
