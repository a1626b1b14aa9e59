import { statSync } from 'node:fs';
import { systemErrorCode, TrtforgeError } from '../../errors.js';
import { openCompactReference } from './compact.js';
import { openJsonlReference } from './jsonl.js';
import type { Reference } from './reference.js';

/**
 * Opens a reference: a JSONL file, or the folder of a compact one. Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, and TF_REFERENCE_INVALID when not one
 * line is whole.
 */
export function openReference(path: string): Reference {
  let isFolder: boolean;
  try {
    isFolder = statSync(path).isDirectory();
  } catch (cause) {
    const code = systemErrorCode(cause);
    if (code === 'ENOENT') throw new TrtforgeError('TF_FILE_NOT_FOUND', `${path} does not exist.`, { cause });
    throw new TrtforgeError('TF_FILE_UNREADABLE', `${path} cannot be read (${code}).`, { cause });
  }
  return isFolder ? openCompactReference(path) : openJsonlReference(path);
}
