import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ownEntries, removeIfAllowed } from '../../base/files/files.js';
import { isPrivate, makePrivate } from '../../base/files/folders.js';
import { UNPUBLISHED_SUFFIX, writeFailed } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import { createClaim, isAbandoned, readClaim } from './claims/claim.js';
import { setAside, takeUp } from './partial-downloads.js';
import type { Trust } from './trust.js';

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
