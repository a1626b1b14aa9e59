import { closeSync, constants, openSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { removeIfAllowed } from '../../../base/files/files.js';
import { writeFailed } from '../../../base/files/publish.js';
import { makeScratch } from '../../../base/files/scratch.js';
import { TrtforgeError } from '../../../errors.js';
import { identitiesOf } from '../../identity/engine-name.js';
import type { Passport } from '../../identity/passport.js';
import { foreignName, type PlanHeader, readPlanHeader } from '../../plan/header.js';
import { type Trust, verifyTrusted } from '../../store/trust.js';

/** A plan that may be passed to TensorRT: with a complete header of its own, and a passport that agrees, or none where none is required. */
export interface PlanFacts {
  readonly path: string;
  readonly header: PlanHeader;
  readonly passport: Passport | null;
}

export interface PlanOnDisk extends PlanFacts, Disposable {
  /** The path for a library: the very bytes that were checked. Until the plan is disposed of. */
  readonly loadPath: string;
}

interface PlanCheck {
  readonly requirePassport: boolean;
  readonly identity?: string | undefined;
  readonly trust: Trust;
}

/**
 * Checks a plan before any library sees it. TensorRT ends the process on a file with a foreign header, so that is always rejected.
 * Where signatures are required a private copy is checked and loaded, since others may change the file in between.
 * Throws what `verifyTrusted` throws (TF_PASSPORT_MISSING only where a passport is required, or an identity), TF_PLAN_INVALID, TF_PLAN_FOREIGN_HEADER, TF_WRITE_FAILED.
 */
export async function readPlanOnDisk(path: string, check: PlanCheck): Promise<PlanOnDisk> {
  const header = readPlanHeader(path);
  if (header.foreignHeader !== null) {
    const { bytes } = header.foreignHeader;
    throw new TrtforgeError(
      'TF_PLAN_FOREIGN_HEADER',
      `${path} begins with ${bytes} bytes of ${foreignName(header.foreignHeader)} in front of the plan; TensorRT would end the process on it.`,
      { remedy: `Write the plan alone: trtforge engine strip-header ${path} -o model.plan` },
    );
  }
  const copy = check.trust.required
    ? await privateCopy(path)
    : { loadPath: path, [Symbol.dispose]: () => {} };
  try {
    return { path, header, passport: await passportOf(path, copy.loadPath, check), ...copy };
  } catch (error) {
    copy[Symbol.dispose]();
    throw error;
  }
}

async function passportOf(
  path: string,
  loadPath: string,
  { requirePassport, identity, trust }: PlanCheck,
): Promise<Passport | null> {
  try {
    return (await verifyTrusted(trust, path, loadPath, identity)).passport;
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code !== 'TF_PASSPORT_MISSING') throw error;
    if (trust.required) {
      const message = `${path} is rejected: it has no passport, and a signature covers the passport.`;
      throw new TrtforgeError('TF_SIGNATURE_INVALID', message, { cause: error });
    }
    if (!requirePassport && identitiesOf(path, identity).length === 0) return null;
    throw error;
  }
}

/** A copy without a name, so that nobody else can open it and a killed process leaves nothing. */
async function privateCopy(path: string): Promise<Pick<PlanOnDisk, 'loadPath' | typeof Symbol.dispose>> {
  const folder = makeScratch('plan');
  const copy = join(folder, 'plan');
  try {
    await copyFile(path, copy, constants.COPYFILE_FICLONE);
    const descriptor = openSync(copy, 'r');
    // Not /proc/self: trtexec opens it from a process of its own.
    return {
      loadPath: `/proc/${process.pid}/fd/${descriptor}`,
      [Symbol.dispose]: () => closeSync(descriptor),
    };
  } catch (cause) {
    throw writeFailed(copy, cause);
  } finally {
    removeIfAllowed(folder);
  }
}
