import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '../../base/files/folders.js';
import { moveInto, syncFolder, writeFailed } from '../../base/files/publish.js';
import { assertMayReplace } from '../../base/files/user-files.js';
import { type Passport, passportPath } from '../identity/passport-file.js';

/**
 * Moves a checked plan and its passport into place; `pendingPath` lies on the same file system. Both are on disk before the first rename, the
 * old passport goes first and the new one comes last: at every moment in between there is no passport, so nothing is believed.
 * Throws TF_WRITE_FAILED; the pending files are the caller's to remove.
 */
export function publishEngine(pendingPath: string, passport: Passport, planPath: string): void {
  const pendingPassport = passportPath(pendingPath);
  try {
    writeFileSync(pendingPassport, passportText(passport));
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

const passportText = (passport: Passport): string => `${JSON.stringify(passport, null, 2)}\n`;

function syncFile(path: string): void {
  const descriptor = openSync(path, 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
