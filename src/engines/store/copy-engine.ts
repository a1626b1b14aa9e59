import { constants, copyFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { removeIfThere } from '../../base/files/files.js';
import { makeFolder } from '../../base/files/folders.js';
import { besidePath, writeFailed } from '../../base/files/publish.js';
import { passportPath } from '../identity/passport-file.js';
import { publishEngine } from './publish-engine.js';
import { writeSignature } from './signature-file.js';
import type { StoredEngine } from './store.js';
import type { Trust } from './trust.js';

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
    writeSignature(planPath, null);
    publishEngine(pending, passport, planPath);
    writeSignature(planPath, signature);
  } catch (cause) {
    throw writeFailed(planPath, cause);
  } finally {
    removeIfThere(pending);
    removeIfThere(passportPath(pending));
  }
}
