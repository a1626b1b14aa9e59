import { identityDigest } from '../engine/identity.js';
import { prepareBuild } from '../engine/prepare.js';
import { targetText } from '../engine/target.js';
import { plural } from '../report/quantity.js';
import { requireStreaming } from '../runtime/weight-budget.js';
import { refuseAbsentGpu } from '../toolchain/chosen-gpu.js';
import type { ForgePhase, Run } from './forged.js';

/** Decides GPU, toolchain, target, profiles and identity before any minute is spent on a request that cannot be met. */
export const resolvePhase = ({ options, environment, visible }: Run): ForgePhase => ({
  name: 'resolve',
  decides: true,
  skip: () => (options.skip?.includes('build') ? 'no engine was asked for' : null),
  run: async (_, { emit, signal }) => {
    refuseAbsentGpu(visible, options.device, 'Building and running an engine needs an NVIDIA GPU');
    const prepared = await prepareBuild(options, { emit, signal, environment });
    const { recipe, target } = prepared.identity;
    requireStreaming(options.model, recipe.flags, options.weightBudget);
    const identity = identityDigest(prepared.identity).slice(0, 12);
    return {
      found: { prepared },
      detail: `${targetText(target)} with ${target.product} ${target.version}, ${recipe.profiles.length === 0 ? 'static shapes' : plural(recipe.profiles.length, 'profile')}, identity ${identity}`,
    };
  },
});
