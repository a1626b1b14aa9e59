import { mkdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemErrorCode, TrtforgeError } from '../../errors.js';
import { lstatIfThere } from './files.js';

/** The folder that holds everything trtforge keeps between runs: `$XDG_CACHE_HOME/trtforge` or `~/.cache/trtforge`. */
export function cacheFolder(environment: NodeJS.ProcessEnv = process.env): string {
  return join(environment.XDG_CACHE_HOME || join(homedir(), '.cache'), 'trtforge');
}

/**
 * Makes a folder and those above it that are missing. Throws Node's system errors.
 * Node's own recursive `mkdirSync` never ends where a file system rejects new folders with ENOENT: /proc, automounters.
 */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    if (isFolder(path)) return;
    const parent = dirname(path);
    if (systemErrorCode(error) !== 'ENOENT' || parent === path || isFolder(parent)) throw error;
    makeFolder(parent);
    makeFolder(path);
  }
}

/**
 * A path below `root` that leads through folders alone, as far as it is there. A link on the way may lead anywhere, so the caller that may write in
 * `root` could have files made or removed elsewhere. Throws TF_FILE_UNREADABLE for it.
 */
export function pathBelow(root: string, ...names: readonly string[]): string {
  const odd = oddPart(root, names);
  if (odd === undefined) return join(root, ...names);
  const remedy = 'Remove it: only folders may be there, and no link is followed.';
  throw new TrtforgeError('TF_FILE_UNREADABLE', `${odd} is not a folder.`, { remedy });
}

/** The first part of the way that is something else than a folder. */
export function oddPart(root: string, names: readonly string[]): string | undefined {
  return names
    .map((_, index) => join(root, ...names.slice(0, index + 1)))
    .find((path) => lstatIfThere(path)?.isDirectory() === false);
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
