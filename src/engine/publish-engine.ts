import { closeSync, constants, copyFileSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '../system/folders.js';
import { besidePath, moveInto, syncFolder, writeFailed } from '../system/publish.js';
import { removeIfThere } from '../system/remove.js';
import { assertMayReplace } from '../system/user-files.js';
import { type Passport, passportPath } from './passport-file.js';

/**
 * Moves a checked plan and its passport into place; `pendingPath` lies on the same file system. Both are on disk before the first rename, the
 * old passport goes first and the new one comes last: at every moment in between there is no passport, so nothing is believed.
 * Throws TF_WRITE_FAILED; the pending files are the caller's to remove.
 */
export function publishEngine(pendingPath: string, passport: Passport, planPath: string): void {
  const pendingPassport = passportPath(pendingPath);
  try {
    writeFileSync(pendingPassport, `${JSON.stringify(passport, null, 2)}\n`);
    syncFile(pendingPassport);
    syncFile(pendingPath);
    makeFolder(dirname(planPath));
    assertMayReplace(planPath, pendingPath);
    rmSync(passportPath(planPath), { force: true });
    moveInto(pendingPath, planPath);
    moveInto(pendingPassport, passportPath(planPath));
    syncFolder(dirname(planPath));
  } catch (cause) {
    throw writeFailed(planPath, cause);
  }
}

/** Copies an engine (as a reflink where the file system can) to a place of the user's. Throws TF_WRITE_FAILED; nothing half-written stays. */
export function copyEngine(source: string, passport: Passport, planPath: string): void {
  const pending = besidePath(planPath);
  try {
    makeFolder(dirname(planPath));
    copyFileSync(source, pending, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    publishEngine(pending, passport, planPath);
  } catch (cause) {
    throw writeFailed(planPath, cause);
  } finally {
    removeIfThere(pending);
    removeIfThere(passportPath(pending));
  }
}

function syncFile(path: string): void {
  const descriptor = openSync(path, 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
