import { accessSync, constants, existsSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseEngineName } from '../engine/engine-name.js';
import { type Passport, passportPath } from '../engine/passport-file.js';
import { publishEngine } from '../engine/publish-engine.js';
import { systemErrorCode, TrtforgeError } from '../errors.js';
import { cacheFolder } from '../system/folders.js';
import { listFolder } from '../system/list-folder.js';
import { LeaseFolder } from './lease.js';
import { createPending, type PendingFolder, sweepPending } from './pending.js';
import type { EngineStore, Lookup, StoredEngine, StoredEntry } from './store.js';
import { VerifiedEngines } from './verified-engines.js';

const PLAN = 'engine.plan';

/** Where engines are kept: `--cache-dir`, else `$TENSORRT_CACHE_DIR`, else `engines` in trtforge's cache folder. */
export const storeFolder = (given?: string, environment: NodeJS.ProcessEnv = process.env): string =>
  given || environment.TENSORRT_CACHE_DIR || join(cacheFolder(environment), 'engines');

/**
 * Engines in a folder, by identity:
 *
 *     by-identity/3f/3f2a…/engine.plan and engine.plan.passport.json
 *     by-name/resnet50/resnet50_…_sm_89_1.7.1.116.engine   links to the above
 *     pending/  leases/                                    builds in progress
 *
 * Any number of processes and machines may share it; a read-only one serves hits.
 */
export class LocalStore implements EngineStore {
  readonly kind = 'local';
  readonly place: string;
  readonly leases: LeaseFolder;
  readonly #verified: VerifiedEngines;

  /** `memoFolder` remembers between runs which engines were found sound; it lies outside the store, which may be read-only or shared. */
  constructor(folder: string, memoFolder: string) {
    this.place = folder;
    this.leases = new LeaseFolder(join(folder, 'leases'));
    this.#verified = new VerifiedEngines(memoFolder);
  }

  async get(identity: string): Promise<Lookup> {
    const planPath = this.#planPath(identity);
    try {
      const passport = await this.#verified.verify(planPath);
      if (passport.identity.digest !== identity) {
        const other = passport.identity.digest;
        throw new TrtforgeError(
          'TF_PASSPORT_INVALID',
          `${passportPath(planPath)} is the passport of ${other}.`,
        );
      }
      return { found: true, engine: this.#stored(passport) };
    } catch (error) {
      if (!(error instanceof TrtforgeError)) throw error;
      const absent = error.code === 'TF_PASSPORT_MISSING' || error.code === 'TF_FILE_NOT_FOUND';
      return absent
        ? { found: false, code: null, reason: `${this.place} has no engine of this identity` }
        : { found: false, code: error.code, reason: error.message };
    }
  }

  async put(pendingPlanPath: string, passport: Passport): Promise<StoredEngine> {
    publishEngine(pendingPlanPath, passport, this.#planPath(passport.identity.digest));
    this.#link(passport);
    return this.#stored(passport);
  }

  async list(): Promise<readonly StoredEntry[]> {
    const { readPassport } = await import('../engine/passport.js');
    return this.#identities().map((identity) => {
      const planPath = this.#planPath(identity);
      try {
        return { identity, planPath, passport: readPassport(planPath), problem: null };
      } catch (error) {
        if (!(error instanceof TrtforgeError)) throw error;
        return { identity, planPath, passport: null, problem: { code: error.code, reason: error.message } };
      }
    });
  }

  /** Passport first: what is left after a kill in between is not believed. */
  async remove(identity: string): Promise<boolean> {
    const planPath = this.#planPath(identity);
    const passport = await this.#passportOf(identity);
    try {
      rmSync(passportPath(planPath), { force: true });
      if (passport !== undefined) this.#unlink(passport);
      const existed = this.#identities().includes(identity);
      rmSync(dirname(planPath), { recursive: true, force: true });
      return existed;
    } catch (cause) {
      throw unwritable(this.place, cause);
    }
  }

  /** Whether engines can be kept here. */
  isWritable(): boolean {
    try {
      mkdirSync(this.place, { recursive: true });
      accessSync(this.place, constants.W_OK);
      return true;
    } catch {
      return false;
    }
  }

  /** A place for a build, on the store's own file system; what killed builds left there goes first. */
  pending(): PendingFolder {
    const parent = join(this.place, 'pending');
    sweepPending(parent);
    this.leases.sweep();
    return createPending(parent);
  }

  /** Removes every engine and every leftover; builds in progress keep what they have. Returns the engines removed. */
  async clear(): Promise<number> {
    const identities = this.#identities();
    for (const identity of identities) await this.remove(identity);
    sweepPending(join(this.place, 'pending'));
    return identities.length;
  }

  #identities(): readonly string[] {
    const root = join(this.place, 'by-identity');
    return listFolder(root).flatMap((shard) =>
      listFolder(join(root, shard)).filter((name) => /^[0-9a-f]{64}$/.test(name)),
    );
  }

  #planPath(identity: string): string {
    return join(this.place, 'by-identity', identity.slice(0, 2), identity, PLAN);
  }

  async #passportOf(identity: string): Promise<Passport | undefined> {
    const { readPassport } = await import('../engine/passport.js');
    try {
      return readPassport(this.#planPath(identity));
    } catch {
      return undefined;
    }
  }

  #stored(passport: Passport): StoredEngine {
    const identity = passport.identity.digest;
    return {
      identity,
      planPath: this.#planPath(identity),
      passport,
      readablePath: this.#linksTo(passport) ?? null,
    };
  }

  /** The two names an engine may have: its readable one, or with the start of its identity where another engine has that name already. */
  #linkCandidates({ name, identity }: Passport): readonly [string, string] {
    const extension = name.slice(name.lastIndexOf('.'));
    const folder = join(this.place, 'by-name', parseEngineName(name)?.model ?? 'other');
    const longer = `${name.slice(0, -extension.length)}~${identity.digest.slice(0, 8)}${extension}`;
    return [join(folder, name), join(folder, longer)];
  }

  #linksTo(passport: Passport): string | undefined {
    const target = this.#planPath(passport.identity.digest);
    return this.#linkCandidates(passport).find(
      (path) => linkTarget(path) === relative(dirname(path), target),
    );
  }

  /** Links are for people: where they cannot be made (some network file systems), the store works without. */
  #link(passport: Passport): void {
    if (this.#linksTo(passport) !== undefined) return;
    const target = this.#planPath(passport.identity.digest);
    for (const path of this.#linkCandidates(passport)) {
      try {
        mkdirSync(dirname(path), { recursive: true });
        link(target, path);
        link(passportPath(target), passportPath(path));
        return;
      } catch (error) {
        if (systemErrorCode(error) !== 'EEXIST') return;
      }
    }
  }

  #unlink(passport: Passport): void {
    const path = this.#linksTo(passport);
    if (path === undefined) return;
    rmSync(passportPath(path), { force: true });
    rmSync(path, { force: true });
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

/** Throws EEXIST when the name leads to something; a link to nothing is replaced. */
function link(target: string, path: string): void {
  if (linkTarget(path) !== undefined && !existsSync(path)) rmSync(path, { force: true });
  symlinkSync(relative(dirname(path), target), path);
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
