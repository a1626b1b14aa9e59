import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listFolder } from '../system/list-folder.js';
import { UNPUBLISHED_SUFFIX, writeFailed } from '../system/publish.js';
import { removeIfThere } from '../system/remove.js';
import { isProcessMark, ownMark, stateOf } from './process-mark.js';

/** A folder of one build in progress: everything in it is unpublished and goes with it. */
export interface PendingFolder {
  readonly folder: string;
  readonly planPath: string;
  /** Where the model goes that a conversion writes before the build. */
  readonly modelPath: string;
  remove(): void;
}

const PREFIX = '.trtforge-';
const OWNER = 'owner.json';

/** Leftovers whose owner cannot be asked (another machine, a damaged file) are removed at this age. */
const STRANGERS_KEEP_MS = 24 * 3600 * 1000;

/** Makes a folder for a build inside `parent`, on the file system where the engine will lie. Throws TF_WRITE_FAILED. */
export function createPending(parent: string): PendingFolder {
  const folder = join(parent, `${PREFIX}${randomUUID()}${UNPUBLISHED_SUFFIX}`);
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, OWNER), JSON.stringify(ownMark()));
  } catch (cause) {
    removeIfThere(folder);
    throw writeFailed(folder, cause);
  }
  return {
    folder,
    planPath: join(folder, 'engine.plan'),
    modelPath: join(folder, 'model.onnx'),
    remove: () => removeIfThere(folder),
  };
}

/** Removes what killed builds left in `parent`. Builds that run, here or on another machine, are left alone. Returns how many went. */
export function sweepPending(parent: string, now = Date.now()): number {
  let removed = 0;
  for (const name of listFolder(parent)) {
    const folder = join(parent, name);
    if (!name.startsWith(PREFIX) || !name.endsWith(UNPUBLISHED_SUFFIX) || !isAbandoned(folder, now)) continue;
    removeIfThere(folder);
    removed++;
  }
  return removed;
}

function isAbandoned(folder: string, now: number): boolean {
  try {
    const owner: unknown = JSON.parse(readFileSync(join(folder, OWNER), 'utf8'));
    if (isProcessMark(owner)) {
      const state = stateOf(owner);
      if (state !== 'unknown') return state === 'dead';
    }
  } catch {
    // No owner yet, or none any more: age decides.
  }
  const stats = statSync(folder, { throwIfNoEntry: false });
  return stats !== undefined && now - stats.mtimeMs > STRANGERS_KEEP_MS;
}
