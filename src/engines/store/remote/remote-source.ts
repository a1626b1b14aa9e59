import { sleep } from '../../../base/process/cancel.js';
import { type ErrorCode, TrtforgeError } from '../../../errors.js';
import { type EventListener, inPhase } from '../../../events.js';
import { type IdentityDocument, identityDigest } from '../../identity/identity.js';
import type { Passport } from '../../identity/passport-file.js';
import { forget } from '../partial.js';
import type { PendingFolder } from '../pending.js';
import type { EngineSignature } from '../signature-schema.js';
import type { RemoteLease } from './remote-lease.js';
import type { RemoteLookup, RemoteStore } from './remote-store.js';

type Found = Extract<RemoteLookup, { found: true }>;

/** How often a waiting machine looks whether the engine is there or the builder gone; grows from the first to the second. */
const POLL_MS = [500, 5_000] as const;

interface RemoteMiss {
  readonly code: ErrorCode | null;
  readonly reason: string;
}

/** An engine as it came from the bucket, and the rule by which it serves. */
export interface FetchedEngine {
  readonly passport: Passport;
  readonly signature: EngineSignature | null;
  readonly rule: string;
}

interface SourceOptions {
  readonly emit: EventListener;
  readonly signal: AbortSignal | undefined;
}

/**
 * The remote store as one build asks it: once it fails it is left alone, what failed is remembered as a reason or a warning, and the build
 * goes on. Only a cancellation is thrown.
 */
export class RemoteSource {
  readonly misses: RemoteMiss[] = [];
  readonly warnings: string[] = [];
  readonly place: string;
  readonly #store: RemoteStore;
  readonly #options: SourceOptions;
  #lease: RemoteLease | undefined;
  #usable = true;
  #mayWrite = true;

  constructor(store: RemoteStore, options: SourceOptions) {
    this.#store = store;
    this.#options = options;
    this.place = store.place;
  }

  /** The engine in the pending folder when the bucket has it, or gets it from another machine meanwhile; else undefined, and it is this machine's turn to build. */
  async fetch(wanted: IdentityDocument, pending: PendingFolder): Promise<FetchedEngine | undefined> {
    const identity = identityDigest(wanted);
    const fetched = await this.#guarded(async () => {
      const there = (await this.#find(identity)) ?? (await this.#findCompatible(wanted));
      const found = there ?? (await this.#takeTurn(identity));
      return found === undefined ? undefined : this.#download(found, pending);
    });
    // The build writes its plan there.
    if (fetched === undefined) forget(pending.planPath);
    return fetched;
  }

  /** Takes the turn to build without looking for the engine: it is to be built again in any case. */
  async skip(identity: string): Promise<undefined> {
    await this.#guarded(async () => {
      const attempt = await this.#attempt(identity);
      if (attempt !== undefined && attempt.lease !== null) this.#lease = attempt.lease;
    });
    return undefined;
  }

  /** Uploads what was built. A failure is a warning: the engine is there, only not for others. */
  async keep(planPath: string, passport: Passport, signature: EngineSignature | null): Promise<void> {
    const { emit } = this.#options;
    if (!this.#usable || !this.#mayWrite) return;
    const upload = () => this.#store.upload(planPath, passport, signature, this.#options);
    try {
      await inPhase('upload', emit, upload, this.place);
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      this.warnings.push(
        `The engine was built and kept here, but not given to ${this.place}: ${error.message} ${error.remedy}`,
      );
    }
  }

  async release(): Promise<void> {
    await this.#lease?.release();
    this.#lease = undefined;
  }

  async #find(identity: string): Promise<Found | undefined> {
    const { emit, signal } = this.#options;
    const answer = await inPhase('lookup', emit, () => this.#store.find(identity, signal), this.place);
    if (answer.found) return answer;
    this.misses.push({ code: answer.code, reason: answer.reason });
    return undefined;
  }

  async #findCompatible(wanted: IdentityDocument): Promise<Found | undefined> {
    const found = await this.#store.findCompatible(wanted, this.#options.signal);
    if (found !== undefined) this.misses.length = 0;
    return found;
  }

  async #download({ engine, rule }: Found, pending: PendingFolder): Promise<FetchedEngine> {
    const { emit } = this.#options;
    const { key, passport, signature } = engine;
    pending.takeUp(passport.plan.sha256);
    const work = () => this.#store.download(engine, pending.planPath, this.#options);
    await inPhase('download', emit, work, key);
    return { passport, signature, rule };
  }

  /** Becomes the builder (undefined), or gets what another machine built meanwhile. */
  async #takeTurn(identity: string): Promise<Found | undefined> {
    const { emit, signal } = this.#options;
    const first = await this.#attempt(identity);
    if (first === undefined) return undefined;
    if (first.lease !== null) return this.#took(first.lease, identity);
    const wait = async () => {
      let holder = first.holder;
      for (let pause: number = POLL_MS[0]; ; pause = Math.min(pause * 1.5, POLL_MS[1])) {
        await sleep(pause, signal, `waiting for ${holder}, which builds the same engine`);
        const answer = await this.#store.find(identity, signal);
        if (answer.found) return answer;
        const next = await this.#store.leases.tryAcquire(identity, signal);
        if (next.lease !== null) return this.#took(next.lease, identity);
        holder = next.holder;
      }
    };
    return inPhase('wait', emit, wait, `${first.holder} builds the same engine`);
  }

  /** Undefined where nobody can take turns: the server keeps no conditions, or these credentials may only read. */
  async #attempt(identity: string) {
    const { leases } = this.#store;
    const { signal } = this.#options;
    try {
      return (await leases.conditional(signal)) ? await leases.tryAcquire(identity, signal) : undefined;
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code !== 'TF_REMOTE_DENIED') throw error;
      this.#mayWrite = false;
      this.warnings.push(
        `${this.place} may be read with these credentials but not written, so the engine stays on this machine.`,
      );
      return undefined;
    }
  }

  /** The one who had the turn before may have finished between our look and our turn. */
  async #took(lease: RemoteLease, identity: string): Promise<Found | undefined> {
    this.#lease = lease;
    const answer = await this.#store.find(identity, this.#options.signal);
    return answer.found ? answer : undefined;
  }

  async #guarded<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      this.#usable = !error.code.startsWith('TF_REMOTE_') || error.code === 'TF_REMOTE_DAMAGED';
      this.misses.push({ code: error.code, reason: `${error.message} ${error.remedy}` });
      return undefined;
    }
  }
}
