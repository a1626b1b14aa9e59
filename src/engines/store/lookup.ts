import { TrtforgeError } from '../../errors.js';
import { type EventListener, inPhase, type WorkContext } from '../../events.js';
import { type IdentityDocument, identityDigest } from '../identity/identity.js';
import type { Passport } from '../identity/passport.js';
import { type Attempt, waitForTurn } from './claims/lease.js';
import type { LocalStore } from './local.js';
import { forget } from './partial-downloads.js';
import type { PendingFolder } from './pending.js';
import type { RemoteLease } from './remote/remote-lease.js';
import type { RemoteEngine, RemoteStore } from './remote/remote-store.js';
import type { EngineSignature } from './signature-schema.js';
import type { EngineSource, NotFound, StoredEngine, StoreHit } from './store.js';
import type { TimingFiles } from './timing-folder.js';
import { explainStoreMiss, type Miss, plainMiss, type Wanted } from './why.js';

/** Asks a store for the engine of this very identity, then for one that may serve in its place. */
export async function lookUp<E>(
  source: EngineSource<E>,
  wanted: IdentityDocument,
  signal?: AbortSignal,
): Promise<StoreHit<E> | NotFound> {
  const exact = await source.get(identityDigest(wanted), signal);
  return exact.found ? exact : ((await source.findCompatible(wanted, signal)) ?? exact);
}

/** Asks the local store and then its layers, up to the first that has the engine; `why` has a miss of each before it. */
export async function lookUpLocally(
  { store, layers }: { readonly store: LocalStore | null; readonly layers: readonly LocalStore[] },
  wanted: Wanted,
  emit: EventListener | undefined,
): Promise<{
  readonly hit: (StoreHit<StoredEngine> & { readonly from: string }) | undefined;
  readonly why: Miss[];
}> {
  const why: Miss[] = [];
  const local = store === null ? [] : [['local', store] as const];
  for (const [from, place] of [...local, ...layers.map((layer) => ['layer', layer] as const)]) {
    const answer = await inPhase('lookup', emit, () => lookUp(place, wanted.identity), place.place);
    if (answer.found) return { hit: { ...answer, from }, why };
    why.push(await explainStoreMiss(from, place, wanted, answer));
  }
  return { hit: undefined, why };
}

export const nothingCalled = (place: string, name: string): TrtforgeError =>
  new TrtforgeError('TF_USAGE', `No engine of ${place} has the name "${name}".`, {
    remedy:
      'trtforge cache ls shows names and identities; part of a name or the start of an identity will do.',
  });

/** Interval at which a waiting machine checks whether the engine is there or the builder gone; grows from the first to the second. */
const POLL_MS = [500, 5_000] as const;

/**
 * The remote store as one build asks it: once it fails it is left alone, what failed is remembered as a reason or a warning, and the build
 * goes on. Only a cancellation is thrown.
 */
export class RemoteSource {
  readonly misses: Miss[] = [];
  readonly warnings: string[] = [];
  readonly place: string;
  readonly #store: RemoteStore;
  readonly #options: WorkContext;
  #lease: RemoteLease | undefined;
  #answers = true;
  /** Why nothing is uploaded; null as long as the store takes engines. */
  #whyNoUpload: string | null = null;

  constructor(store: RemoteStore, options: WorkContext) {
    this.#store = store;
    this.#options = options;
    this.place = store.place;
  }

  /** The engine in the pending folder when the bucket has it, or gets it from another machine meanwhile; else undefined, and it is this machine's turn to build. */
  async fetch(wanted: IdentityDocument, pending: PendingFolder): Promise<StoreHit<RemoteEngine> | undefined> {
    const identity = identityDigest(wanted);
    const fetched = await this.#guarded(async () => {
      const there = await this.#find(wanted);
      const found = there ?? (await waitForTurn(() => this.#takeTurn(identity), POLL_MS, this.#options));
      return found === undefined ? undefined : this.#download(found, pending);
    });
    // The build writes its plan there.
    if (fetched === undefined) forget(pending.planPath);
    return fetched;
  }

