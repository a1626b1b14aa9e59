import type { Passport } from '../../engine/passport-file.js';
import { type ErrorCode, TrtforgeError } from '../../errors.js';
import { type EventListener, inPhase } from '../../events.js';
import { sleep } from '../../system/cancel.js';
import type { RemoteLease } from './remote-lease.js';
import type { RemoteEngine, RemoteStore } from './remote-store.js';

/** How often a waiting machine looks whether the engine is there or the builder gone; grows from the first to the second. */
const POLL_MS = [500, 5_000] as const;

interface RemoteMiss {
  readonly code: ErrorCode | null;
  readonly reason: string;
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

  constructor(store: RemoteStore, options: SourceOptions) {
    this.#store = store;
    this.#options = options;
    this.place = store.place;
  }

  /** The engine in `planPath` when the bucket has it, or gets it from another machine meanwhile; else undefined, and it is this machine's turn to build. */
  async fetch(identity: string, planPath: string): Promise<Passport | undefined> {
    return this.#guarded('asking', async () => {
      const there = await this.#find(identity);
      if (there !== undefined) return this.#download(there, planPath);
      const meanwhile = await this.#takeTurn(identity);
      return meanwhile === undefined ? undefined : this.#download(meanwhile, planPath);
    });
  }

  /** Takes the turn to build without looking for the engine: it is to be built again in any case. */
  async skip(identity: string): Promise<undefined> {
    this.misses.push({ code: null, reason: 'the engine was to be built again in any case' });
    await this.#guarded('asking', async () => {
      const attempt = await this.#attempt(identity);
      if (attempt !== undefined && attempt.lease !== null) this.#lease = attempt.lease;
    });
    return undefined;
  }

  /** Uploads what was built. A failure is a warning: the engine is there, only not for others. */
  async keep(planPath: string, passport: Passport): Promise<boolean> {
    const { emit } = this.#options;
    const kept = await this.#guarded('uploading the engine to', () =>
      inPhase('upload', emit, () => this.#store.upload(planPath, passport, this.#options), this.place),
    );
    return kept !== undefined;
  }

  async release(): Promise<void> {
    await this.#lease?.release();
    this.#lease = undefined;
  }

  async #find(identity: string): Promise<RemoteEngine | undefined> {
    const { emit, signal } = this.#options;
    const answer = await inPhase('lookup', emit, () => this.#store.find(identity, signal), this.place);
    if (answer.found) return answer.engine;
    this.misses.push({ code: answer.code, reason: answer.reason });
    return undefined;
  }

  #download(engine: RemoteEngine, planPath: string): Promise<Passport> {
    const { emit } = this.#options;
    const work = () => this.#store.download(engine, planPath, this.#options);
    return inPhase('download', emit, work, engine.key).then(() => engine.passport);
  }

  /** Becomes the builder (undefined), or gets what another machine built meanwhile. */
  async #takeTurn(identity: string): Promise<RemoteEngine | undefined> {
    const { emit, signal } = this.#options;
    const first = await this.#attempt(identity);
    if (first === undefined) return undefined;
    if (first.lease !== null) return this.#took(first.lease, identity);
    const wait = async () => {
      let holder = first.holder;
      for (let pause: number = POLL_MS[0]; ; pause = Math.min(pause * 1.5, POLL_MS[1])) {
        await sleep(pause, signal, `waiting for ${holder}, which builds the same engine`);
        const answer = await this.#store.find(identity, signal);
        if (answer.found) return answer.engine;
        const next = await this.#store.leases.tryAcquire(identity, signal);
        if (next.lease !== null) return this.#took(next.lease, identity);
        holder = next.holder;
      }
    };
    return inPhase('wait', emit, wait, `${first.holder} builds the same engine`);
  }

  /** Undefined where the server keeps no conditions, so that nobody can take turns. */
  async #attempt(identity: string) {
    const { leases } = this.#store;
    const { signal } = this.#options;
    return (await leases.conditional(signal)) ? leases.tryAcquire(identity, signal) : undefined;
  }

  /** The one who had the turn before may have finished between our look and our turn. */
  async #took(lease: RemoteLease, identity: string): Promise<RemoteEngine | undefined> {
    this.#lease = lease;
    const answer = await this.#store.find(identity, this.#options.signal);
    return answer.found ? answer.engine : undefined;
  }

  async #guarded<T>(doing: string, work: () => Promise<T>): Promise<T | undefined> {
    if (!this.#usable) return undefined;
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      this.#usable = !error.code.startsWith('TF_REMOTE_') || error.code === 'TF_REMOTE_DAMAGED';
      this.misses.push({ code: error.code, reason: error.message });
      this.warnings.push(
        `${doing[0]?.toUpperCase()}${doing.slice(1)} ${this.place} failed: ${error.message} ${error.remedy}`,
      );
      return undefined;
    }
  }
}
