import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemErrorCode, TrtforgeError } from '../../errors.js';
import { lstatIfThere } from './stat.js';

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

/**
 * Entries of a folder with names of our form that are of the kind we make: plain files or folders, never links, since others may have put
 * those there. Throws TF_FILE_UNREADABLE.
 */
export function ownEntries(
  folder: string,
  kind: 'files' | 'folders',
  names: RegExp,
): readonly { readonly path: string; readonly mtimeMs: number }[] {
  return listFolder(folder).flatMap((name) => {
    const path = join(folder, name);
    const stats = names.test(name) ? lstatIfThere(path) : undefined;
    const isOurs = kind === 'files' ? stats?.isFile() : stats?.isDirectory();
    return stats !== undefined && isOurs ? [{ path, mtimeMs: Number(stats.mtimeMs) }] : [];
  });
}
