import { openFile } from '../../system/byte-source.js';
import { inParallel } from './in-parallel.js';
import type { Objects } from './objects.js';
import { PARTS_AT_ONCE, partsOf, type TransferOptions, TransferProgress } from './transfer.js';

/**
 * Puts a file under a key, in parallel parts when it is larger than one; the object appears whole or not at all.
 * Throws TF_REMOTE_*, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_CANCELLED.
 */
export async function uploadFile(
  objects: Objects,
  path: string,
  key: string,
  metadata: Readonly<Record<string, string>>,
  { emit, signal }: TransferOptions,
): Promise<void> {
  const source = openFile(path);
  const options = { metadata, contentType: 'application/octet-stream' };
  const read = ({ first, last }: { first: number; last: number }) => {
    const body = Buffer.allocUnsafe(last - first + 1);
    source.read(body, first, body.length);
    return body;
  };
  try {
    const parts = partsOf(source.size);
    const [only] = parts;
    if (parts.length <= 1) {
      await objects.put(key, only === undefined ? Buffer.alloc(0) : read(only), options, signal);
      return;
    }
    const progress = new TransferProgress('upload', source.size, emit);
    const upload = await objects.startParts(key, options, signal);
    try {
      await inParallel(parts, PARTS_AT_ONCE, signal, async (range, index, stop) => {
        await upload.put(index + 1, read(range), stop);
        progress.add(range.last - range.first + 1);
      });
      await upload.complete(signal);
    } catch (error) {
      await upload.abort();
      throw error;
    }
  } finally {
    source.close();
  }
}
