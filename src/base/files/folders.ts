import { existsSync, lstatSync, mkdirSync, mkdtempSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, delimiter, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { systemErrorCode, TrtforgeError } from '../../errors.js';
import { lstatIfThere, ownEntries, removeIfAllowed } from './files.js';

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

/** Whether `path` is not inside `folder`, by their names alone. */
export function leaves(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way);
}

/** Whether a path, absolute or from the folder on, leads to a place in it, by its links too. What is not there yet lies where its closest folder does. */
export function isBelow(folder: string, path: string): boolean {
  try {
    return !leaves(realPlace(resolve(folder)), realPlace(resolve(folder, path)));
  } catch {
    // A link to nothing: who writes to it decides what it is.
    return false;
  }
}

const realPlace = (path: string): string =>
  lstatIfThere(path) === undefined && dirname(path) !== path
    ? join(realPlace(dirname(path)), basename(path))
    : realpathSync(path);

/** Makes a folder that only its user may enter, where it is not there yet. Throws Node's system errors. */
export function makePrivate(path: string): void {
  makeFolder(dirname(path));
  if (!existsSync(path)) mkdirSync(path, { mode: 0o700 });
}

/**
 * Whether no other user can change what stands at a path, or is made there: from `top` on, everything on the way is this user's or root's, also behind
 * links, and nobody else may write it. A sticky folder keeps what is this user's, and below a folder that is closed to others modes do not count.
 */
export function isPrivate(path: string, top?: string): boolean {
  const user = process.getuid?.();
  // Windows has neither users nor modes of this kind.
  if (user === undefined) return true;
  try {
    return standing(resolve(path), user, top && resolve(top)) !== 'open';
  } catch {
    // A path that cannot be examined: a link that leads nowhere or in a circle.
    return false;
  }
}

function standing(path: string, user: number, top?: string): 'closed' | 'firm' | 'open' {
  const above = [top, dirname(path)].includes(path) ? 'firm' : standing(dirname(path), user, top);
  const stats = above === 'open' ? undefined : lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return above;
  const { uid, mode } = stats;
  if (uid !== 0 && uid !== user) return 'open';
  if (stats.isSymbolicLink()) {
    statSync(path);
    return standing(resolve(dirname(path), readlinkSync(path)), user);
  }
  const isSticky = stats.isDirectory() && (mode & 0o1000) !== 0;
  if (above === 'firm' && (mode & 0o022) !== 0 && !isSticky) return 'open';
  return stats.isDirectory() && (mode & 0o011) === 0 ? 'closed' : above;
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

const SCRATCH = /^trtforge-[a-z-]+-(\d+)-\w{6}$/;
/** A process of another container that shares the folder looks dead from here. */
const LEFT_FOR_MS = 24 * 3600 * 1000;
const swept = new Set<string>();

/** Makes a folder for files that its caller removes by the end of its work. What killed processes left a day ago is removed. Throws TF_WRITE_FAILED. */
export function makeScratch(use: string, place: string = tmpdir()): string {
  try {
    removeLeftovers(place);
    return mkdtempSync(join(place, `trtforge-${use}-${process.pid}-`));
  } catch (cause) {
    const code = systemErrorCode(cause);
    throw new TrtforgeError(
      'TF_WRITE_FAILED',
      `${place} cannot take temporary files: ${code === 'ENOENT' ? 'it does not exist' : (code ?? String(cause))}.`,
      { remedy: 'Create the folder, or set TMPDIR to one with room that you can write to.', cause },
    );
  }
}

/** Once a process. */
function removeLeftovers(place: string): void {
  if (swept.has(place)) return;
  swept.add(place);
  const before = Date.now() - LEFT_FOR_MS;
  for (const { path, mtimeMs } of ownEntries(place, 'folders', SCRATCH)) {
    const pid = Number(/-(\d+)-\w{6}$/.exec(path)?.[1]);
    if (mtimeMs < before && !isAlive(pid)) removeIfAllowed(path);
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemErrorCode(error) !== 'ESRCH';
  }
}

/**
 * Throws TF_BUNDLED where a bundler has put this module into another program's file: the addresses of trtforge's own files lead to others then, which must not run.
 */
export function assertUnbundled(what: string): void {
  if (/\/base\/files\/folders\.[jt]s$/.test(import.meta.url)) return;
  throw new TrtforgeError(
    'TF_BUNDLED',
    `trtforge is bundled into ${import.meta.url}, and ${what} needs files of trtforge's own folder.`,
  );
}

/** Paths separated by `:` (Windows: `;`), as in PATH. */
export const splitPaths = (text: string): readonly string[] => text.split(delimiter).filter(Boolean);
