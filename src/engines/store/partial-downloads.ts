import { renameSync } from 'node:fs';
import { join } from 'node:path';
import {
  lstatIfThere,
  ownEntries,
  readJson,
  removeIfAllowed,
  removeIfThere,
} from '../../base/files/files.js';
import { makeFolder } from '../../base/files/folders.js';

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
export function setAside(path: string, partials: string): void {
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
