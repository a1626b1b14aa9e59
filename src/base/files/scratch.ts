import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemErrorCode, TrtforgeError } from '../../errors.js';
import { ownEntries, removeIfAllowed } from './files.js';

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
