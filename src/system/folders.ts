import { mkdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemErrorCode } from '../errors.js';

/** The folder that holds everything trtforge keeps between runs: `$XDG_CACHE_HOME/trtforge` or `~/.cache/trtforge`. */
export function cacheFolder(environment: NodeJS.ProcessEnv = process.env): string {
  return join(environment.XDG_CACHE_HOME || join(homedir(), '.cache'), 'trtforge');
}

/**
 * Makes a folder and those above it that are missing. Throws Node's system errors.
 * Node's own recursive `mkdirSync` never ends where a file system refuses new folders with ENOENT: /proc, automounters.
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

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
