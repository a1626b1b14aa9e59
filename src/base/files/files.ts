import { type BigIntStats, lstatSync, readdirSync, rmSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { type ErrorCode, systemErrorCode, TrtforgeError } from '../../errors.js';
import { readWhole } from './byte-source.js';
import { parseJson } from './json.js';

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

/** The same in their order, and none where the folder cannot be read: for searches. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

/** A run root has some dozens of files; of a folder with more of them no further ones are looked at. */
const MOST_ENTRIES = 2000;

/** Files below a folder, at most this many folders deep (1: its own), relative to it and in their order: for searches in run roots. */
export function filesBelow(root: string, depth: number): readonly string[] {
  let left = MOST_ENTRIES;
  const below = (folder: string, level: number): readonly string[] =>
    listFolder(join(root, folder))
      .toSorted()
      .flatMap((name) => {
        if (left-- <= 0) return [];
        const path = join(folder, name);
        const stats = statIfThere(join(root, path));
        if (stats?.isDirectory() === true) return level < depth ? below(path, level + 1) : [];
        return stats?.isFile() === true ? [path] : [];
      });
  return below('', 1);
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

/** A whole text file of at most `largest` bytes; a larger one is rejected with `code`. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export const readText = (path: string, largest: number, code: ErrorCode): string =>
  readWhole(path, largest, code).toString('utf8');

/** More than any document of ours has. */
export const LARGEST_DOCUMENT = 64 << 20;

/** The content of a JSON file of at most `largest` bytes; undefined where there is none that can be read. */
export function readJson(path: string, largest: number = LARGEST_DOCUMENT): unknown {
  try {
    return parseJson(readText(path, largest, 'TF_FILE_UNREADABLE'), largest, Error);
  } catch {
    return undefined;
  }
}

const FORBIDDEN = ['EROFS', 'EACCES', 'EPERM'];

/** What helps where a removal ends with a code of the system, for which no other place helps; undefined: what the catalogue states. */
export const removalRemedy = (code: string | undefined): string | undefined =>
  FORBIDDEN.includes(code ?? '')
    ? 'Run it as a user who may write there, where the file system is not mounted read-only.'
    : undefined;

/** The same of a write. */
export const writeRemedy = (code: string | undefined): string | undefined =>
  FORBIDDEN.includes(code ?? '') ? `Choose another folder. Or: ${removalRemedy(code)}` : undefined;

/** Removes a file or folder if it is there; also a path below what is not a folder is "not there". Throws TF_WRITE_FAILED. */
export function removeIfThere(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (cause) {
    const code = systemErrorCode(cause);
    if (code === 'ENOTDIR') return;
    throw new TrtforgeError('TF_WRITE_FAILED', `${path} cannot be removed (${code ?? String(cause)}).`, {
      cause,
      remedy: removalRemedy(code),
    });
  }
}

/** The same at the end of work, which it may not hide the outcome of: what cannot be removed (another user's, a disk that became read-only) stays. Returns whether it is gone. */
export function removeIfAllowed(path: string): boolean {
  try {
    removeIfThere(path);
    return true;
  } catch {
    return false;
  }
}
