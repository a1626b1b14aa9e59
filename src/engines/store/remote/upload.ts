import { openFile } from '../../../base/files/byte-source.js';
import { stampOf, unchanged } from '../../../base/files/file-memo.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { type ByteRange, inParallel, type Objects } from './objects.js';
import { PARTS_AT_ONCE, partsOf, TransferProgress } from './transfer.js';

/**
 * Puts a file under a key, in parallel parts when it is larger than one; the object appears whole or not at all. A file that changes
 * meanwhile is not put. Throws TF_REMOTE_*, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_CANCELLED.
 */
export async function uploadFile(
  objects: Objects,
  path: string,
  key: string,
  metadata: Readonly<Record<string, string>>,
  { emit, signal }: WorkContext,
): Promise<void> {
  const stamp = stampOf(path);
  const source = openFile(path);
  const options = { metadata, contentType: 'application/octet-stream' };
  const read = ({ first, last }: ByteRange, memory = Buffer.allocUnsafe(last - first + 1)) => {
    const body = memory.subarray(0, last - first + 1);
    if (source.read(body, first, body.length) < body.length) throw changed(path);
    return body;
  };
  try {
    const parts = partsOf(source.size);
    const [first] = parts;
    if (first === undefined || parts.length === 1) {
      await objects.put(key, first === undefined ? Buffer.alloc(0) : read(first), options, signal);
      return;
    }
    const progress = new TransferProgress('upload', source.size, emit);
    const upload = await objects.startParts(key, options, signal);
    // Fresh memory for every part would cost more than reading the file.
    const spare: Buffer<ArrayBuffer>[] = [];
    try {
      await inParallel(parts, PARTS_AT_ONCE, signal, async (range, index, stop) => {
        const memory = spare.pop() ?? Buffer.allocUnsafe(first.last + 1);
        await upload.put(index + 1, read(range, memory), stop);
        spare.push(memory);
        progress.add(range.last - range.first + 1);
      });
      if (stamp === undefined || !unchanged([stamp])) throw changed(path);
      await upload.complete(signal);
    } catch (error) {
      await upload.abort();
      throw error;
    }
  } finally {
    source.close();
  }
}

const changed = (path: string): TrtforgeError =>
  new TrtforgeError(
    'TF_FILE_UNREADABLE',
    `${path} changed while it was uploaded; nothing of it was kept there.`,
  );
