import { accessSync, constants, existsSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { mayServe, othersMayServe } from '../engine/compatibility.js';
import type { IdentityDocument } from '../engine/identity.js';
import { type Passport, passportPath } from '../engine/passport-file.js';
import { publishEngine } from '../engine/publish-engine.js';
import type { EngineSignature } from '../engine/signature-schema.js';
import { systemErrorCode, TrtforgeError } from '../errors.js';
import { cacheFolder, makeFolder } from '../system/folders.js';
import { listFolder } from '../system/list-folder.js';
import { removeIfThere } from '../system/remove.js';
import { statIfThere } from '../system/stat.js';
import { brokenSummary, summaryOf } from './engine-summary.js';
import { chooseVictims, type EvictionPlan } from './eviction.js';
import { LeaseFolder } from './lease.js';
import { sweepPartials } from './partial.js';
import { createPending, type PendingFolder, sweepPending } from './pending.js';
import { ReadableLinks } from './readable-links.js';
import { readSignature, writeSignature } from './signature-file.js';
import type { EngineSummary, Lookup, StoredEngine } from './store.js';
import { StoreIndex } from './store-index.js';
import { checkTrust, noTrust, type Trust } from './trust.js';
import { isInUse, lastUsed, markInUse } from './use-marks.js';
import { VerifiedEngines } from './verified-engines.js';

const PLAN = 'engine.plan';

/** Where engines are kept: `--cache-dir`, else `$TENSORRT_CACHE_DIR`, else `engines` in trtforge's cache folder. */
export const storeFolder = (given?: string, environment: NodeJS.ProcessEnv = process.env): string =>
  given || environment.TENSORRT_CACHE_DIR || join(cacheFolder(environment), 'engines');

/**
 * Engines in a folder, by identity:
 *
 *     by-identity/3f/3f2a…/engine.plan, engine.plan.passport.json, engine.plan.signature.json
 *     by-name/resnet50/resnet50_…_sm_89_1.7.1.116.engine   links to the above
 *     foreign/                                             engines without a passport (`foreign.ts`)
 *     pending/  partial/  leases/                          builds and downloads in progress
 *
 * Any number of processes and machines may share it; a read-only one serves hits.
 */
export class LocalStore {
  readonly place: string;
  readonly leases: LeaseFolder;
  readonly #trust: Trust;
  readonly #verified: VerifiedEngines;
  readonly #links: ReadableLinks;
  readonly #index: StoreIndex;

  /** `memoFolder` remembers between runs what was found here; it lies outside the store, which may be read-only or shared. */
  constructor(folder: string, memoFolder: string, trust: Trust = noTrust) {
    this.place = folder;
    this.leases = new LeaseFolder(join(folder, 'leases'));
    this.#trust = trust;
    this.#verified = new VerifiedEngines(memoFolder);
    this.#links = new ReadableLinks(join(folder, 'by-name'));
    this.#index = new StoreIndex(join(folder, 'by-identity'), `${memoFolder}-index`, (identity) =>
      this.#summary(identity),
    );
  }

  /** The engine of an identity, checked and marked as in use by this process. */
  async get(identity: string): Promise<Lookup> {
    const planPath = this.planPath(identity);
    // First: eviction looks for marks before and after it takes an engine out of its place.
    markInUse(planPath);
    try {
      const passport = await this.#verified.verify(planPath);
      if (passport.identity.digest !== identity) {
        const other = passport.identity.digest;
        throw new TrtforgeError(
          'TF_PASSPORT_INVALID',
          `${passportPath(planPath)} is the passport of ${other}.`,
        );
      }
      const signature = await readSignature(planPath);
      checkTrust(this.#trust, passport.name, passport, signature);
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
  async findCompatible(wanted: IdentityDocument): Promise<Extract<Lookup, { found: true }> | undefined> {
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

  /** Keeps a checked engine, moving the plan out of `pendingPlanPath`. Throws TF_WRITE_FAILED. */
  async put(
    pendingPlanPath: string,
    passport: Passport,
    signature: EngineSignature | null = null,
  ): Promise<StoredEngine> {
    const identity = passport.identity.digest;
    const planPath = this.planPath(identity);
    writeSignature(planPath, null);
    publishEngine(pendingPlanPath, passport, planPath);
    this.#links.add(passport, planPath);
    markInUse(planPath);
    return this.sign(passport, signature);
  }

  /** Puts a signature beside an engine, or takes it away. */
  sign(passport: Passport, signature: EngineSignature | null): StoredEngine {
    const identity = passport.identity.digest;
    writeSignature(this.planPath(identity), signature);
    this.#index.changed(identity);
    return this.#stored(passport, signature);
  }

  /** What is kept, sound or not, in no order. */
  list(): Promise<readonly EngineSummary[]> {
    return this.#index.engines();
  }

  /** Engines of one model, the newest first. */
  async ofModel(model: string): Promise<readonly EngineSummary[]> {
    const same = (await this.list()).filter((engine) => engine.model === model);
    return same.sort((a, b) => ((a.builtAt ?? '') < (b.builtAt ?? '') ? 1 : -1));
  }

  /** The passport of an engine; undefined when it cannot be read. Says nothing of the plan. */
  async passport(identity: string): Promise<Passport | undefined> {
    const { readPassport } = await import('../engine/passport.js');
    try {
      return readPassport(this.planPath(identity));
    } catch {
      return undefined;
    }
  }

  /** Passport first: what is left after a kill in between is not believed. False when there was nothing. */
  async remove(identity: string): Promise<boolean> {
    const planPath = this.planPath(identity);
    const passport = await this.passport(identity);
    try {
      const existed = existsSync(dirname(planPath));
      rmSync(passportPath(planPath), { force: true });
      if (passport !== undefined) this.#links.remove(passport, planPath);
      rmSync(dirname(planPath), { recursive: true, force: true });
      return existed;
    } catch (cause) {
      throw unwritable(this.place, cause);
    }
  }

  /** Removes the engines used least recently until the plans fit into `maxBytes`; never one in use. Throws TF_STORE_UNWRITABLE. */
  async evict(maxBytes: number): Promise<EvictionPlan> {
    const engines = (await this.list()).map(({ identity }) => {
      const planPath = this.planPath(identity);
      const folder = dirname(planPath);
      return {
        identity,
        bytes: statIfThere(planPath)?.size ?? 0,
        lastUsed: lastUsed(folder, PLAN),
        get held() {
          return isInUse(folder);
        },
      };
    });
    const plan = chooseVictims(engines, maxBytes);
    const taken: string[] = [];
    for (const { identity } of plan.victims) if (await this.#take(identity)) taken.push(identity);
    const victims = plan.victims.filter(({ identity }) => taken.includes(identity));
    const bytesAfter = plan.bytesBefore - victims.reduce((sum, { bytes }) => sum + bytes, 0);
    return { ...plan, victims, bytesAfter, excessBytes: Math.max(0, bytesAfter - maxBytes) };
  }

  /** Whether engines can be kept here. */
  isWritable(): boolean {
    try {
      makeFolder(this.place);
      accessSync(this.place, constants.W_OK);
      return true;
    } catch {
      return false;
    }
  }

  /** A place for a build, on the store's own file system; what killed builds left there goes first. */
  pending(): PendingFolder {
    const [parent, partials] = [join(this.place, 'pending'), join(this.place, 'partial')];
    sweepPending(parent, partials);
    sweepPartials(partials);
    this.leases.sweep();
    return createPending(parent, partials);
  }

  /** Removes every engine and every leftover; builds in progress keep what they have. Returns the engines removed. */
  async clear(): Promise<number> {
    const engines = await this.list();
    for (const { identity } of engines) await this.remove(identity);
    sweepPending(join(this.place, 'pending'));
    removeIfThere(join(this.place, 'partial'));
    const foreign = listFolder(join(this.place, 'foreign')).length;
    removeIfThere(join(this.place, 'foreign'));
    return engines.length + foreign;
  }

  planPath(identity: string): string {
    return join(this.place, 'by-identity', identity.slice(0, 2), identity, PLAN);
  }

  /** Out of its place in one step; put back when somebody began to use it in that moment. */
  async #take(identity: string): Promise<boolean> {
    const folder = dirname(this.planPath(identity));
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
      throw unwritable(this.place, cause);
    } finally {
      pending.remove();
    }
  }

  /** A place to put what is taken out. */
  #aside(): PendingFolder {
    try {
      return createPending(join(this.place, 'pending'));
    } catch (error) {
      throw unwritable(this.place, error instanceof TrtforgeError ? error.cause : error);
    }
  }

  async #summary(identity: string): Promise<EngineSummary> {
    const { readPassport } = await import('../engine/passport.js');
    const planPath = this.planPath(identity);
    try {
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

export const unwritable = (place: string, cause?: unknown): TrtforgeError =>
  new TrtforgeError('TF_STORE_UNWRITABLE', `The engine store ${place} cannot be written${because(cause)}.`, {
    cause,
  });

const because = (cause: unknown): string => {
  const code = systemErrorCode(cause);
  return code === undefined ? '' : ` (${code})`;
};
