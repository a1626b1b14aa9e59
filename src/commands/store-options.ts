import { flag, type OptionValues, text } from '../cli/option.js';
import { TrtforgeError } from '../errors.js';
import type { BuildOrLoadWishes } from '../store/build-or-load.js';

/** Where engines are kept, and whether the store is asked; for commands that build or load. */
export const storeOptions = {
  cacheDir: text({
    flags: '--cache-dir <folder>',
    describe: 'the engine store (default: ~/.cache/trtforge/engines)',
    env: 'TENSORRT_CACHE_DIR',
  }),
  remote: text({
    flags: '--remote <address>',
    describe:
      'a store shared by machines: s3://bucket/prefix or http://host:9000/bucket (default: ARTIFACTS_BUCKET); none for none',
  }),
  noCache: flag({ flags: '--no-cache', describe: 'neither ask the stores nor keep the engine there' }),
  forceRebuild: flag({
    flags: '--force-rebuild',
    describe: 'build even though the store has the engine, and replace it there',
  }),
  timingCache: text({
    flags: '--timing-cache <file>',
    describe: 'a file of measured kernel times to use and extend; none for none',
    default: 'auto',
    aliases: ['--timingCacheFile'],
  }),
};

type StoreOptionValues = OptionValues<typeof storeOptions>;

/** The options as the store takes them. Throws TF_USAGE for options that contradict each other. */
export function storeWishes(
  options: StoreOptionValues,
): Pick<BuildOrLoadWishes, 'store' | 'remote' | 'forceRebuild' | 'timingCache'> {
  if (options.noCache && options.forceRebuild) {
    throw new TrtforgeError('TF_USAGE', '--no-cache and --force-rebuild are given together.', {
      remedy:
        '--no-cache alone always builds and keeps nothing; --force-rebuild replaces what the store has.',
    });
  }
  return {
    store: options.noCache ? false : options.cacheDir,
    remote: options.remote === 'none' ? false : options.remote,
    forceRebuild: options.forceRebuild,
    timingCache: options.timingCache === 'none' ? null : options.timingCache,
  };
}
