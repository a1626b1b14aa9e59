import { plural } from '../base/text/quantity.js';
import { resolveBuild } from '../engines/builder/prepare.js';
import { identityDigest } from '../engines/identity/identity.js';
import { targetText } from '../engines/identity/target.js';
import { requireStreaming } from '../engines/runtime/tensorrt/weight-budget.js';
import { assertGpuPresent } from '../tensorrt/addon/chosen-gpu.js';
import type { ForgePhase, Run } from './run-state.js';

/** Decides GPU, toolchain, target, profiles and identity before any minute is spent on a request that cannot be met. */
export const resolvePhase = ({ options, environment, visible }: Run): ForgePhase => ({
  name: 'resolve',
  decides: true,
  skip: () => (options.skip?.includes('build') ? 'no engine was asked for' : null),
  run: async (_, { emit, signal }) => {
    assertGpuPresent(visible, options.device, 'Building and running an engine needs an NVIDIA GPU');
    const prepared = await resolveBuild(options, { emit, signal, environment });
    const { recipe, target } = prepared.identity;
    requireStreaming(options.model, recipe.flags, options.weightBudget);
    const identity = identityDigest(prepared.identity).slice(0, 12);
    return {
      found: { prepared },
      detail: `${targetText(target)} with ${target.product} ${target.version}, ${recipe.profiles.length === 0 ? 'static shapes' : plural(recipe.profiles.length, 'profile')}, identity ${identity}`,
    };
  },
});
