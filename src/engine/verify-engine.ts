import { TrtforgeError } from '../errors.js';
import { type ByteSource, openFile } from '../system/byte-source.js';
import { sha256OfRange } from '../system/digest.js';
import { FileMemo, stampOf } from '../system/file-memo.js';
import { type Passport, passportPath, readPassport } from './passport.js';
import { loadsIn, planHeaderOf } from './plan-header.js';
import type { Target } from './target.js';

/** Digests of plans, remembered while their files do not change: a store hit then reads no plan. */
export const planDigests = (folder: string): FileMemo<string> =>
  new FileMemo(folder, (value): value is string => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value));

/**
 * Holds an engine against its passport: size, header, SHA-256. Gives the passport when all agree.
 * Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_PASSPORT_MISSING, TF_PASSPORT_INVALID, TF_ENGINE_SIZE_MISMATCH, TF_PLAN_INVALID,
 * TF_ENGINE_HEADER_MISMATCH, TF_ENGINE_DIGEST_MISMATCH. With `digests` an unchanged file is not read again.
 */
export function verifyEngine(planPath: string, digests?: FileMemo<string>): Passport {
  const passport = readPassport(planPath);
  verifyPlan(planPath, passport, digests);
  return passport;
}

function verifyPlan(planPath: string, passport: Passport, digests: FileMemo<string> | undefined): void {
  const source = openFile(planPath);
  try {
    const { bytes, sha256 } = passport.plan;
    if (source.size !== bytes) {
      throw new TrtforgeError(
        'TF_ENGINE_SIZE_MISMATCH',
        `${planPath} has ${source.size} bytes, its passport says ${bytes}.`,
        { details: { passport: passportPath(planPath), expected: bytes, actual: source.size } },
      );
    }
    checkPlanHeader(source, passport.identity.document.target);
    const actual = digests?.recall(planPath) ?? digestPlan(source, digests);
    if (actual !== sha256) {
      throw new TrtforgeError(
        'TF_ENGINE_DIGEST_MISMATCH',
        `${planPath} has the SHA-256 ${actual.slice(0, 16)}…, its passport says ${sha256.slice(0, 16)}….`,
        { details: { passport: passportPath(planPath), expected: sha256, actual } },
      );
    }
  } finally {
    source.close();
  }
}

function digestPlan(source: ByteSource, digests: FileMemo<string> | undefined): string {
  const stamp = stampOf(source.path);
  const digest = sha256OfRange(source);
  if (stamp !== undefined) digests?.remember(source.path, [stamp], digest);
  return digest;
}

/** Throws TF_PLAN_INVALID for what is no plan and TF_ENGINE_HEADER_MISMATCH for one of another product or version than the target. */
export function checkPlanHeader(source: ByteSource, target: Target): void {
  const header = planHeaderOf(source);
  if (loadsIn(header, target).loads === 'yes') return;
  const [expected, actual] = [target, header].map(
    ({ product, version }) => `${product} ${version ?? 'before 8.6'}`,
  );
  throw new TrtforgeError(
    'TF_ENGINE_HEADER_MISMATCH',
    `${source.path} is a plan of ${actual}, but it should be one of ${expected}.`,
    { details: { expected, actual } },
  );
}
