import type { BuildOptions } from '../../engines/builder/build.js';
import type { StoreOptions } from '../../engines/store/open-stores.js';
import { TrtforgeError } from '../../errors.js';
import { flag, inConfig, type OptionValues, option, text } from '../option.js';
import { parseSize } from '../values.js';

export const cacheDir = text({
  flags: '--cache-dir <folder>',
  trust: true,
  describe: 'the engine store (default: ~/.cache/trtforge/engines)',
  env: 'TENSORRT_CACHE_DIR',
});

export const maxSize = option({
  flags: '--max-size <size>',
  describe:
    'the store holds at most so many bytes of plans: 50G; engines used least recently go (default: no limit)',
  parse: parseSize,
  env: 'TENSORRT_CACHE_MAX_SIZE',
});

/** Whose engines are trusted. The library reads the environment variables itself, so that code and command line agree. */
export const trustOptions = {
  requireSignature: flag({
    flags: '--require-signature',
    trust: true,
    describe: 'load engines only that a trusted key signed',
    env: 'TRTFORGE_REQUIRE_SIGNATURE',
  }),
  trustKey: text({
    flags: '--trust-key <file>',
    trust: true,
    describe:
      'a public key whose signatures are trusted; repeat it for more (default: TRTFORGE_TRUSTED_KEYS)',
    repeat: true,
  }),
};

export const signKey = text({
  flags: '--sign-key <file>',
  trust: true,
  describe: 'the private key that signs engines built here (default: TRTFORGE_SIGNING_KEY)',
});

/** Where engines are kept, and whether the store is asked; for commands that build or load. */
export const storeOptions = {
  cacheDir: { ...cacheDir, group: 'Store', advanced: true } as typeof cacheDir,
  remote: text({
    flags: '--remote <address>',
    trust: true,
    describe:
      'a store shared by machines: s3://bucket/prefix or http://host:9000/bucket (default: ARTIFACTS_BUCKET); none for none',
    group: 'Store',
    advanced: true,
  }),
  noCache: flag({
    flags: '--no-cache',
    describe: 'neither ask the stores nor keep the engine there',
    group: 'Store',
  }),
  forceRebuild: flag({
    flags: '--force-rebuild',
    describe: 'build although the store has the engine, and replace it there',
    group: 'Store',
  }),
  timingCache: text({
    flags: '--timing-cache <file>',
    describe: 'a file of measured kernel times to use and extend; none for none',
    default: 'auto',
    // What a cache begins with is TensorRT's own affair and may look like a plan.
    writes: ['binary data', 'a TensorRT plan'],
    group: 'Store',
    advanced: true,
  }),
  cacheFrom: inConfig(
    text({
      flags: '--cache-from <folder>',
      trust: true,
      describe: 'another store that is searched after it and never written (default: TRTFORGE_CACHE_FROM)',
      repeat: true,
    }),
  ),
  maxSize: inConfig(maxSize),
  requireSignature: inConfig(trustOptions.requireSignature),
  trustKey: inConfig(trustOptions.trustKey),
  signKey: inConfig(signKey),
};

/** The remote store as the library takes it. */
export const remoteOf = ({ remote }: Pick<StoreOptionValues, 'remote'>): string | false | undefined =>
  remote === 'none' ? false : remote;

type StoreOptionValues = OptionValues<typeof storeOptions>;

/** The options as the store takes them. Throws TF_USAGE for options that contradict each other. */
export function storeOptionsOf(
  options: StoreOptionValues,
): StoreOptions & Pick<BuildOptions, 'forceRebuild' | 'timingCache'> {
  if (options.noCache && options.forceRebuild) {
    throw new TrtforgeError('TF_USAGE', '--no-cache and --force-rebuild contradict each other.', {
      remedy:
        '--no-cache alone always builds and keeps nothing; --force-rebuild replaces what the store has.',
    });
  }
  return {
    ...searchOptionsOf(options),
    ...(options.noCache ? { store: false } : {}),
    maxBytes: options.maxSize,
    signKey: options.signKey,
    forceRebuild: options.forceRebuild,
    timingCache: options.timingCache === 'none' ? null : options.timingCache,
  };
}

/** Those of them that a search in the stores takes. */
const { cacheFrom, remote, requireSignature, trustKey } = storeOptions;
export const searchOptions = { cacheDir, cacheFrom, remote, requireSignature, trustKey };
export const searchOptionsOf = (options: OptionValues<typeof searchOptions>): StoreOptions => ({
  store: options.cacheDir,
  layers: listOrNone(options.cacheFrom),
  remote: remoteOf(options),
  requireSignature: options.requireSignature || undefined,
  trustKeys: listOrNone(options.trustKey),
});

/** An option that was not passed leaves the decision to the environment. */
const listOrNone = <T>(list: readonly T[]): readonly T[] | undefined =>
  list.length === 0 ? undefined : list;
