import { randomUUID } from 'node:crypto';
import { parseJson } from '../../../base/files/json.js';
import { TrtforgeError } from '../../../errors.js';
import { describeOwner, HeartbeatWatch, LARGEST_CLAIM, thisProcess } from '../claims/claim.js';
import type { Attempt } from '../claims/lease.js';
import type { Objects } from './objects.js';

/** The right to build one identity, among machines. */
export interface RemoteLease {
  /** Never throws: what cannot be removed expires. */
  release(): Promise<void>;
}

export interface RemoteLeaseTiming {
  readonly heartbeatMs: number;
  /** A holder whose object stood still for so long, by the watcher's own clock, has lost it. */
  readonly expiryMs: number;
}

const defaultTiming: RemoteLeaseTiming = { heartbeatMs: 5_000, expiryMs: 30_000 };

/**
 * One builder per identity among machines that share a bucket, by conditional writes: a lease is an object created only when absent, and
 * taken over only over the very object that stood still. Servers that ignore conditions are found out once per process; there every machine
 * builds for itself, which costs work and harms nothing.
 */
export class RemoteLeases {
  readonly #objects: Objects;
  readonly #prefix: string;
  readonly #heartbeatMs: number;
  readonly #watch: HeartbeatWatch;
  #conditional: Promise<boolean> | undefined;

  constructor(objects: Objects, prefix: string, timing: RemoteLeaseTiming = defaultTiming) {
    this.#objects = objects;
    this.#prefix = prefix;
    this.#heartbeatMs = timing.heartbeatMs;
    this.#watch = new HeartbeatWatch(timing.expiryMs);
  }

  /** Whether the server keeps conditions. Writes and removes one small object to find out, once. */
  conditional(signal?: AbortSignal): Promise<boolean> {
    this.#conditional ??= this.#probe(signal);
    return this.#conditional;
  }

  /** Takes the lease of `name` if nobody alive holds it. Call again after a while to wait. Throws TF_REMOTE_*. */
  async tryAcquire(name: string, signal?: AbortSignal): Promise<Attempt<RemoteLease>> {
    const key = this.#prefix + name;
    const token = randomUUID();
    const body = () =>
      Buffer.from(JSON.stringify({ token, holder: describeOwner(thisProcess()), at: Date.now() }));
    const there = await this.#objects.read(key, signal);
    if (there !== undefined && !this.#watch.hasStopped(key, there.etag))
      return { lease: null, holder: holderOf(there.body) };
    try {
      const only = there === undefined ? 'absent' : { etag: there.etag };
      const etag = await this.#objects.put(key, body(), { only }, signal);
      return { lease: this.#hold(key, etag, body) };
    } catch (error) {
      if (error instanceof TrtforgeError && error.code === 'TF_REMOTE_CONFLICT') {
        return { lease: null, holder: 'another machine' };
      }
      throw error;
    }
  }

  /** Identities that have a lease, alive or not. */
  async names(signal?: AbortSignal): Promise<readonly string[]> {
    const names: string[] = [];
    for await (const { key } of this.#objects.list(this.#prefix, signal))
      names.push(key.slice(this.#prefix.length));
    return names;
  }

  /** Beats until released. A beat that fails because another took over ends it: both build then, and the last one stays. */
  #hold(key: string, first: string, body: () => Buffer): RemoteLease {
    let etag: string | undefined = first;
    let beating = Promise.resolve();
    const beat = async () => {
      if (etag === undefined) return;
      try {
        etag = await this.#objects.put(key, body(), { only: { etag } });
      } catch (error) {
        if (error instanceof TrtforgeError && error.code === 'TF_REMOTE_CONFLICT') etag = undefined;
      }
    };
    const timer = setInterval(() => {
      beating = beating.then(beat);
    }, this.#heartbeatMs);
    timer.unref();
    return {
      release: async () => {
        clearInterval(timer);
        await beating;
        if (etag !== undefined) await this.#objects.remove([key]).catch(() => {});
      },
    };
  }

  async #probe(signal: AbortSignal | undefined): Promise<boolean> {
    const key = `${this.#prefix}.probe-${randomUUID()}`;
    const put = () => this.#objects.put(key, Buffer.from('probe'), { only: 'absent' }, signal);
    await put();
    try {
      await put();
      return false;
    } catch (error) {
      if (error instanceof TrtforgeError && error.code === 'TF_REMOTE_CONFLICT') return true;
      throw error;
    } finally {
      await this.#objects.remove([key], signal);
    }
  }
}

function holderOf(body: Buffer): string {
  try {
    const { holder } = parseJson(body.toString('utf8'), LARGEST_CLAIM, Error) as { holder?: unknown };
    return typeof holder === 'string' ? holder.replace(/[^\w .:-]/g, '').slice(0, 120) : 'another machine';
  } catch {
    return 'another machine';
  }
}
