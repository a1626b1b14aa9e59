import { type BigIntStats, lstatSync, type Stats, statSync } from 'node:fs';
import { systemErrorCode, TrtforgeError } from '../../errors.js';

/** The facts of a file or folder; undefined where there is none, also behind a file and behind links in a circle. Throws TF_FILE_UNREADABLE. */
export const statIfThere = (path: string): Stats | undefined => ifThere(path, () => statSync(path));

/** The same of what has this very name: a link is not followed. */
export const lstatIfThere = (path: string): BigIntStats | undefined =>
  ifThere(path, () => lstatSync(path, { bigint: true }));

function ifThere<T>(path: string, look: () => T): T | undefined {
  try {
    return look();
  } catch (cause) {
    const code = systemErrorCode(cause) ?? String(cause);
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(code)) return undefined;
    throw new TrtforgeError('TF_FILE_UNREADABLE', `${path} cannot be read (${code}).`, { cause });
  }
}
