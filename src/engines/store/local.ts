import { accessSync, constants, existsSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { removalRemedy, removeIfThere, statIfThere } from '../../base/files/files.js';
import { makeFolder, oddPart, pathBelow } from '../../base/files/folders.js';
import { publishFile } from '../../base/files/publish.js';
import { systemErrorCode, TrtforgeError } from '../../errors.js';
import { passportPath } from '../identity/engine-name.js';
import type { IdentityDocument } from '../identity/identity.js';
import type { Passport } from '../identity/passport.js';
import { isInUse, lastUsed, markInUse } from './claims/in-use.js';
import { LeaseFolder } from './claims/lease.js';
import { mayServe, othersMayServe } from './compatibility.js';
import { chooseVictims, type Evictable, type EvictionPlan } from './eviction.js';
import { sweepPartials } from './partial-downloads.js';
import { createPending, type PendingFolder, preparePending, sweepPending } from './pending.js';
import { passportText, publishEngine } from './publish-engine.js';
import { ReadableLinks } from './readable-links.js';
import type { EngineSignature } from './signature-schema.js';
import {
  brokenSummary,
  type EngineSource,
  type EngineSummary,
  type NotFound,
  type StoredEngine,
  type StoreHit,
  summaryOf,
} from './store.js';
import { StoreIndex } from './store-index.js';
import { evictableTimings, evictedTiming, TimingFolder } from './timing-folder.js';
import { noTrust, readSignature, type Trust, VerifiedEngines, writeSignature } from './trust.js';

const PLAN = 'engine.plan';

/**
 * Engines in a folder, by identity:
 *
 *     by-identity/3f/3f2a…/engine.plan, engine.plan.passport.json, engine.plan.signature.json
 *     by-name/resnet50/resnet50_…_sm_89_1.7.1.116.engine   links to the above
 *     timing/tensorrt-10.6.0.26_sm_90_…/                   kernel times that builds leave to later ones
 *     pending/  partial/  leases/                          builds and downloads in progress
 *
 * Any number of processes and machines may share it; a read-only one serves hits.
 */
export class LocalStore implements EngineSource<StoredEngine> {
  readonly place: string;
  readonly leases: LeaseFolder;
  readonly trust: Trust;
  readonly timing: TimingFolder;
  readonly #verified: VerifiedEngines;
  readonly #links: ReadableLinks;
  readonly #index: StoreIndex;

  /** `memoFolder` remembers between runs what was found here; it lies outside the store, which may be read-only or shared. */
  constructor(folder: string, memoFolder: string, trust: Trust = noTrust) {
    this.place = folder;
    this.leases = new LeaseFolder(join(folder, 'leases'));
    this.trust = trust;
    this.timing = new TimingFolder(folder);
    this.#verified = new VerifiedEngines(memoFolder);
    this.#links = new ReadableLinks(join(folder, 'by-name'));
    this.#index = new StoreIndex(join(folder, 'by-identity'), `${memoFolder}-index`, (identity) =>
      this.#summary(identity),
    );
  }

  /** The engine of an identity, checked and marked as in use by this process. */
  async get(identity: string): Promise<StoreHit<StoredEngine> | NotFound> {
    try {
      const planPath = this.#ownPlanPath(identity);
      // First: eviction looks for marks before and after it takes an engine out of its place.
      markInUse(planPath);
      const { passport, signature } = await this.#verified.verify(planPath, this.trust);
      return { found: true, engine: this.#stored(passport, signature), rule: 'exact' };
    } catch (error) {
      if (!(error instanceof TrtforgeError)) throw error;
      const absent = error.code === 'TF_PASSPORT_MISSING' || error.code === 'TF_FILE_NOT_FOUND';
      return absent
        ? { found: false, code: null, reason: `${this.place} has no engine of this identity` }
        : { found: false, code: error.code, reason: error.message };
    }
  }

  /** An engine of another identity that may serve (`mayServe`), the newest first; undefined when none may. */
  async findCompatible(wanted: IdentityDocument): Promise<StoreHit<StoredEngine> | undefined> {
    if (!othersMayServe(wanted)) return undefined;
    for (const { identity } of await this.ofModel(wanted.model)) {
      const passport = await this.passport(identity);
      if (passport === undefined) continue;
      const { serves, rule } = mayServe(wanted, passport.identity.document);
      const answer = serves ? await this.get(identity) : undefined;
      if (answer?.found) return { ...answer, rule };
    }
    return undefined;
  }

  /** Keeps a checked engine, moving the plan out of `pendingPlanPath`. Others may change it from here on: its passport states what it was. Throws TF_WRITE_FAILED. */
  async put(
    pendingPlanPath: string,
    passport: Passport,
    signature: EngineSignature | null = null,
  ): Promise<StoredEngine> {
    const identity = passport.identity.digest;
    const planPath = this.#ownPlanPath(identity);
    for (const path of [planPath, passportPath(planPath)])
      if (statIfThere(path)?.isDirectory() === true) removeIfThere(path);
    writeSignature(planPath, null);
    const room = pathBelow(this.place, 'pending');
    const staged = dirname(dirname(pendingPlanPath)) === room ? undefined : createPending(room);
    try {
      await publishEngine(pendingPlanPath, passport, planPath, staged?.planPath ?? pendingPlanPath);
    } finally {
      staged?.remove();
    }
    this.#links.add(passport, planPath);
    markInUse(planPath);
    return this.sign(passport, signature);
  }

  /** Puts a passport that states more of the same plan in the place of an engine's own; false where others build it just now, or built another. Throws TF_WRITE_FAILED. */
  async restate(passport: Passport, signature: EngineSignature | null): Promise<boolean> {
    const { digest: identity } = passport.identity;
    const { lease } = this.leases.tryAcquire(identity);
    try {
      if (lease === null || (await this.passport(identity))?.plan.sha256 !== passport.plan.sha256)
        return false;
      const planPath = this.#ownPlanPath(identity);
      // At every moment there is either none or the one that fits.
      writeSignature(planPath, null);
      publishFile(passportPath(planPath), passportText(passport));
      this.sign(passport, signature);
      return true;
    } finally {
      lease?.release();
    }
  }

  /** Puts a signature beside an engine, or takes it away. */
  sign(passport: Passport, signature: EngineSignature | null): StoredEngine {
    const identity = passport.identity.digest;
    writeSignature(this.#ownPlanPath(identity), signature);
    this.#index.changed(identity);
    return this.#stored(passport, signature);
  }

  /** The engines that are kept, intact or not, in no order. */
  list(): Promise<readonly EngineSummary[]> {
    return this.#index.engines();
  }

  /** Engines of one model, the newest first. */
  async ofModel(model: string): Promise<readonly EngineSummary[]> {
    const same = (await this.list()).filter((engine) => engine.model === model);
    return same.sort((a, b) => ((a.builtAt ?? '') < (b.builtAt ?? '') ? 1 : -1));
  }

  /** The passport of an engine; undefined when it cannot be read. The plan is not checked. */
  async passport(identity: string): Promise<Passport | undefined> {
    const { readPassport } = await import('../identity/passport.js');
    try {
      return readPassport(this.#ownPlanPath(identity));
    } catch {
      return undefined;
    }
  }

  /** Passport first: what is left after a kill in between is not used. False when there was nothing. */
  async remove(identity: string): Promise<boolean> {
    const planPath = this.planPath(identity);
    const passport = await this.passport(identity);
    const odd = oddPart(this.place, wayTo(identity));
    try {
      if (odd !== undefined) {
        rmSync(odd, { force: true });
        return true;
      }
      const existed = existsSync(dirname(planPath));
      removeIfThere(passportPath(planPath));
      if (passport !== undefined) this.#links.remove(passport, planPath);
      rmSync(dirname(planPath), { recursive: true, force: true });
      return existed;
    } catch (cause) {
      throw unremovable(this.place, cause);
    }
  }

  /** The removals that `evict` would make. */
  async evictionPlan(maxBytes: number): Promise<EvictionPlan> {
    const engines = (await this.list()).flatMap(({ identity }) => this.#evictable(identity) ?? []);
    const { timings } = await evictableTimings(this.timing);
    return chooseVictims([...engines, ...timings], maxBytes);
  }

  /** Removes the engines and timing caches used least recently until the rest fits into `maxBytes`; never one in use. Throws TF_STORE_UNWRITABLE. */
  async evict(maxBytes: number): Promise<EvictionPlan> {
    const plan = await this.evictionPlan(maxBytes);
    const taken: string[] = [];
    const failed: unknown[] = [];
    for (const { identity } of plan.victims) {
      try {
        const timing = evictedTiming(identity);
        if (timing !== undefined) await this.#removeTiming(timing);
        if (timing !== undefined || (await this.#take(identity))) taken.push(identity);
      } catch (error) {
        failed.push(error);
      }
    }
    if (taken.length === 0 && failed.length > 0) throw failed[0];
    const victims = plan.victims.filter(({ identity }) => taken.includes(identity));
    const bytesAfter = plan.bytesBefore - victims.reduce((sum, { bytes }) => sum + bytes, 0);
    return { ...plan, victims, bytesAfter, excessBytes: Math.max(0, bytesAfter - maxBytes) };
  }

  async #removeTiming(name: string): Promise<void> {
    try {
      await this.timing.remove(name);
    } catch (error) {
      throw unremovable(this.place, error instanceof TrtforgeError ? error.cause : error);
    }
  }

  /** Size, last use and locks of an engine; undefined for an entry that cannot be read. */
  #evictable(identity: string): Evictable | undefined {
    try {
      const planPath = this.#ownPlanPath(identity);
      const folder = dirname(planPath);
      const bytes = statIfThere(planPath)?.size ?? 0;
      const held = isInUse(folder);
      return { identity, bytes, lastUsed: lastUsed(folder, PLAN), held };
    } catch {
      return undefined;
    }
  }

  /** Why the engine of an identity cannot be kept here; undefined where it can. */
  whyUnwritable(identity: string): TrtforgeError | undefined {
    try {
      makeFolder(this.place);
      accessSync(this.place, constants.W_OK);
      for (const room of ['pending', 'partial', 'leases']) pathBelow(this.place, room);
      // Of several users each may own folders further in.
      let there = dirname(this.#ownPlanPath(identity));
      while (!existsSync(there)) there = dirname(there);
      accessSync(there, constants.W_OK);
      return undefined;
    } catch (cause) {
      return unwritable(this.place, cause);
    }
  }

  /** A place for a build, as `preparePending`. Throws TF_WRITE_FAILED. */
  pending(): PendingFolder {
    const [parent, partials] = [pathBelow(this.place, 'pending'), pathBelow(this.place, 'partial')];
    sweepPartials(partials);
    return preparePending(parent, this.trust, partials);
  }

  /** Removes every engine, timing cache and leftover; builds in progress keep what they have. Returns the engines removed. */
  async clear(): Promise<number> {
    const engines = await this.list();
    for (const { identity } of engines) await this.remove(identity);
    try {
      sweepPending(pathBelow(this.place, 'pending'));
      for (const room of ['partial', 'timing']) removeIfThere(join(this.place, room));
    } catch (cause) {
      throw unremovable(this.place, cause);
    }
    return engines.length;
  }

  planPath(identity: string): string {
    return join(this.place, ...wayTo(identity), PLAN);
  }

  /** The same where the way there leads through folders alone. Throws TF_FILE_UNREADABLE. */
  #ownPlanPath(identity: string): string {
    return join(pathBelow(this.place, ...wayTo(identity)), PLAN);
  }

  /** Out of its place in one step; put back when somebody began to use it in that moment. */
  async #take(identity: string): Promise<boolean> {
    const folder = dirname(this.#ownPlanPath(identity));
    if (isInUse(folder) || this.leases.holder(identity) !== undefined) return false;
    const passport = await this.passport(identity);
    const pending = this.#aside();
    const away = join(pending.folder, identity);
    try {
      renameSync(folder, away);
      if (isInUse(away) && !existsSync(folder)) {
        renameSync(away, folder);
        return false;
      }
      if (passport !== undefined) this.#links.remove(passport, this.planPath(identity));
      return true;
    } catch (cause) {
      if (systemErrorCode(cause) === 'ENOENT') return false;
      throw unremovable(this.place, cause);
    } finally {
      pending.remove();
    }
  }

  /** A place to put what is taken out. */
  #aside(): PendingFolder {
    try {
      return createPending(pathBelow(this.place, 'pending'));
    } catch (error) {
      throw unremovable(this.place, error instanceof TrtforgeError ? error.cause : error);
    }
  }

  async #summary(identity: string): Promise<EngineSummary> {
    const { readPassport } = await import('../identity/passport.js');
    try {
      const planPath = this.#ownPlanPath(identity);
      return { ...summaryOf(readPassport(planPath), await readSignature(planPath)), identity };
    } catch (error) {
      return brokenSummary(identity, error);
    }
  }

  #stored(passport: Passport, signature: EngineSignature | null): StoredEngine {
    const identity = passport.identity.digest;
    const planPath = this.planPath(identity);
    const readablePath = this.#links.find(passport, planPath) ?? null;
    return { identity, planPath, passport, signature, readablePath };
  }
}

const unwritable = (place: string, cause: unknown, remedy?: string): TrtforgeError =>
  new TrtforgeError('TF_STORE_UNWRITABLE', `The engine store ${place} cannot be written${because(cause)}.`, {
    cause,
    remedy,
  });

/** The same of a removal, for which no other place helps; what is in the way has a remedy of its own. */
const unremovable = (place: string, cause: unknown): TrtforgeError =>
  unwritable(place, cause, cause instanceof TrtforgeError ? cause.remedy : removalRemedy('EROFS'));

/** `by-identity/3f/3f2a…` */
const wayTo = (identity: string): readonly string[] => ['by-identity', identity.slice(0, 2), identity];

const because = (cause: unknown): string => {
  const code = cause instanceof TrtforgeError ? cause.message : systemErrorCode(cause);
  return code === undefined ? '' : ` (${code})`;
};
