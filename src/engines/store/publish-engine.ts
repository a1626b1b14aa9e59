import { closeSync, constants, copyFileSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeFolder } from '../../base/files/folders.js';
import { besidePath, carry, moveInto, syncFolder, writeFailed } from '../../base/files/publish.js';
import { assertMayReplace } from '../../base/files/user-files.js';
import { passportPath } from '../identity/engine-name.js';
import type { Passport } from '../identity/passport.js';
import type { StoredEngine } from './store.js';
import { type Trust, writeSignature } from './trust.js';

/**
 * Moves a checked plan and its passport into place, by way of `staged` on the place's own file system. Both are on disk before the first rename there,
 * the old passport goes first and the new one comes last: at every moment in between there is no passport, so nothing is used.
 * Throws TF_WRITE_FAILED.
 */
export async function publishEngine(
  pendingPath: string,
  passport: Passport,
  planPath: string,
  staged: string = besidePath(planPath),
): Promise<void> {
  const stagedPassport = passportPath(staged);
  try {
    makeFolder(dirname(planPath));
    // A file system that does not rename over a file may refuse this too.
    if (staged !== pendingPath) await carry(pendingPath, staged);
    // Through no link, and in place of what a proof of the pending engine has left.
    rmSync(stagedPassport, { force: true });
    writeFileSync(stagedPassport, passportText(passport), { flag: 'wx' });
    syncFile(stagedPassport);
    syncFile(staged);
    assertMayReplace(planPath, staged);
    rmSync(passportPath(planPath), { force: true });
    moveInto(staged, planPath);
    moveInto(stagedPassport, passportPath(planPath));
    syncFolder(dirname(planPath));
  } catch (cause) {
    throw writeFailed(planPath, cause);
  } finally {
    for (const path of [staged, stagedPassport]) removeIfAllowed(path);
  }
}

/** The same for an engine with its signature, which comes last; null takes away what an older engine had. */
export async function moveEngine(
  { planPath: pendingPath, passport, signature }: Pick<StoredEngine, 'planPath' | 'passport' | 'signature'>,
  planPath: string,
): Promise<void> {
  writeSignature(planPath, null);
  await publishEngine(pendingPath, passport, planPath);
  writeSignature(planPath, signature);
}

/**
 * Copies an engine (as a reflink where the file system can) to a place of the user's. Where signatures are required the copy is checked, not the
 * store's file: others may have changed that since. Throws TF_WRITE_FAILED, TF_ENGINE_*; nothing half-written stays.
 */
export async function copyEngine(
  { planPath: source, passport, signature }: Pick<StoredEngine, 'planPath' | 'passport' | 'signature'>,
  planPath: string,
  trust: Trust,
): Promise<void> {
  const pending = besidePath(planPath);
  try {
    makeFolder(dirname(planPath));
    copyFileSync(source, pending, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    if (trust.required) {
      const { checkPlan } = await import('../plan/verify-engine.js');
      await checkPlan(source, passport, pending);
    }
    await moveEngine({ planPath: pending, passport, signature }, planPath);
  } catch (cause) {
    throw writeFailed(planPath, cause);
  } finally {
    removeIfAllowed(pending);
  }
}

/** The known answer in one line: it is a thousand numbers. */
export function passportText({ knownAnswer, ...rest }: Passport): string {
  const text = JSON.stringify(rest, null, 2);
  return knownAnswer === undefined
    ? `${text}\n`
    : `${text.slice(0, -2)},\n  "knownAnswer": ${JSON.stringify(knownAnswer)}\n}\n`;
}

function syncFile(path: string): void {
  const descriptor = openSync(path, 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
