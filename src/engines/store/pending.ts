import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import {
  lstatIfThere,
  ownEntries,
  readJson,
  removeIfAllowed,
  removeIfThere,
} from '../../base/files/files.js';
import { isPrivate, makeFolder, makePrivate } from '../../base/files/folders.js';
import {
  besidePath,
  carry,
  moveInto,
  syncFolder,
  UNPUBLISHED_SUFFIX,
  writeFailed,
} from '../../base/files/publish.js';
import { assertMayReplace } from '../../base/files/user-files.js';
import { TrtforgeError } from '../../errors.js';
import { passportPath } from '../identity/identity.js';
import type { Passport } from '../identity/passport.js';
import { createClaim, isAbandoned, readClaim } from './claims/claim.js';
import type { StoredEngine } from './store.js';
import { type Trust, writeSignature } from './trust.js';

/** A folder of one build in progress: everything in it is unpublished and goes with it. */
export interface PendingFolder {
  readonly folder: string;
  readonly planPath: string;
  /** Where the model goes that a conversion writes before the build. */
  readonly modelPath: string;
  /** Goes on with a download of this plan that an earlier process did not finish. */
  takeUp(sha256: string): void;
  /** An unfinished download is set aside for the next process, where there is a place for it. */
  remove(): void;
}

const PREFIX = '.trtforge-';
const NAME = /^\.trtforge-[0-9a-f-]{36}\.unpublished$/;
const OWNER = 'owner.json';
const PLAN = 'engine.plan';

/** Makes a folder for a build inside `parent`, on the file system where the engine will lie; `partials` keeps unfinished downloads. Throws TF_WRITE_FAILED. */
export function createPending(parent: string, partials?: string): PendingFolder {
  const folder = join(parent, `${PREFIX}${randomUUID()}${UNPUBLISHED_SUFFIX}`);
  try {
    makePrivate(folder);
    createClaim(join(folder, OWNER), 'pending');
  } catch (cause) {
    removeIfAllowed(folder);
    throw writeFailed(parent, cause);
  }
  const planPath = join(folder, PLAN);
  return {
    folder,
    planPath,
    modelPath: join(folder, 'model.onnx'),
    takeUp: (sha256) => {
      if (partials !== undefined) takeUp(sha256, planPath, partials);
    },
    remove: () => {
      if (partials !== undefined) setAside(planPath, partials);
      // It may hide no error of the work, and a later build sweeps what stays.
      removeIfAllowed(folder);
    },
  };
}

/**
 * A folder for a build that nobody else can change while it runs: in `parent`, or in TMPDIR where other users may write in `parent`; what killed builds
 * left there goes first. Without a key that signs what is built, `parent` has to do where neither is private. Throws TF_WRITE_FAILED.
 */
export function preparePending(parent: string, { signingKey }: Trust, partials?: string): PendingFolder {
  const places = [parent, tmpdir()];
  const place = places.find((each) => isPrivate(each));
  if (place === undefined && signingKey !== null) {
    const remedy = 'Set TMPDIR to a folder of your own: what is built here is signed.';
    const message = `Other users may change what is built in ${places.join(' and ')}.`;
    throw new TrtforgeError('TF_WRITE_FAILED', message, { remedy });
  }
  for (const each of new Set([parent, place ?? parent])) sweepPending(each, partials);
  return createPending(place ?? parent, partials);
}

/**
 * Removes what killed builds left in `parent`; downloads that they did not finish go to `partials`. Builds that run, here or on another
 * machine, are left alone. Returns how many went.
 */
export function sweepPending(parent: string, partials?: string, now = Date.now()): number {
  let removed = 0;
  for (const { path, mtimeMs } of ownEntries(parent, 'folders', NAME)) {
    const owner = join(path, OWNER);
    // Another user's folder cannot be looked into.
    const claim = existsSync(owner) ? readClaim(owner, 'pending') : undefined;
    // No owner yet, or none any more: the folder's age decides.
    if (!isAbandoned(claim === 'odd' ? undefined : claim, mtimeMs, now)) continue;
    if (partials !== undefined) setAside(join(path, PLAN), partials);
    if (removeIfAllowed(path)) removed++;
  }
  return removed;
}

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

/** A download that was cut short and that nobody went on with is removed at this age. */
const KEEP_MS = 24 * 3600 * 1000;

/** The record that a download keeps beside its file while it runs: the complete parts, of one very object. */
interface Ledger {
  /** SHA-256 that the whole file must have. */
  readonly sha256: string;
  readonly etag: string;
  readonly bytes: number;
  /** Numbers of the parts that are there. */
  readonly parts: readonly number[];
}

export const ledgerPath = (path: string): string => `${path}.parts`;

/** The ledger beside a file that is being downloaded; undefined for none, and for one that makes no sense. */
export function readLedger(path: string): Ledger | undefined {
  const value = readJson(ledgerPath(path), 1 << 20);
  return isLedger(value) ? value : undefined;
}

/** Saves what a download has so far, so that the next one of the same plan goes on from there. Does nothing where there is none. */
function setAside(path: string, partials: string): void {
  const ledger = readLedger(path);
  if (ledger === undefined) return;
  const folder = join(partials, ledger.sha256);
  try {
    removeIfThere(folder);
    makeFolder(folder);
    // The ledger comes last: a file without one is not used.
    renameSync(path, join(folder, 'plan'));
    renameSync(ledgerPath(path), ledgerPath(join(folder, 'plan')));
  } catch {
    // Costs a download, nothing else.
  }
}

/** Takes up what an earlier download of the same plan left, for this process alone. */
export function takeUp(sha256: string, path: string, partials: string): void {
  const folder = join(partials, sha256);
  try {
    // The ledger first: of several processes one gets it, and only with it is the file used.
    renameSync(ledgerPath(join(folder, 'plan')), ledgerPath(path));
    renameSync(join(folder, 'plan'), path);
  } catch {
    // Nothing there, or another process was first.
  }
  // The download goes on writing into these: a link leads elsewhere, and another user's file may still be open there.
  if (![path, ledgerPath(path)].every(isOurs)) forget(path);
  removeIfAllowed(folder);
}

function isOurs(path: string): boolean {
  const stats = lstatIfThere(path);
  return (
    stats?.isFile() === true &&
    stats.nlink === 1n &&
    Number(stats.uid) === (process.getuid?.() ?? Number(stats.uid))
  );
}

/** Removes a download that will not be gone on with. */
export function forget(path: string): void {
  removeIfThere(ledgerPath(path));
  removeIfThere(path);
}

export function sweepPartials(partials: string, now = Date.now()): void {
  for (const { path, mtimeMs } of ownEntries(partials, 'folders', /^[0-9a-f]{64}$/))
    if (now - mtimeMs > KEEP_MS) removeIfAllowed(path);
}

function isLedger(value: unknown): value is Ledger {
  if (typeof value !== 'object' || value === null) return false;
  const { sha256, etag, bytes, parts } = value as Partial<Ledger>;
  return (
    typeof sha256 === 'string' &&
    /^[0-9a-f]{64}$/.test(sha256) &&
    typeof etag === 'string' &&
    Number.isSafeInteger(bytes) &&
    Array.isArray(parts) &&
    parts.every((part) => Number.isSafeInteger(part) && part >= 0)
  );
}