  /** Its timing caches, as long as no request has failed. */
  get timing(): TimingFiles | null {
    return this.#answers ? this.#store.timing : null;
  }

  /** Takes the turn to build without looking for the engine. */
  async skip(identity: string): Promise<undefined> {
    await this.#guarded(() => this.#acquire(identity));
    return undefined;
  }

  /** Uploads what was built. A failure is a warning: the engine is there, only not for others. */
  async keep(planPath: string, passport: Passport, signature: EngineSignature | null): Promise<void> {
    const { emit } = this.#options;
    const upload = () => this.#store.upload(planPath, passport, signature, this.#options);
    try {
      if (this.#whyNoUpload === null) await inPhase('upload', emit, upload, this.place);
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      this.#whyNoUpload = reasonOf(error);
    }
    if (this.#whyNoUpload !== null)
      this.warnings.push(`The engine is here, and not uploaded to ${this.place}: ${this.#whyNoUpload}`);
  }

  /** Uploads an engine that was found here, where the store has it not. */
  async keepMissing(planPath: string, passport: Passport, signature: EngineSignature | null): Promise<void> {
    const { digest } = passport.identity;
    const there = await this.#guarded(() => this.#store.get(digest, this.#options.signal));
    if (there?.found !== true) await this.keep(planPath, passport, signature);
  }

  async release(): Promise<void> {
    await this.#lease?.release();
    this.#lease = undefined;
  }

  async #find(wanted: IdentityDocument): Promise<StoreHit<RemoteEngine> | undefined> {
    const { emit, signal } = this.#options;
    const answer = await inPhase('lookup', emit, () => lookUp(this.#store, wanted, signal), this.place);
    if (answer.found) return answer;
    this.misses.push(plainMiss('remote', answer.code, answer.reason));
    return undefined;
  }

  async #download(found: StoreHit<RemoteEngine>, pending: PendingFolder): Promise<StoreHit<RemoteEngine>> {
    const { engine } = found;
    pending.takeUp(engine.passport.plan.sha256);
    const work = () => this.#store.download(engine, pending.planPath, this.#options);
    await inPhase('download', this.#options.emit, work, engine.key);
    return found;
  }

  /** The turn to build, as undefined, or what another machine built meanwhile. */
  async #takeTurn(
    identity: string,
  ): Promise<{ readonly turn: StoreHit<RemoteEngine> | undefined } | { readonly holder: string }> {
    const attempt = await this.#acquire(identity);
    if (attempt === undefined) return { turn: undefined };
    // Also with the lease acquired: its last holder may have finished between our look and our turn.
    const answer = await this.#store.get(identity, this.#options.signal);
    if (answer.found) return { turn: answer };
    return attempt.lease === null ? { holder: attempt.holder } : { turn: undefined };
  }

  /** Undefined where leases are impossible: the server ignores conditions, or these credentials may only read. */
  async #acquire(identity: string): Promise<Attempt<RemoteLease> | undefined> {
    const { leases } = this.#store;
    const { signal } = this.#options;
    try {
      if (!(await leases.conditional(signal))) return undefined;
      const attempt = await leases.tryAcquire(identity, signal);
      if (attempt.lease !== null) this.#lease = attempt.lease;
      return attempt;
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code !== 'TF_REMOTE_DENIED') throw error;
      this.#whyNoUpload = 'these credentials may read it, but not write.';
      return undefined;
    }
  }

  async #guarded<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      if (error.code.startsWith('TF_REMOTE_') && error.code !== 'TF_REMOTE_DAMAGED') {
        this.#answers = false;
        this.#whyNoUpload = reasonOf(error);
      }
      this.misses.push(plainMiss('remote', error.code, reasonOf(error)));
      return undefined;
    }
  }
}

const reasonOf = ({ message, remedy }: TrtforgeError): string => `${message} ${remedy}`;
