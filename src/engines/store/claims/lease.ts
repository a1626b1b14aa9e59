import { randomUUID } from 'node:crypto';
import { linkSync, lutimesSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  lstatIfThere,
  ownEntries,
  readJson,
  removeIfAllowed,
  removeIfThere,
} from '../../../base/files/files.js';
import { makeFolder, pathBelow } from '../../../base/files/folders.js';
import { UNPUBLISHED_SUFFIX, writeFailed } from '../../../base/files/publish.js';
import { systemErrorCode } from '../../../errors.js';
import { isProcessMark, ownMark, type ProcessMark, stateOf } from './owner.js';

/** The right to build one identity. Held by one process at a time; lost to others when its heart stops. */
export interface Lease {
  release(): void;
}

export interface LeaseTiming {
  /** A holder touches its file this often. */
  readonly heartbeatMs: number;
  /** A holder that was not seen to touch its file for this long has lost it. */
  readonly expiryMs: number;
}

const defaultTiming: LeaseTiming = { heartbeatMs: 2000, expiryMs: 60_000 };

const REMNANTS_KEEP_MS = 24 * 3600 * 1000;

/** What a killed process leaves: a successor whose chain is gone, or a file that was to become one. */
const REMNANT = /\.(?:[0-9a-f-]{36}|unreadable-\d+)\.next$|^\.[0-9a-f-]{36}\.unpublished$/;

const LARGEST_LEASE = 4096;

/** So many holders of one lease never die one after another before one gives it up. */
const LONGEST_CHAIN = 1000;

/** A lease file and who holds it. `beat` changes with every heartbeat. */
interface Holder {
  readonly path: string;
  readonly token: string;
  readonly mark: ProcessMark | undefined;
  readonly beat: string;
  /** False for a link, a folder or a FIFO, which no process of ours makes: nobody holds those. */
  readonly isFile: boolean;
}

export type Attempt =
  | { readonly lease: Lease }
  /** `holder` says who has it, for people: `process 1234 on host`. */
  | { readonly lease: null; readonly holder: string };

/**
 * One builder per identity among any number of processes and machines that share a folder, without flock, which network file systems do not
 * keep. Built on one atomic step, creating a file by hard link when it is not there yet:
 *
 * - `NAME.lease` is created by the first holder. A holder that died is succeeded in `NAME.TOKEN.next`, TOKEN being that of the dead one, and so
 *   on: the holder is the end of the chain, and since a name can be created once only, each dead holder has one successor.
 * - A holder of this machine is dead when its process is. Any other is when its file stood still for `expiryMs` by the watcher's own clock,
 *   so clocks need not agree.
 *
 * Leases save work, they do not guard correctness: should two builders ever run at once, each publishes a whole engine and the last one stays.
 */
export class LeaseFolder {
  readonly #folder: string;
  readonly #timing: LeaseTiming;
  /** When each holder's heart was last seen to beat, by this process's monotonic clock. */
  readonly #seen = new Map<string, { readonly beat: string; readonly at: number }>();

  constructor(folder: string, timing: LeaseTiming = defaultTiming) {
    this.#folder = folder;
    this.#timing = timing;
  }

