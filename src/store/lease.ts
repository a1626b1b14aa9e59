import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemErrorCode } from '../errors.js';
import { makeFolder } from '../system/folders.js';
import { listFolder } from '../system/list-folder.js';
import { UNPUBLISHED_SUFFIX, writeFailed } from '../system/publish.js';
import { removeIfThere } from '../system/remove.js';
import { isProcessMark, ownMark, type ProcessMark, stateOf } from './process-mark.js';

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

/** A lease file and who holds it. `beat` changes with every heartbeat. */
interface Holder {
  readonly path: string;
  readonly token: string;
  readonly mark: ProcessMark | undefined;
  readonly beat: string;
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
    for (const file of listFolder(this.#folder)) {
      const path = join(this.#folder, file);
      const mtimeMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? now;
      const isRemnant = file.endsWith('.next') || file.endsWith(UNPUBLISHED_SUFFIX);
      if (isRemnant && now - mtimeMs > REMNANTS_KEEP_MS) removeIfThere(path);
    }
  }

  /** The end of the chain of `name`. */
  #holderOf(name: string): Holder | undefined {
    return this.#chain(name).at(-1);
  }

  #chain(name: string): readonly Holder[] {
    const chain: Holder[] = [];
    let next = readHolder(join(this.#folder, rootName(name)));
    while (next !== undefined) {
      chain.push(next);
      next = readHolder(join(this.#folder, nextName(name, next.token)));
    }
    return chain;
  }

  #isDead({ mark, token, beat }: Holder): boolean {
    if (mark !== undefined && stateOf(mark) === 'dead') return true;
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
      makeFolder(this.#folder);
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
        utimesSync(path, new Date(), new Date());
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
        for (const link of chain) rmSync(link.path, { force: true });
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
  try {
    const { mtimeNs, ino } = statSync(path, { bigint: true });
    const text = readFileSync(path, 'utf8');
    const beat = `${mtimeNs} ${ino}`;
    const content = parse(text);
    return content === undefined
      ? { path, token: `unreadable-${ino}`, mark: undefined, beat }
      : { path, beat, ...content };
  } catch (cause) {
    if (['ENOENT', 'ENOTDIR'].includes(systemErrorCode(cause) ?? '')) return undefined;
    throw cause;
  }
}

function parse(text: string): { readonly token: string; readonly mark: ProcessMark } | undefined {
  try {
    const content: unknown = JSON.parse(text);
    if (typeof content !== 'object' || content === null || !('token' in content) || !('mark' in content))
      return undefined;
    const { token, mark } = content;
    if (typeof token !== 'string' || !/^[0-9a-f-]{36}$/.test(token) || !isProcessMark(mark)) return undefined;
    return { token, mark };
  } catch {
    return undefined;
  }
}

const describe = (mark: ProcessMark | undefined): string =>
  mark === undefined ? 'an unknown process' : `process ${mark.pid} on ${mark.host}`;
