import { readdirSync } from 'node:fs';
import { systemErrorCode, TrtforgeError } from '../errors.js';

/** Names in a folder; none when it is not there. Throws TF_FILE_UNREADABLE when it may not be read. */
export function listFolder(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch (cause) {
    const code = systemErrorCode(cause);
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw new TrtforgeError('TF_FILE_UNREADABLE', `${path} cannot be read (${code ?? String(cause)}).`, {
      cause,
    });
  }
}
