import type { DerivedProfile, ProfileSource } from '../../engines/profiles/sample-profile.js';
import { profileRange } from '../../engines/profiles/sizes.js';
import { checkConvertible } from '../../engines/run/input-dtype.js';
import { TrtforgeError } from '../../errors.js';
import { readContract } from '../../formats/contract/file.js';

/** The profiles that a contract states, in its order. Throws TF_CONTRACT_INVALID, TF_PROFILE_MISSING without one, TF_SESSION_INPUT for another dtype than the model's. */
export const contractProfiles: ProfileSource = {
  takes: (path) => /\.json$/i.test(path),
  read: (path, { inputs }): readonly DerivedProfile[] => {
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
      profile: new Map(Object.entries(ranges).map(([input, dims]) => [input, profileRange(dims)])),
    }));
  },
};
