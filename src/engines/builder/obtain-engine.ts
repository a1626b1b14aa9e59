import { basename, dirname, join } from 'node:path';
import { cacheFolder, isPrivate } from '../../base/files/folders.js';
import { assertNotInput } from '../../base/files/user-files.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import { type Exporter, flatExporter, writeExport } from '../exports/exporter.js';
import { passportPath } from '../identity/engine-name.js';
import { identityDigest } from '../identity/identity.js';
import type { Passport } from '../identity/passport.js';
import { isRefittable, type Skeleton } from '../plan/refit.js';
import { releaseUse } from '../store/claims/in-use.js';
import { type Lease, waitForTurn } from '../store/claims/lease.js';
import type { LocalStore } from '../store/local.js';
import { lookUpLocally, RemoteSource } from '../store/lookup.js';
import type { EngineStores } from '../store/open-stores.js';
import { type PendingFolder, preparePending } from '../store/pending.js';
import type { StoredEngine } from '../store/store.js';
import { TimingFolder } from '../store/timing-folder.js';
import { assertSigns, signatureFor } from '../store/trust.js';
import { type Miss, plainMiss } from '../store/why.js';
import { assertGpuToBuild } from './buildable.js';
import {
  type BuildSeams,
  type PlanBuilder,
  type ResolvedBuild,
  type UnansweredEngine,
  wrongAnswer,
} from './options.js';
import type { ObtainedEngine } from './result.js';
import { sharingTimingCaches } from './shared-timing-caches.js';

/** The right to build, or what another process built while this one waited for it. */
type Turn = { readonly lease: Lease } | { readonly engine: StoredEngine };

/** A folder, and the layout of what is put there. */
interface Destination {
  readonly folder: string;
  readonly exporter: Exporter;
}

const planAt = (path: string): Exporter => ({
  id: 'plan',
  files: (engines) => engines.map((engine) => ({ path, engine })),
});

/** Interval at which a waiting process checks whether the engine is there or the builder gone; grows from the first to the second. */
const POLL_MS = [50, 500] as const;

/**
 * The engine of a build: from the stores when it is there and passes its checks, else built once, however many processes ask, and kept.
 * Errors: those of `buildEngine`; TF_ENGINE_WRONG_ANSWER; TF_OUTPUT_IS_INPUT and TF_STORE_UNWRITABLE before any work when the engine would have no place; TF_WRITE_FAILED; TF_CANCELLED.
 */
export async function obtainEngine(
  build: ResolvedBuild,
  stores: EngineStores,
  context: BuildSeams,
): Promise<ObtainedEngine> {
  return new ObtainRun(build, stores, context).go();
}

class ObtainRun {
  readonly #build: ResolvedBuild;
  readonly #stores: EngineStores;
  readonly #context: BuildSeams;
  readonly #identity: string;
  /** Where the user wants the engine; undefined leaves it in the store. */
  readonly #place: Destination | undefined;
  readonly #why: Miss[] = [];
  readonly #warnings: string[] = [];
  #rule = 'exact';
  #unanswered = 'none was requested';
  #wrong: string | null = null;
  readonly #timings = { lookupMs: 0, waitMs: 0, remoteMs: 0, buildMs: 0, keepMs: 0, uploadMs: 0 };

  constructor(build: ResolvedBuild, stores: EngineStores, context: BuildSeams) {
    const { output } = build;
    if (output !== null)
      this.#place =
        context.exporter === undefined
          ? { folder: dirname(output), exporter: planAt(basename(output)) }
          : { folder: output, exporter: context.exporter };
    // A signed engine is made only of files that nobody else could change.
    const isTaken =
      stores.trust.signingKey === null || build.converted === undefined || isPrivate(build.converted.output);
    this.#build = isTaken ? build : { ...build, converted: undefined };
    this.#stores = stores;
    this.#context = context;
    this.#identity = identityDigest(build.identity);
    if (stores.noRemote != null) this.#warnings.push(stores.noRemote);
  }

