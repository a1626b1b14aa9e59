import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, realpathSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { listFolder } from '../system/list-folder.js';
import { isProcessMark, ownMark, stateOf } from './process-mark.js';

const USED = 'used';
const MARK = /^in-use\.[0-9a-f-]{36}\.json$/;

/** Marks of processes that cannot be asked (another machine) count for this long. */
const STRANGERS_KEEP_MS = 24 * 3600 * 1000;

/** What this process has marked: folder of the engine to its mark. */
const held = new Map<string, string>();

/**
 * Notes that this process uses an engine of a store, and when: eviction leaves it alone while the process lives. A plan that lies in no store
 * and a store that cannot be written are left as they are. `planPath` may be a readable link.
 */
export function markInUse(planPath: string): void {
  const folder = engineFolder(planPath);
  if (folder === undefined) return;
  try {
    touch(join(folder, USED));
    const known = held.get(folder);
    if (known !== undefined && existsSync(known)) return;
    const path = join(folder, `in-use.${randomUUID()}.json`);
    writeFileSync(path, JSON.stringify(ownMark()), { flag: 'wx' });
    if (held.size === 0) process.once('exit', releaseAll);
    held.set(folder, path);
  } catch {
    // Read-only or gone: there is nothing to protect from here.
  }
}

/** Takes back this process's mark, where it used the engine only for a moment. */
export function releaseUse(planPath: string): void {
  const folder = engineFolder(planPath);
  const mark = folder === undefined ? undefined : held.get(folder);
  if (folder === undefined || mark === undefined) return;
  held.delete(folder);
  rmSync(mark, { force: true });
}

/** Whether a living process uses the engine in a folder of a store. Marks of dead ones are removed on the way. */
export function isInUse(folder: string, now = Date.now()): boolean {
  return listFolder(folder)
    .filter((name) => MARK.test(name))
    .some((name) => isAlive(join(folder, name), now));
}

/** When the engine in a folder was last used or kept, in milliseconds since 1970: an own stamp, since many file systems keep no access times. */
export function lastUsed(folder: string, planName: string): number {
  const times = [USED, `${planName}.passport.json`, planName].map(
    (name) => statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0,
  );
  return times[0] || Math.max(...times);
}

function isAlive(path: string, now: number): boolean {
  try {
    const mark: unknown = JSON.parse(readFileSync(path, 'utf8'));
    const state = isProcessMark(mark) ? stateOf(mark) : 'unknown';
    if (state === 'alive') return true;
    if (state === 'unknown' && now - statSync(path).mtimeMs < STRANGERS_KEEP_MS) return true;
    rmSync(path, { force: true });
  } catch {
    // Gone meanwhile, or half written by a process that was killed: its age decides the next time it can be read.
  }
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

function touch(path: string): void {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {
    writeFileSync(path, '');
  }
}

function releaseAll(): void {
  for (const mark of held.values()) rmSync(mark, { force: true });
}
