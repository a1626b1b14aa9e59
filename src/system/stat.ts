import { type Stats, statSync } from 'node:fs';
import { systemErrorCode } from '../errors.js';

/** The facts of a file or folder; undefined where there is none. Node's `throwIfNoEntry` still throws where a part of the path is a file. */
export function statIfThere(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemErrorCode(error) ?? '')) return undefined;
    throw error;
  }
}
