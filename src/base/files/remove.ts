import { rmSync } from 'node:fs';
import { systemErrorCode } from '../../errors.js';

/** Removes a file or folder if it is there; also a path below what is not a folder is «not there». */
export function removeIfThere(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOTDIR') throw error;
  }
}

/** The same of a leftover: what cannot be removed (it is another user's) stays. Returns whether it is gone. */
export function removeIfAllowed(path: string): boolean {
  try {
    removeIfThere(path);
    return true;
  } catch {
    return false;
  }
}
