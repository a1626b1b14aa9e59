import { type ByteSource, closing, openFile } from '../../base/files/byte-source.js';
import { sha256InPieces, sha256OfRange } from '../../base/files/digest.js';
import { TrtforgeError } from '../../errors.js';
import { passportPath } from '../identity/engine-name.js';
import { type Passport, readPassport } from '../identity/passport.js';
import type { Target } from '../identity/target.js';
import { planHeaderOf, versionText } from './header.js';
import { loadsIn } from './loads.js';

/**
 * Checks an engine against its passport: size, header, SHA-256. Returns the passport when all agree.
 * Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_PASSPORT_MISSING, TF_PASSPORT_INVALID, TF_ENGINE_SIZE_MISMATCH, TF_PLAN_INVALID,
 * TF_ENGINE_HEADER_MISMATCH, TF_ENGINE_DIGEST_MISMATCH.
 */
export function verifyEngine(planPath: string): Passport {
  const passport = readPassport(planPath);
  closing(openFile(planPath), (source) => {
    checkPlanFacts(source, passport);
    checkDigest(planPath, passport, sha256OfRange(source));
  });
  return passport;
}

/** The same without holding up the event loop for the seconds that a large plan takes. */
export async function verifyEngineInPieces(planPath: string): Promise<Passport> {
  const passport = readPassport(planPath);
  await checkPlan(planPath, passport);
  return passport;
}

/** Checks the bytes in `bytesPath`, the plan itself or a copy of it, against a passport. Throws as `verifyEngine`. */
export async function checkPlan(
  planPath: string,
  passport: Passport,
  bytesPath: string = planPath,
): Promise<void> {
  await closing({ ...openFile(bytesPath), path: planPath }, async (source) => {
    checkPlanFacts(source, passport);
    checkDigest(planPath, passport, await sha256InPieces(source));
  });
}

/** Size and header, which cost nothing to read. */
function checkPlanFacts(source: ByteSource, passport: Passport): void {
  const { bytes } = passport.plan;
  if (source.size !== bytes) {
    throw new TrtforgeError(
      'TF_ENGINE_SIZE_MISMATCH',
      `${source.path} has ${source.size} bytes, its passport states ${bytes}.`,
      { details: { passport: passportPath(source.path), expected: bytes, actual: source.size } },
    );
  }
  checkPlanHeader(source, passport.identity.document.target);
}

function checkDigest(planPath: string, passport: Passport, actual: string): void {
  const { sha256 } = passport.plan;
  if (actual === sha256) return;
  throw new TrtforgeError(
    'TF_ENGINE_DIGEST_MISMATCH',
    `${planPath} has the SHA-256 ${actual.slice(0, 16)}…, its passport states ${sha256.slice(0, 16)}….`,
    { details: { passport: passportPath(planPath), expected: sha256, actual } },
  );
}

/** Checks the header of a plan file against a passport, as `checkPlanHeader`. */
export function checkPlanHeaderOf(planPath: string, passport: Passport): void {
  closing(openFile(planPath), (source) => {
    checkPlanHeader(source, passport.identity.document.target);
  });
}

/** Throws TF_PLAN_INVALID for what is not a plan and TF_ENGINE_HEADER_MISMATCH for one of another product or version than the target. */
export function checkPlanHeader(source: ByteSource, target: Target): void {
  const header = planHeaderOf(source);
  if (loadsIn(header, target).loads === 'yes') return;
  const [expected, actual] = [target, header].map(
    ({ product, version }) => `${product} ${versionText(version)}`,
  );
  throw new TrtforgeError(
    'TF_ENGINE_HEADER_MISMATCH',
    `${source.path} is a plan of ${actual}, but it should be one of ${expected}.`,
    { details: { expected, actual } },
  );
}
