import { statIfThere } from '../../base/files/files.js';
import type { OptionValues } from '../../base/options/option.js';
import type { LocalStore } from '../../engines/store/local.js';
import { openLocalStore, openRemoteStore, storeOptions } from '../../engines/store/open-stores.js';
import type { RemoteStore } from '../../engines/store/remote/remote-store.js';
import { openTrust, type Trust, type trustOptions } from '../../engines/store/trust.js';
import { TrtforgeError } from '../../errors.js';
import type { Work } from '../../events.js';
import { text } from '../option.js';

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

/** The local store whose engines a command lists, checks, copies or removes: empty, with a warning, where no build has made it yet. */
export function openStoreThere(
  folder: string | undefined,
  { environment, emit }: Pick<Work, 'environment' | 'emit'>,
  trust?: Trust,
): LocalStore {
  const store = openLocalStore(folder, environment, trust);
  if (statIfThere(store.place) === undefined)
    emit({
      type: 'log',
      source: 'trtforge',
      severity: 'warning',
      message: `There is no engine store at ${store.place} yet: the first build makes it. Another folder is passed with --cache-dir.`,
    });
  return store;
}

/** Opens the store, hands it to `work` and closes it. Throws TF_REMOTE_ADDRESS_INVALID. */
export async function withPlace<T>(
  options: { readonly store: string | undefined; readonly remote: string | undefined },
  context: Pick<Work, 'environment' | 'emit'>,
  trust: Trust | undefined,
  work: (store: LocalStore | RemoteStore) => Promise<T>,
): Promise<T> {
  if (options.remote === undefined) return work(openStoreThere(options.store, context, trust));
  const address = options.remote === 'default' ? undefined : options.remote;
  const remote = await openRemoteStore(address, context.environment, trust);
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
