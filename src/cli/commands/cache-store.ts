import type { LocalStore } from '../../engines/store/local.js';
import { openLocalStore, openRemoteStore, storeOptions } from '../../engines/store/open-stores.js';
import type { RemoteStore } from '../../engines/store/remote/remote-store.js';
import { openTrust, type Trust, type trustOptions } from '../../engines/store/trust.js';
import { TrtforgeError } from '../../errors.js';
import { type OptionValues, text } from '../option.js';

/** Which store a `cache` command is about: the folder, or with `--remote` the bucket. */
export const placeOptions = {
  store: storeOptions.store,
  remote: text({
    flags: '--remote <address>',
    trust: true,
    describe:
      'the bucket instead of the folder: s3://bucket/prefix, http://host:9000/bucket; default for ARTIFACTS_BUCKET',
  }),
};

/** Opens the store, hands it to `work` and closes it. Throws TF_REMOTE_ADDRESS_INVALID. */
export async function withPlace<T>(
  options: { readonly store: string | undefined; readonly remote: string | undefined },
  environment: NodeJS.ProcessEnv,
  trust: Trust | undefined,
  work: (store: LocalStore | RemoteStore) => Promise<T>,
): Promise<T> {
  if (options.remote === undefined) return work(openLocalStore(options.store, environment, trust));
  const address = options.remote === 'default' ? undefined : options.remote;
  const remote = await openRemoteStore(address, environment, trust);
  if (remote === null) {
    throw new TrtforgeError('TF_REMOTE_ADDRESS_INVALID', 'The environment names no remote store.', {
      remedy:
        'Set ARTIFACTS_BUCKET (and ARTIFACTS_ENDPOINT for a server of your own), or write its address after --remote.',
    });
  }
  try {
    return await work(remote);
  } finally {
    remote.close();
  }
}

/** Whose engines are trusted. Throws what reading the keys throws. */
export const trustOf = (options: OptionValues<typeof trustOptions>, environment: NodeJS.ProcessEnv): Trust =>
  openTrust(options, environment);

/** Which engines of a store; none means all. */
export const enginesArgument = {
  name: 'ENGINES',
  describe: 'parts of names, as resnet*fp16, or starts of identities (default: all)',
  optional: true,
  many: true,
} as const;
