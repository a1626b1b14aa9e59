import { mkdtempSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { closing } from '../../../base/files/byte-source.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { passportPath } from '../../identity/engine-name.js';
import { signaturePath } from '../trust.js';
import { remoteAddress } from './address.js';
import type { Objects } from './objects.js';
import { openS3 } from './s3-objects.js';
import { downloadFile } from './transfer.js';

interface FetchOptions extends WorkContext {
  readonly isEngine: (name: string) => boolean;
  /** Gets each engine as it arrives, what lies beside it beside it; the file goes afterwards. */
  readonly take: (path: string, key: string) => Promise<void>;
}

/**
 * Fetches every engine below an address, ours or anybody's: any key that ends like an engine. A key is never used as a path: of its name only plain
 * characters remain. Throws TF_REMOTE_*, TF_REMOTE_ADDRESS_INVALID, TF_WRITE_FAILED, TF_CANCELLED.
 */
export async function fetchBucket(uri: string, folder: string, options: FetchOptions): Promise<void> {
  const { isEngine, take, signal } = options;
  return withBucket(uri, options, async (objects, keys) => {
    const known = new Set(keys);
    for (const key of keys.filter((each) => isEngine(basename(each)))) {
      const path = join(mkdtempSync(join(folder, 'key-')), plain(basename(key)));
      for (const beside of [passportPath, signaturePath]) {
        const small = known.has(beside(key)) ? await objects.read(beside(key), signal) : undefined;
        if (small !== undefined) writeFileSync(beside(path), small.body);
      }
      const facts = await objects.head(key, signal);
      if (facts === undefined)
        throw new TrtforgeError('TF_REMOTE_NOT_FOUND', `${key} at ${objects.place} is gone.`);
      await downloadFile(objects, facts, path, null, options);
      await take(path, key);
    }
  });
}

/** Every key below an address. Throws TF_REMOTE_*, TF_REMOTE_ADDRESS_INVALID, TF_CANCELLED. */
export const listBucket = (uri: string, options: WorkContext): Promise<readonly string[]> =>
  withBucket(uri, options, async (_, keys) => keys);

async function withBucket<T>(
  uri: string,
  { environment = process.env, signal }: WorkContext,
  work: (objects: Objects, keys: readonly string[]) => Promise<T>,
): Promise<T> {
  const address = remoteAddress(uri, environment);
  if (address === null) throw new TrtforgeError('TF_REMOTE_ADDRESS_INVALID', `"${uri}" names no bucket.`);
  return closing(await openS3(address), async (objects) => {
    const keys: string[] = [];
    for await (const { key } of objects.list(address.prefix === '' ? '' : `${address.prefix}/`, signal))
      keys.push(key);
    return await work(objects, keys);
  });
}

const plain = (name: string): string =>
  name
    .replace(/[^A-Za-z0-9._+~-]+/g, '-')
    .replace(/^[^A-Za-z0-9_+]+/, '')
    .slice(-200) || 'engine.plan';