  /** Takes the lease of `name` if nobody alive holds it. Call again after a while to wait. Throws TF_WRITE_FAILED where the folder cannot be written. */
  tryAcquire(name: string): Attempt {
    const holder = this.#holderOf(name);
    if (holder !== undefined && !this.#isDead(holder)) return { lease: null, holder: describe(holder.mark) };
    const token = randomUUID();
    const path = join(this.#folder, holder === undefined ? rootName(name) : nextName(name, holder.token));
    if (!this.#create(path, token)) return { lease: null, holder: 'another process' };
    // The dead one's chain may have been cleared away between reading and succeeding it: then this end hangs from nothing.
    if (this.#holderOf(name)?.token !== token) {
      rmSync(path, { force: true });
      return { lease: null, holder: 'another process' };
    }
    return { lease: this.#hold(name, path, token) };
  }

  /** Who holds the lease of `name`, if anyone alive does. */
  holder(name: string): string | undefined {
    const holder = this.#holderOf(name);
    return holder === undefined || this.#isDead(holder) ? undefined : describe(holder.mark);
  }

  /** Removes what processes left that were killed while they took or gave up a lease. Those who live touch their files. */
  sweep(now = Date.now()): void {
    for (const { path, mtimeMs } of ownEntries(this.#ownFolder(), 'files', REMNANT))
      if (now - mtimeMs > REMNANTS_KEEP_MS) removeIfAllowed(path);
  }

  /** The end of the chain of `name`. */
  #holderOf(name: string): Holder | undefined {
    return this.#chain(name).at(-1);
  }

  /** Every token of a chain is another; one that leads back into itself was made by no process of ours, and is removed. Throws TF_WRITE_FAILED. */
  #chain(name: string): readonly Holder[] {
    const chain: Holder[] = [];
    const tokens = new Set<string>();
    let next = readHolder(join(this.#folder, rootName(name)));
    while (next !== undefined) {
      if (tokens.has(next.token) || tokens.size === LONGEST_CHAIN) return this.#broken([...chain, next]);
      chain.push(next);
      tokens.add(next.token);
      next = readHolder(join(this.#folder, nextName(name, next.token)));
    }
    return chain;
  }

  #broken(chain: readonly Holder[]): readonly Holder[] {
    try {
      for (const { path } of chain) rmSync(path, { force: true });
      return [];
    } catch (cause) {
      throw writeFailed(this.#folder, cause);
    }
  }

  /** Throws TF_FILE_UNREADABLE for a link in its place. */
  #ownFolder(): string {
    return pathBelow(dirname(this.#folder), basename(this.#folder));
  }

  #isDead({ mark, token, beat, isFile }: Holder): boolean {
    if (!isFile || (mark !== undefined && stateOf(mark) === 'dead')) return true;
    const now = performance.now();
    const seen = this.#seen.get(token);
    if (seen === undefined || seen.beat !== beat) {
      this.#seen.set(token, { beat, at: now });
      return false;
    }
    return now - seen.at > this.#timing.expiryMs;
  }

  /** Creates a lease file with its content in one step; false when the name is taken. */
  #create(path: string, token: string): boolean {
    const temporary = join(this.#folder, `.${token}${UNPUBLISHED_SUFFIX}`);
    const content = JSON.stringify({ token, mark: ownMark() });
    try {
      makeFolder(this.#ownFolder());
      writeFileSync(temporary, content, { flag: 'wx' });
      linkOrCreate(temporary, path, content);
      return true;
    } catch (cause) {
      if (systemErrorCode(cause) === 'EEXIST') return false;
      throw writeFailed(path, cause);
    } finally {
      removeIfThere(temporary);
    }
  }

  #hold(name: string, path: string, token: string): Lease {
    const beat = () => {
      try {
        lutimesSync(path, new Date(), new Date());
      } catch {
        // The folder was cleared: another process may build the same meanwhile, which costs work and harms nothing.
      }
    };
    const timer = setInterval(beat, this.#timing.heartbeatMs);
    timer.unref();
    return {
      release: () => {
        clearInterval(timer);
        const chain = this.#chain(name);
        if (chain.at(-1)?.token !== token) return;
        // Root first: once it is gone the lease is free, whatever is left of the chain.
        for (const { path: each, isFile } of chain) if (isFile) removeIfAllowed(each);
      },
    };
  }
}

const rootName = (name: string) => `${name}.lease`;
const nextName = (name: string, token: string) => `${name}.${token}.next`;

/** A hard link fails when the name is taken, also on network file systems; where links do not exist, exclusive creation does the same. */
function linkOrCreate(temporary: string, path: string, content: string): void {
  try {
    linkSync(temporary, path);
  } catch (cause) {
    if (!['EPERM', 'ENOTSUP', 'ENOSYS', 'EOPNOTSUPP', 'EMLINK'].includes(systemErrorCode(cause) ?? ''))
      throw cause;
    writeFileSync(path, content, { flag: 'wx' });
  }
}

/** undefined when the file is not there. A file that cannot be understood (cut short by a crash) has a holder that nobody knows and that expires. */
function readHolder(path: string): Holder | undefined {
  const stats = lstatIfThere(path);
  if (stats === undefined) return undefined;
  const beat = `${stats.mtimeNs} ${stats.ino}`;
  const isFile = stats.isFile();
  const content = isFile ? ownerOf(readJson(path, LARGEST_LEASE)) : undefined;
  return { path, token: `unreadable-${stats.ino}`, mark: undefined, beat, isFile, ...content };
}

function ownerOf(content: unknown): { readonly token: string; readonly mark: ProcessMark } | undefined {
  if (typeof content !== 'object' || content === null || !('token' in content) || !('mark' in content))
    return undefined;
  const { token, mark } = content;
  if (typeof token !== 'string' || !/^[0-9a-f-]{36}$/.test(token) || !isProcessMark(mark)) return undefined;
  return { token, mark };
}

const describe = (mark: ProcessMark | undefined): string =>
  mark === undefined ? 'an unknown process' : `process ${mark.pid} on ${mark.host}`;
