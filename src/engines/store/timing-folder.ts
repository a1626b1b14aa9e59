import { lutimesSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readWhole } from '../../base/files/byte-source.js';
import { sha256 as digestOf } from '../../base/files/digest.js';
import { ownEntries, readText, removeIfThere, statIfThere } from '../../base/files/files.js';
import { pathBelow } from '../../base/files/folders.js';
import { publishFile } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import type { Evictable } from './eviction.js';

/** Of one timing cache. ResNet-50's has 0.8 MB, with that of a transformer, which holds compiled kernels, 9 MB (TensorRT 10.6): some thirty such pairs. */
export const LARGEST_TIMING_CACHE = 256 << 20;

/** Real descriptions have 600 bytes. */
export const LARGEST_DESCRIPTION = 1 << 14;

/** What the description of a timing cache states of its file. */
interface TimingFacts {
  readonly bytes: number;
  readonly sha256: string;
}

/** The file of a timing cache by its scope and SHA-256. Its description, `.json` behind, is written last and removed first. */
export const timingName = (scope: string, sha256: string): string => `${scope}/${sha256}.timing`;

/** Timing caches in a folder or a bucket, by names as `timingName` makes them. */
export type TimingFiles = Pick<TimingFolder, 'place' | 'list' | 'text' | 'fetch' | 'put' | 'remove'>;

const ROOM = 'timing';

/** The timing caches of a store as eviction sees them; none where their folder cannot be read, and why. In a bucket the time of use is when one was put there. */
export async function evictableTimings(
  files: TimingFiles,
  signal?: AbortSignal,
): Promise<{ readonly timings: readonly Evictable[]; readonly fault: TrtforgeError | null }> {
  try {
    const found = (await files.list(undefined, signal)).filter(({ name }) => name.endsWith('.timing'));
    const timings = found.map(({ name, bytes, modified }) => ({
      identity: `${ROOM}/${name}`,
      bytes,
      lastUsed: modified,
      held: false,
    }));
    return { timings, fault: null };
  } catch (error) {
    // What stands in their place concerns no engine.
    if (error instanceof TrtforgeError && error.code === 'TF_FILE_UNREADABLE')
      return { timings: [], fault: error };
    throw error;
  }
}

/** The name of an evictable that is a timing cache; undefined for an engine's identity. */
export const evictedTiming = (identity: string): string | undefined =>
  identity.startsWith(`${ROOM}/`) ? identity.slice(ROOM.length + 1) : undefined;

/** Those of a folder; also the marks of those that may not be used again. */
export class TimingFolder {
  constructor(readonly place: string) {}

  /** Those of a scope, or all, with their descriptions and marks; `modified` in milliseconds since 1970. */
  async list(scope?: string, _signal?: AbortSignal) {
    const scopes = ownEntries(pathBelow(this.place, ROOM), 'folders', /^[\w.+-]+$/);
    return scopes
      .filter(({ path }) => scope === undefined || basename(path) === scope)
      .flatMap(({ path }) => ownEntries(path, 'files', /^[0-9a-f]{64}\.timing(\.json|\.rejected)?$/))
      .map(({ path, mtimeMs }) => ({
        name: path.slice(join(this.place, ROOM).length + 1),
        bytes: statIfThere(path)?.size ?? 0,
        modified: mtimeMs,
      }));
  }

  /** A description; undefined where another build has removed it. */
  async text(name: string, _signal?: AbortSignal) {
    return unlessGone(() =>
      readText(`${this.#path(name)}.json`, LARGEST_DESCRIPTION, 'TF_TIMING_CACHE_INVALID'),
    );
  }

  /** Copies one to `path` and checks it; false where it is gone. Throws TF_TIMING_CACHE_INVALID, TF_WRITE_FAILED; from a bucket TF_REMOTE_*. */
  async fetch(name: string, { sha256 }: TimingFacts, path: string, _work: WorkContext) {
    const from = this.#path(name);
    const body = unlessGone(() => readWhole(from, LARGEST_TIMING_CACHE, 'TF_TIMING_CACHE_INVALID'));
    if (body === undefined) return false;
    if (digestOf(body) !== sha256)
      throw new TrtforgeError('TF_TIMING_CACHE_INVALID', `${from} was changed after it was written.`);
    publishFile(path, body);
    try {
      lutimesSync(from, new Date(), new Date());
    } catch {
      // Another user's: the time of use decides what goes first, nothing else.
    }
    return true;
  }

  /** Puts the content of the file at `path` there, and a description. */
  async put(name: string, path: string, description: string, _work: WorkContext) {
    publishFile(this.#path(name), readFileSync(path));
    publishFile(`${this.#path(name)}.json`, description);
  }

  async remove(name: string, _signal?: AbortSignal) {
    for (const path of [`${this.#path(name)}.json`, this.#path(name)]) removeIfThere(path);
  }

  /** Removes one, and marks it so that it is not used again, wherever it comes from. Throws TF_WRITE_FAILED. */
  async reject(name: string) {
    publishFile(`${this.#path(name)}.rejected`, '');
    await this.remove(name);
  }

  /** Leads through folders alone. Throws TF_FILE_UNREADABLE. */
  #path(name: string): string {
    const [scope = '', file = ''] = name.split('/');
    return join(pathBelow(this.place, ROOM, scope), file);
  }
}

function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof TrtforgeError && error.code === 'TF_FILE_NOT_FOUND') return undefined;
    throw error;
  }
}
