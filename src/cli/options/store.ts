import type { OptionsOf, OptionValues } from '../../base/options/option.js';
import { buildOptions } from '../../engines/builder/build.js';
import { storeOptions as stores } from '../../engines/store/open-stores.js';
import { TrtforgeError } from '../../errors.js';
import { flag, inConfig } from '../option.js';

const { store, layers, remote, maxBytes, requireSignature, trustKeys, signKey } = stores;
const { forceRebuild, timingCache } = buildOptions;

/** Where engines are kept, and whether the store is asked; for commands that build or load. */
export const storeOptions = {
  store: { ...store, group: 'Store', advanced: true as const },
  remote,
  noCache: flag({
    flags: '--no-cache',
    describe: 'neither ask the stores nor keep the engine there',
    group: 'Store',
  }),
  ...{ forceRebuild, timingCache, layers },
  maxBytes: inConfig(maxBytes),
  requireSignature: inConfig(requireSignature),
  trustKeys: inConfig(trustKeys),
  signKey: inConfig(signKey),
};

/** Values as the builder takes them: without a store for `--no-cache`. Throws TF_USAGE for options that contradict each other. */
export function withStore<V extends Partial<OptionValues<typeof storeOptions>>>(
  options: V,
): Omit<V, 'store'> & OptionsOf<typeof stores> {
  if (!options.noCache) return options;
  if (options.forceRebuild) {
    throw new TrtforgeError('TF_USAGE', '--no-cache and --force-rebuild contradict each other.', {
      remedy:
        '--no-cache alone always builds and keeps nothing; --force-rebuild replaces what the store has.',
    });
  }
  return { ...options, store: false };
}

/** Those that a search in the stores takes. */
export const searchOptions = {
  ...{ store, layers, remote },
  requireSignature: storeOptions.requireSignature,
  trustKeys: storeOptions.trustKeys,
};
