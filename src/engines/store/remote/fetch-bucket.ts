import { closeSync, mkdtempSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
import { writeFailed } from '../../../base/files/publish.js';
import { TrtforgeError } from '../../../errors.js';
import type { EventListener } from '../../../events.js';
import { passportPath } from '../../identity/passport-file.js';
import { signaturePath } from '../signature.js';
import { remoteAddress } from './address.js';
import { remoteFailure } from './failure.js';
import type { Objects } from './objects.js';
import { openS3 } from './s3-objects.js';
import { partsOf, TransferProgress } from './transfer.js';

interface FetchOptions {
  readonly isEngine: (name: string) => boolean;
  /** Gets each engine as it arrives, what lies beside it beside it; the file goes afterwards. */
  readonly take: (path: string, key: string) => Promise<void>;
  readonly environment: NodeJS.ProcessEnv;
  readonly emit: EventListener;
  readonly signal: AbortSignal | undefined;
}

/**
 * Fetches every engine below an address, ours or anybody's: any key that ends like an engine. A key is never used as a path: of its name only plain
 * characters remain. Throws TF_REMOTE_*, TF_REMOTE_ADDRESS_INVALID, TF_WRITE_FAILED, TF_CANCELLED.
 */
export async function fetchBucket(uri: string, folder: string, options: FetchOptions): Promise<void> {
  const { isEngine, take, environment, signal } = options;
  const address = remoteAddress(uri, environment);
  if (address === null) throw new TrtforgeError('TF_REMOTE_ADDRESS_INVALID', `«${uri}» names no bucket.`);
  const objects = await openS3(address);
  try {
    const keys: string[] = [];
    for await (const { key } of objects.list(address.prefix === '' ? '' : `${address.prefix}/`, signal))
      keys.push(key);
    const known = new Set(keys);
    for (const key of keys.filter((each) => isEngine(basename(each)))) {
      const path = join(mkdtempSync(join(folder, 'key-')), plain(basename(key)));
      for (const beside of [passportPath, signaturePath]) {
        const small = known.has(beside(key)) ? await objects.read(beside(key), signal) : undefined;
        if (small !== undefined) writeFileSync(beside(path), small.body);
      }
      await fetchObject(objects, key, path, options);
      await take(path, key);
    }
  } finally {
    objects.close();
  }
}

async function fetchObject(
  objects: Objects,
  key: string,
  path: string,
  { emit, signal }: FetchOptions,
): Promise<void> {
  const facts = await objects.head(key, signal);
  if (facts === undefined)
    throw new TrtforgeError('TF_REMOTE_NOT_FOUND', `${key} at ${objects.place} is gone.`);
  const progress = new TransferProgress('download', facts.bytes, emit);
  const file = openSync(path, 'wx');
  try {
    for (const range of partsOf(facts.bytes)) {
      let at = range.first;
      for await (const chunk of await objects.stream(key, range, facts.etag, signal)) {
        try {
          writeSync(file, chunk, 0, chunk.length, at);
        } catch (cause) {
          throw writeFailed(path, cause);
        }
        at += chunk.length;
        if (at > range.last + 1)
          throw new TrtforgeError(
            'TF_REMOTE_DAMAGED',
            `${key} at ${objects.place} is longer than it should be.`,
          );
      }
      progress.add(at - range.first);
    }
  } catch (error) {
    throw remoteFailure(error, { doing: `downloading ${key}`, place: objects.place });
  } finally {
    closeSync(file);
  }
}

const plain = (name: string): string =>
  name
    .replace(/[^A-Za-z0-9._+~-]+/g, '-')
    .replace(/^[^A-Za-z0-9_+]+/, '')
    .slice(-200) || 'engine.plan';