  async go(): Promise<ObtainedEngine> {
    const { output, timingCache } = this.#build;
    const { store } = this.#stores;
    for (const path of [output, output && passportPath(output), timingCache])
      if (path !== null) assertNotInput(path);
    const hit = await this.#timed('lookupMs', () => this.#lookUp());
    if (hit !== undefined) {
      const kept = await this.#kept(hit);
      if (this.#wrong === null) await this.#share(kept);
      return this.#finish(kept, 'local');
    }
    if (store === null) return this.#buildWithout(this.#place ?? { folder: '.', exporter: flatExporter });
    const problem = store.whyUnwritable(this.#identity);
    if (problem === undefined) return this.#buildIn(store);
    if (this.#place === undefined) throw problem;
    this.#warnings.push(`${problem.message} The engine is kept in ${output} only.`);
    return this.#buildWithout(this.#place);
  }

  async #lookUp(): Promise<StoredEngine | undefined> {
    const { forceRebuild } = this.#build;
    if (forceRebuild || this.#stores.store === null) {
      this.#why.push(plainMiss('local', null, `skipped: ${forceRebuild ? '--force-rebuild' : '--no-cache'}`));
      return undefined;
    }
    const { hit, why } = await lookUpLocally(this.#stores, this.#build, this.#context.emit);
    this.#why.push(...why);
    this.#rule = hit?.rule ?? this.#rule;
    return hit?.engine;
  }

  /** An engine that is here goes into the bucket that the caller named; what reads one of the environment writes nothing. */
  async #share({ planPath, passport, signature }: StoredEngine): Promise<void> {
    const { remote, isRemoteRequested } = this.#stores;
    if (remote === null || isRemoteRequested !== true) return;
    const source = new RemoteSource(remote, this.#context);
    await this.#timed('uploadMs', () => source.keepMissing(planPath, passport, signature));
    this.#warnings.push(...source.warnings);
  }

  async #buildIn(store: LocalStore): Promise<ObtainedEngine> {
    const take = () => this.#takeTurn(store);
    const turn = await this.#timed('waitMs', () => waitForTurn(take, POLL_MS, this.#context));
    if ('engine' in turn) return this.#finish(await this.#kept(turn.engine), 'local');
    try {
      const pending = store.pending();
      try {
        return await this.#make(pending, async (engine, source) => {
          // A wrong one is in no store: it goes where the user wants it, for the search of the cause.
          if (this.#wrong !== null && source === 'built') return this.#finish(engine, source);
          const { planPath, passport, signature } = engine;
          const kept = await this.#timed('keepMs', () => store.put(planPath, passport, signature));
          await this.#makeRoom(store);
          return this.#finish(kept, source);
        });
      } finally {
        pending.remove();
      }
    } finally {
      turn.lease.release();
    }
  }

  /** The lease to build, or the engine that another process built meanwhile. */
  async #takeTurn(store: LocalStore): Promise<{ readonly turn: Turn } | { readonly holder: string }> {
    const attempt = store.leases.tryAcquire(this.#identity);
    try {
      // Also with the lease acquired: its last holder may have finished between our look and our turn.
      const answer = this.#build.forceRebuild ? undefined : await store.get(this.#identity);
      if (answer?.found) {
        attempt.lease?.release();
        return { turn: { engine: answer.engine } };
      }
    } catch (error) {
      attempt.lease?.release();
      throw error;
    }
    return attempt.lease === null ? { holder: attempt.holder } : { turn: { lease: attempt.lease } };
  }

  /** Keeps the store within its limit; an engine is never lost for it, so what does not work is a warning. */
  async #makeRoom(store: LocalStore): Promise<void> {
    const { maxBytes } = this.#stores;
    if (maxBytes === null) return;
    try {
      const { excessBytes } = await this.#timed('keepMs', () => store.evict(maxBytes));
      if (excessBytes === 0) return;
      this.#warnings.push(
        `${store.place} is ${excessBytes} bytes over its limit: all that is left is in use.`,
      );
    } catch (error) {
      if (!(error instanceof TrtforgeError)) throw error;
      this.#warnings.push(error.message);
    }
  }

  async #buildWithout(place: Destination): Promise<ObtainedEngine> {
    const pending = preparePending(place.folder, this.#stores.trust);
    try {
      return await this.#make(pending, async (engine, source) =>
        this.#result(await this.#put(engine, place, true), source),
      );
    } finally {
      pending.remove();
    }
  }

  /** From the remote store when it has the engine, else built, kept by `keep`, and given to the remote store. */
  async #make(
    pending: PendingFolder,
    keep: (engine: StoredEngine, source: ObtainedEngine['source']) => Promise<ObtainedEngine>,
  ): Promise<ObtainedEngine> {
    const { forceRebuild, identity } = this.#build;
    const { remote } = this.#stores;
    if (remote === null) return keep(await this.#buildNow(pending), 'built');
    const source = new RemoteSource(remote, this.#context);
    try {
      const fetched = await this.#timed('remoteMs', () =>
        forceRebuild ? source.skip(this.#identity) : source.fetch(identity, pending),
      );
      if (fetched !== undefined) {
        this.#rule = fetched.rule;
        return await keep(await this.#found(this.#pendingEngine(pending, fetched.engine)), 'remote');
      }
      this.#why.push(...source.misses);
      const made = await this.#buildNow(pending, source);
      const obtained = await keep(made, 'built');
      if (this.#wrong !== null) return obtained;
      await this.#timed('uploadMs', () => source.keep(obtained.engine, made.passport, made.signature));
      return obtained;
    } finally {
      await source.release();
      this.#warnings.push(...source.warnings);
    }
  }

  async #buildNow(pending: PendingFolder, source?: RemoteSource): Promise<StoredEngine> {
    throwIfCancelled(this.#context.signal, `building ${this.#build.modelPath}`);
    const { store, trust } = this.#stores;
    if (this.#context.build === undefined) assertGpuToBuild(this.#build);
    assertSigns(trust, store?.place ?? this.#build.output ?? '.');
    const passport = await this.#timed('buildMs', async () => {
      const skeletons = await this.#skeletons();
      // Loaded only now: a hit needs neither the converter nor the builder.
      const { namedBuilder } = await import('./build-engine.js');
      const build = this.#sharing(this.#context.build ?? namedBuilder, source);
      if (skeletons.length > 0) {
        const { refitOrBuild } = await import('./refit-candidates.js');
        try {
          return await this.#built(pending, { ...this.#context, build: refitOrBuild(skeletons, build) });
        } catch (error) {
          if (!(error instanceof TrtforgeError) || error.code !== 'TF_REFIT_FAILED') throw error;
          this.#warnings.push(`${error.message} It was built instead.`);
        }
      }
      return this.#built(pending, { ...this.#context, build });
    });
    return this.#pendingEngine(pending, { passport, signature: signatureFor(trust, passport) });
  }

  /** The builder, with the timing caches of the stores where the build names no file for its own. */
  #sharing(builder: PlanBuilder, source: RemoteSource | undefined): PlanBuilder {
    return async (build, files, context) => {
      if (build.timingScope === null) return builder(build, files, context);
      const { TimingCaches } = await import('../store/timing-caches.js');
      const { store, trust } = this.#stores;
      const caches = new TimingCaches({
        scope: build.timingScope,
        folder: dirname(files.planPath),
        local: store?.timing ?? new TimingFolder(cacheFolder(this.#context.environment)),
        remote: source?.timing ?? null,
        trust,
        work: context,
      });
      try {
        return await sharingTimingCaches(builder, caches)(build, files, context);
      } finally {
        this.#warnings.push(...caches.warnings);
      }
    };
  }

  /** Engines that may be refitted in place of a build; none where another builder is chosen, or the build is requested. */
  async #skeletons(): Promise<readonly Skeleton[]> {
    const { forceRebuild, identity } = this.#build;
    const isChosen = this.#context.build !== undefined || forceRebuild;
    if (isChosen || !isRefittable(identity.recipe)) return [];
    const { skeletonsFor } = await import('./refit-candidates.js');
    return skeletonsFor(this.#stores, this.#build);
  }

  async #built(pending: PendingFolder, context: BuildSeams): Promise<Passport> {
    const { buildEngine } = await import('./build-engine.js');
    const { modelPath, conversion, converted } = this.#build;
    const typed = conversion === null ? modelPath : pending.modelPath;
    const passport = await buildEngine(this.#build, pending, context);
    const { planPath } = pending;
    return this.#answered({ modelPath: converted?.output ?? typed, planPath, passport, isFound: false });
  }

  /** The passport with what the engine proves itself by, where it has none and that can be made. */
  async #answered(engine: UnansweredEngine): Promise<Passport> {
    const { answer } = this.#context;
    const { passport } = engine;
    if (passport.knownAnswer !== undefined || answer === undefined) return passport;
    const made = await answer(this.#build, engine, this.#context);
    if (typeof made === 'string') this.#unanswered = made;
    if (typeof made === 'string') return passport;
    const { answer: knownAnswer, wrong } = made;
    if (wrong !== null) this.#takeWrong(wrong, engine);
    // With an answer in its passport an engine of a store would pass the next time.
    if (wrong !== null && engine.isFound) return passport;
    return { ...passport, knownAnswer };
  }

  /** An engine that does not give its known answer is a result only where the caller judges it, and where it has a place. Throws TF_ENGINE_WRONG_ANSWER. */
  #takeWrong(reason: string, engine: UnansweredEngine): void {
    const error = wrongAnswer(engine, reason, this.#build.modelPath);
    const hasPlace = engine.isFound || this.#place !== undefined || this.#stores.store === null;
    if (this.#context.takesWrong !== true || !hasPlace) throw error;
    this.#wrong = reason;
    this.#unanswered = 'it does not give that of its model';
    this.#warnings.push(`${error.message} ${error.remedy}`);
  }

  /** The same of an engine that was found; what is signed needs a key to be signed again. */
  async #found(engine: StoredEngine): Promise<StoredEngine> {
    const { trust } = this.#stores;
    const { planPath, signature } = engine;
    const isSealed = signature !== null && trust.signingKey === null;
    if (isSealed) this.#unanswered = 'it is signed, and no key is here that signs it with one';
    if (isSealed) return engine;
    const { modelPath } = this.#build;
    const passport = await this.#answered({ ...engine, modelPath, planPath, isFound: true });
    return passport === engine.passport
      ? engine
      : { ...engine, passport, signature: signature && signatureFor(trust, passport) };
  }

  /** The same of one of this machine's stores, which keeps the passport where it may. */
  async #kept(engine: StoredEngine): Promise<StoredEngine> {
    const found = await this.#found(engine);
    const { store } = this.#stores;
    if (found === engine) return engine;
    try {
      const isOwn = store?.planPath(found.passport.identity.digest) === engine.planPath;
      if (isOwn && (await store.restate(found.passport, found.signature))) return found;
      this.#unanswered = `${engine.planPath} is not this store's own to change`;
    } catch (error) {
      if (!(error instanceof TrtforgeError)) throw error;
      this.#unanswered = error.message;
    }
    // A copy has it all the same.
    return this.#place === undefined ? engine : found;
  }

  #pendingEngine(
    { planPath }: PendingFolder,
    { passport, signature }: Pick<StoredEngine, 'passport' | 'signature'>,
  ): StoredEngine {
    return { identity: this.#identity, planPath, passport, signature, readablePath: null };
  }

  /** Copies the engine where the user wants it. */
  async #finish(engine: StoredEngine, source: ObtainedEngine['source']): Promise<ObtainedEngine> {
    if (this.#place === undefined) return this.#result(engine, source);
    const copy = await this.#put(engine, this.#place, false);
    releaseUse(engine.planPath);
    return this.#result(copy, source);
  }

  async #put(engine: StoredEngine, { folder, exporter }: Destination, move: boolean): Promise<StoredEngine> {
    const { trust } = this.#stores;
    const files = await this.#timed('keepMs', () => writeExport(exporter, [engine], folder, { trust, move }));
    const plan = files.find((file) => 'engine' in file);
    if (plan === undefined)
      throw new TrtforgeError(
        'TF_INTERNAL',
        `The exporter ${exporter.id} writes no engine with its passport.`,
      );
    return { ...engine, planPath: join(folder, plan.path), readablePath: null };
  }

  #result(
    { planPath, passport, readablePath }: Pick<StoredEngine, 'planPath' | 'passport' | 'readablePath'>,
    source: ObtainedEngine['source'],
  ): ObtainedEngine {
    return {
      engine: planPath,
      passportPath: passportPath(planPath),
      passport,
      unanswered: passport.knownAnswer === undefined ? this.#unanswered : null,
      wrongAnswer: this.#wrong,
      identity: passport.identity.digest,
      readablePath,
      source,
      rule: this.#rule,
      why: this.#why,
      timings: this.#timings,
      warnings: this.#warnings,
    };
  }

  async #timed<T>(part: keyof ObtainedEngine['timings'], work: () => Promise<T>): Promise<T> {
    const started = performance.now();
    try {
      return await work();
    } finally {
      this.#timings[part] += performance.now() - started;
    }
  }
}
