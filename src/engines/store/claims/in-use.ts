import { randomUUID } from 'node:crypto';
import { existsSync, lutimesSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { listFolder, lstatIfThere, removeIfAllowed } from '../../../base/files/files.js';
import { createClaim, isAbandoned, readClaim } from './claim.js';

const USED = 'used';
const MARK = /^in-use\.[0-9a-f-]{36}\.json$/;

/** A mark of this process, and what it is there for. */
interface Hold {
  path: string;
  /** Marked for as long as the process lives, or until `releaseUse`. */
  isKept: boolean;
  /** Number of callers with the engine open. */
  open: number;
}

/** The engines that this process has marked, by their folder. */
const held = new Map<string, Hold>();
let releasesAtExit = false;

/**
 * Notes that this process uses an engine of a store, and when: eviction leaves it alone while the process lives. A plan that lies in no store
 * and a store that cannot be written are left as they are. `planPath` may be a readable link.
 */
export function markInUse(planPath: string): void {
  const hold = holdOf(planPath);
  if (hold !== undefined) hold.isKept = true;
}

/** Takes back what `markInUse` noted, where this process used the engine only for a moment. */
export function releaseUse(planPath: string): void {
  const folder = engineFolder(planPath);
  const hold = folder === undefined ? undefined : held.get(folder);
  if (folder === undefined || hold === undefined) return;
  hold.isKept = false;
  removeUnused(folder, hold);
}

/** As `markInUse`, until what it gives is called; an engine may be open several times. */
export function markWhileOpen(planPath: string): () => void {
  const folder = engineFolder(planPath);
  const hold = holdOf(planPath);
  if (folder === undefined || hold === undefined) return () => {};
  hold.open++;
  let isOpen = true;
  return () => {
    if (!isOpen) return;
    isOpen = false;
    hold.open--;
    removeUnused(folder, hold);
  };
}

/** Whether a living process uses the engine in a folder of a store. Marks of dead ones are removed on the way. */
export function isInUse(folder: string, now = Date.now()): boolean {
  return listFolder(folder)
    .filter((name) => MARK.test(name))
    .some((name) => isAlive(join(folder, name), now));
}

/** When the engine in a folder was last used or kept, in milliseconds since 1970: an own stamp, since many file systems keep no access times. */
export function lastUsed(folder: string, planName: string): number {
  const times = [USED, `${planName}.passport.json`, planName].map((name) =>
    Number(lstatIfThere(join(folder, name))?.mtimeMs ?? 0),
  );
  return times[0] || Math.max(...times);
}

/** This process's mark on an engine, which is there now; undefined where there can be none. */
function holdOf(planPath: string): Hold | undefined {
  const folder = engineFolder(planPath);
  if (folder === undefined) return undefined;
  try {
    touch(join(folder, USED));
  } catch {
    // The time of use decides what goes first; the mark below decides whether it goes.
  }
  try {
    const known = held.get(folder);
    if (known !== undefined && existsSync(known.path)) return known;
    const path = join(folder, `in-use.${randomUUID()}.json`);
    createClaim(path, 'use');
    if (!releasesAtExit) process.once('exit', releaseAll);
    releasesAtExit = true;
    const hold = known ?? { path, isKept: false, open: 0 };
    hold.path = path;
    held.set(folder, hold);
    return hold;
  } catch {
    // Read-only or gone: there is nothing to protect from here.
    return undefined;
  }
}

function removeUnused(folder: string, { path, isKept, open }: Hold): void {
  if (isKept || open > 0) return;
  held.delete(folder);
  removeIfAllowed(path);
}

function isAlive(path: string, now: number): boolean {
  const claim = readClaim(path, 'use');
  if (claim === undefined || claim === 'odd') return false;
  if (!isAbandoned(claim, claim.mtimeMs, now)) return true;
  removeIfAllowed(path);
  return false;
}

/** The folder `by-identity/3f/3f2a…` of a plan; undefined for a plan elsewhere. */
function engineFolder(planPath: string): string | undefined {
  try {
    const folder = dirname(realpathSync(planPath));
    return /[/\\]by-identity[/\\][0-9a-f]{2}[/\\][0-9a-f]{64}$/.test(folder) ? folder : undefined;
  } catch {
    return undefined;
  }
}

/** Never through a link, and never by opening what is there: others may write in the folder. */
function touch(path: string): void {
  const now = new Date();
  try {
    lutimesSync(path, now, now);
  } catch {
    // Not there yet, or another user's, whose times only that user may set.
    rmSync(path, { force: true });
    writeFileSync(path, '', { flag: 'wx' });
  }
}

function releaseAll(): void {
  for (const { path } of held.values()) removeIfAllowed(path);
}
