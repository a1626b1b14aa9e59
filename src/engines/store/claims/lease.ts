import { rmdirSync, unlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { removeIfAllowed } from '../../../base/files/files.js';
import { makeFolder, pathBelow } from '../../../base/files/folders.js';
import { writeFailed } from '../../../base/files/publish.js';
import { sleep } from '../../../base/process/cancel.js';
import { systemErrorCode } from '../../../errors.js';
import { inPhase, type WorkContext } from '../../../events.js';
import { beat, type Claim, createClaim, describeOwner, HeartbeatWatch, readClaim, stateOf } from './claim.js';

/** The right to build one identity. Held by one process at a time; lost to others when its heartbeat stops. */
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

export type Attempt<L = Lease> =
  | { readonly lease: L }
  /** `holder` names the process that has it: `process 1234 on host`. */
  | { readonly lease: null; readonly holder: string };

/**
 * One builder per identity among any number of processes and machines that share a folder, without flock, which network file systems do not
 * keep: `NAME.lease` is a claim, created only when it is not there. A holder of this machine is dead when its process is, any other when its
 * file stood still for `expiryMs` by the watcher's own clock; its file is removed, and the name is free.
 *
 * Leases save work, they do not guard correctness: should two builders ever run at once, each publishes a whole engine and the last one stays.
 */
export class LeaseFolder {
  readonly #folder: string;
  readonly #heartbeatMs: number;
  readonly #watch: HeartbeatWatch;

  constructor(folder: string, timing: LeaseTiming = defaultTiming) {
    this.#folder = folder;
    this.#heartbeatMs = timing.heartbeatMs;
    this.#watch = new HeartbeatWatch(timing.expiryMs);
  }

  /** Takes the lease of `name` if nobody alive holds it. Call again after a while to wait. Throws TF_WRITE_FAILED where the folder cannot be written. */
  tryAcquire(name: string): Attempt {
    const path = this.#path(name);
    const there = readClaim(path, 'build');
    if (isClaim(there) && !this.#isDead(there)) return { lease: null, holder: describeOwner(there.owner) };
    try {
      makeFolder(pathBelow(dirname(this.#folder), basename(this.#folder)));
      // An entry that may not be removed (another user's in a folder with the sticky bit, a folder with content) must not stop builds for ever.
      if (there !== undefined && !this.#removeDead(path, there)) return { lease: { release: () => {} } };
      const token = createClaim(path, 'build');
      return token === undefined
        ? { lease: null, holder: 'another process' }
        : { lease: this.#hold(path, token) };
    } catch (cause) {
      throw writeFailed(path, cause);
    }
  }

  /** Who holds the lease of `name`, if anyone alive does. */
  holder(name: string): string | undefined {
    const claim = readClaim(this.#path(name), 'build');
    return !isClaim(claim) || this.#isDead(claim) ? undefined : describeOwner(claim.owner);
  }

  #path(name: string): string {
    return join(this.#folder, `${name}.lease`);
  }

  #isDead({ path, owner, beat }: Claim): boolean {
    return (owner !== null && stateOf(owner) === 'dead') || this.#watch.hasStopped(path, beat);
  }

  /** False where it cannot be removed. Looked at once more right before: another process may have removed it and taken its place. */
  #removeDead(path: string, dead: Claim | 'odd'): boolean {
    const now = readClaim(path, 'build');
    if (now === undefined) return true;
    const isSame = dead === 'odd' ? now === 'odd' : isClaim(now) && now.beat === dead.beat;
    return !isSame || removeEntry(path);
  }

  #hold(path: string, token: string): Lease {
    const timer = setInterval(() => beat(path), this.#heartbeatMs);
    timer.unref();
    return {
      release: () => {
        clearInterval(timer);
        const claim = readClaim(path, 'build');
        if (isClaim(claim) && claim.token === token) removeIfAllowed(path);
      },
    };
  }
}

/**
 * Waits until `take` gets the turn, or finds an engine; each time it does not, it names who builds. Pauses grow from the first of `pauses` to the second.
 * Throws what `take` throws, TF_CANCELLED.
 */
export async function waitForTurn<T>(
  take: () => Promise<{ readonly turn: T } | { readonly holder: string }>,
  [first, longest]: readonly [number, number],
  { emit, signal }: WorkContext,
): Promise<T> {
  let taken = await take();
  if ('turn' in taken) return taken.turn;
  const wait = async () => {
    for (let pause = first; ; pause = Math.min(pause * 1.5, longest)) {
      if ('turn' in taken) return taken.turn;
      await sleep(pause, signal, `waiting for ${taken.holder}, which builds the same engine`);
      taken = await take();
    }
  };
  return inPhase('wait', emit, wait, `${taken.holder} builds the same engine`);
}

const isClaim = (found: Claim | 'odd' | undefined): found is Claim => found !== undefined && found !== 'odd';

/** Removes a file, a link or an empty folder, and nothing below it: others may have put it there. */
function removeEntry(path: string): boolean {
  return [unlinkSync, rmdirSync].some((remove) => {
    try {
      remove(path);
      return true;
    } catch (error) {
      return systemErrorCode(error) === 'ENOENT';
    }
  });
}
