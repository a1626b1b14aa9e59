import { isRecord, parseJson } from '../../../base/files/json.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { longerName, modelFolder, passportPath } from '../../identity/engine-name.js';
import type { IdentityDocument } from '../../identity/identity.js';
import { type Passport, parsePassport } from '../../identity/passport.js';
import { checkPlanHeaderOf } from '../../plan/verify-engine.js';
import { mayServe, othersMayServe } from '../compatibility.js';
import { chooseVictims, type EvictionPlan } from '../eviction.js';
import type { EngineSignature } from '../signature-schema.js';
import {
  brokenSummary,
  type EngineSource,
  type EngineSummary,
  type NotFound,
  type StoreHit,
  summaryOf,
} from '../store.js';
import { evictableTimings, type TimingFiles } from '../timing-folder.js';
import { checkTrust, noTrust, signatureOf, signaturePath, type Trust } from '../trust.js';
import { inParallel, LARGEST_SMALL_OBJECT, type ObjectFacts, type Objects } from './objects.js';
import { RemoteLeases, type RemoteLeaseTiming } from './remote-lease.js';
import { downloadFile, uploadFile } from './transfer.js';

/** Timing caches of a bucket. Every method throws TF_REMOTE_*. */
export class TimingObjects implements TimingFiles {
  readonly place: string;
  readonly #prefix: string;

  constructor(
    private readonly objects: Objects,
    prefix: string,
  ) {
    this.place = objects.place;
    this.#prefix = `${prefix}.timing/`;
  }

  async list(scope?: string, signal?: AbortSignal) {
    const found = [];
    const prefix = this.#prefix + (scope === undefined ? '' : `${scope}/`);
    for await (const { key, bytes, modified } of this.objects.list(prefix, signal)) {
      const name = key.slice(this.#prefix.length);
      if (/^[\w.+-]+\/[0-9a-f]{64}\.timing(\.json)?$/.test(name))
        found.push({ name, bytes, modified: modified.getTime() });
    }
    return found;
  }

  async text(name: string, signal?: AbortSignal) {
    return (await this.objects.read(`${this.#prefix}${name}.json`, signal))?.body.toString('utf8');
  }

  async fetch(...[name, facts, path, work]: Parameters<TimingFiles['fetch']>) {
    const there = await this.objects.head(this.#prefix + name, work.signal);
    if (there === undefined) return false;
    await downloadFile(this.objects, there, path, facts, work);
    return true;
  }

  async put(...[name, path, description, work]: Parameters<TimingFiles['put']>) {
    const key = this.#prefix + name;
    await uploadFile(this.objects, path, key, {}, work);
    const options = { contentType: 'application/json' };
    await this.objects.put(`${key}.json`, Buffer.from(description), options, work.signal);
  }

  async remove(name: string, signal?: AbortSignal) {
    await this.objects.remove([`${this.#prefix}${name}.json`, this.#prefix + name], signal);
  }
}

/** An engine that the bucket has: where its plan is, and the passport it must agree with. */
export interface RemoteEngine {
  readonly key: string;
  readonly passport: Passport;
  readonly signature: EngineSignature | null;
}

interface RemoteStoreOptions {
  readonly trust?: Trust;
  readonly leaseTiming?: RemoteLeaseTiming;
}

const JSON_TYPE = 'application/json';
const INDEX = '.by-identity';
const MODELS = '.by-model';

/** Requests at once when many entries are read. */
const READS_AT_ONCE = 16;
/** A model with more engines than this is not searched further for one that may serve. */
const MOST_OF_A_MODEL = 200;

/**
 * Engines in a bucket, below the address's prefix:
 *
 *     resnet50/resnet50_…_sm_89_10.6.0.26.engine                 the plan, its SHA-256 and identity in the metadata
 *     resnet50/resnet50_…_sm_89_10.6.0.26.engine.passport.json   the passport beside it, for people and other tools
 *     resnet50/resnet50_…_sm_89_10.6.0.26.engine.signature.json  where it is signed
 *     .by-identity/3f/3f2a….json                                 passport, signature and key of the plan: written last, read first
 *     .by-model/7c/7c1d…/3f2a…                                   which identities a model has; empty objects
 *     .timing/tensorrt-10.6.0.26_sm_90_…/                        kernel times that builds leave to later ones
 *     .leases/3f2a…                                              builds in progress
 *
 * Only what the index names is used, and only when header, size and digest of what comes agree with its passport.
 */
export class RemoteStore implements EngineSource<RemoteEngine> {
  readonly place: string;
  readonly leases: RemoteLeases;
  readonly timing: TimingObjects;
  readonly #objects: Objects;
  /** The beginning of every key, as `place` ends: empty, or with a slash behind. */
  readonly prefix: string;
  readonly #trust: Trust;

  constructor(objects: Objects, prefix: string, options: RemoteStoreOptions = {}) {
    this.place = objects.place;
    this.#objects = objects;
    this.prefix = prefix === '' ? '' : `${prefix}/`;
    this.#trust = options.trust ?? noTrust;
    this.timing = new TimingObjects(objects, this.prefix);
    this.leases = new RemoteLeases(objects, `${this.prefix}.leases/`, options.leaseTiming);
  }

  /** The index and the plan's object, two requests. Throws TF_REMOTE_* where the server does not answer; what it answers wrongly is a miss with a reason. */
  get(identity: string, signal?: AbortSignal): Promise<StoreHit<RemoteEngine> | NotFound> {
    return this.#get(identity, signal, true);
  }

  async #get(
    identity: string,
    signal: AbortSignal | undefined,
    isWhole: boolean,
  ): Promise<StoreHit<RemoteEngine> | NotFound> {
    try {
      const engine = await this.#read(identity, signal);
      if (engine === undefined)
        return { found: false, code: null, reason: `${this.place} has no engine of this identity` };
      checkTrust(this.#trust, engine.key, engine.passport, engine.signature);
      if (isWhole) await this.#planObject(engine, signal);
      return { found: true, engine, rule: 'exact' };
    } catch (error) {
      if (!(error instanceof TrtforgeError) || !isAboutContent(error)) throw error;
      return { found: false, code: error.code, reason: error.message };
    }
  }

  /** An engine of another identity that may serve (`mayServe`); undefined when none may. Throws TF_REMOTE_*. */
  async findCompatible(
    wanted: IdentityDocument,
    signal?: AbortSignal,
  ): Promise<StoreHit<RemoteEngine> | undefined> {
    if (!othersMayServe(wanted)) return undefined;
    for (const { engine } of await this.ofModel(wanted.model, signal)) {
      const { serves, rule } = mayServe(wanted, engine.passport.identity.document);
      const answer = serves ? await this.get(engine.passport.identity.digest, signal) : undefined;
      if (answer?.found) return { ...answer, rule };
    }
    return undefined;
  }

  /** The engines of one model whose entries pass their checks; their plans are not looked at. */
  async ofModel(model: string, signal?: AbortSignal): Promise<readonly StoreHit<RemoteEngine>[]> {
    const identities: string[] = [];
    for await (const { key } of this.#objects.list(this.#modelKey(model, ''), signal)) {
      const [, identity] = /\/([0-9a-f]{64})$/.exec(key) ?? [];
      if (identity !== undefined && identities.push(identity) >= MOST_OF_A_MODEL) break;
    }
    const found: StoreHit<RemoteEngine>[] = [];
    await inParallel(identities, READS_AT_ONCE, signal, async (identity, _index, stop) => {
      const answer = await this.#get(identity, stop, false);
      if (answer.found) found.push(answer);
    });
    return found;
  }

  /** Fetches a plan into `planPath` and checks it: size, SHA-256, header. Throws TF_REMOTE_*, TF_REMOTE_DAMAGED, TF_ENGINE_HEADER_MISMATCH, TF_WRITE_FAILED. */
  async download(
    engine: Pick<RemoteEngine, 'key' | 'passport'>,
    planPath: string,
    options: WorkContext,
  ): Promise<void> {
    const facts = await this.#planObject(engine, options.signal);
    await downloadFile(this.#objects, facts, planPath, engine.passport.plan, options);
    checkPlanHeaderOf(planPath, engine.passport);
  }

  /** Throws TF_REMOTE_DAMAGED where the object of a plan is gone, or is another by its size or the SHA-256 in its metadata. */
  async #planObject(
    { key, passport: { plan } }: Pick<RemoteEngine, 'key' | 'passport'>,
    signal: AbortSignal | undefined,
  ): Promise<ObjectFacts> {
    const facts = await this.#objects.head(key, signal);
    if (facts?.bytes === plan.bytes && facts.metadata['trtforge-sha256'] === plan.sha256) return facts;
    const what =
      facts === undefined
        ? 'it is not there'
        : `it has ${facts.bytes} bytes, its passport states ${plan.bytes}, and ${facts.metadata['trtforge-sha256'] ?? 'nothing'} for a SHA-256 in its metadata`;
    throw new TrtforgeError('TF_REMOTE_DAMAGED', `${this.place} lists ${key}, but ${what}.`);
  }

  /** Keeps a verified engine. Others see it only when it is there as a whole. Throws TF_REMOTE_*, TF_CANCELLED. */
  async upload(
    planPath: string,
    passport: Passport,
    signature: EngineSignature | null,
    options: WorkContext,
  ): Promise<RemoteEngine> {
    const { signal } = options;
    const key = await this.#freeKey(passport, signal);
    await uploadFile(this.#objects, planPath, key, metadataOf(passport), options);
    const facts = await this.#objects.head(key, signal);
    // Some servers answer 200 to the end of an upload and have nothing.
    if (facts?.bytes !== passport.plan.bytes) {
      const there = facts === undefined ? 'nothing' : `${facts.bytes} bytes`;
      throw new TrtforgeError(
        'TF_REMOTE_DAMAGED',
        `${key} was uploaded to ${this.place}, which has ${there} of it.`,
      );
    }
    await this.#putJson(passportPath(key), passport, signal);
    const engine = { key, passport, signature };
    await this.sign(engine, signature, signal);
    await this.#objects.put(
      this.#modelKey(passport.identity.document.model, passport.identity.digest),
      Buffer.alloc(0),
      {},
      signal,
    );
    return engine;
  }

  /** Writes the entry that makes an engine visible, with its signature or without one. */
  async sign(
    { key, passport }: Pick<RemoteEngine, 'key' | 'passport'>,
    signature: EngineSignature | null,
    signal?: AbortSignal,
  ): Promise<void> {
    if (signature !== null) await this.#putJson(signaturePath(key), signature, signal);
    const entry = remoteEntry({ key: key.slice(this.prefix.length), passport, signature });
    await this.#putJson(this.#indexKey(passport.identity.digest), entry, signal);
  }

  /** The engines of the bucket, intact or not, in no order. One request for each engine. */
  async list(signal?: AbortSignal): Promise<readonly (EngineSummary & { readonly key: string | null })[]> {
    const identities = await this.identities(signal);
    const engines: (EngineSummary & { readonly key: string | null })[] = [];
    await inParallel(identities, READS_AT_ONCE, signal, async (identity, _index, stop) => {
      try {
        const engine = await this.#read(identity, stop);
        if (engine !== undefined)
          engines.push({ ...summaryOf(engine.passport, engine.signature), key: engine.key });
      } catch (error) {
        if (!(error instanceof TrtforgeError) || !isAboutContent(error)) throw error;
        engines.push({ ...brokenSummary(identity, error), key: null });
      }
    });
    return engines;
  }

  /** Every identity in the index, in no order. */
  async identities(signal?: AbortSignal): Promise<readonly string[]> {
    const identities: string[] = [];
    for await (const { key } of this.#objects.list(`${this.prefix}${INDEX}/`, signal)) {
      const [, identity] = /\/([0-9a-f]{64})\.json$/.exec(key) ?? [];
      if (identity !== undefined) identities.push(identity);
    }
    return identities;
  }

  /**
   * The engines and timing caches that go to bring the bucket under a limit. A bucket does not know when an engine was last used, so those built longest ago go first,
   * except those that are being built again. Throws TF_REMOTE_*.
   */
  async evictionPlan(maxBytes: number, signal?: AbortSignal): Promise<EvictionPlan> {
    const held = new Set(await this.leases.names(signal));
    const engines = (await this.list(signal)).map(({ identity, bytes, builtAt }) => ({
      identity,
      bytes: bytes ?? 0,
      lastUsed: Date.parse(builtAt ?? '') || 0,
      held: held.has(identity),
    }));
    const { timings } = await evictableTimings(this.timing, signal);
    return chooseVictims([...engines, ...timings], maxBytes);
  }

  /** Index first: what is left after a kill in between is not used. False when there was nothing. */
  async remove(identity: string, signal?: AbortSignal): Promise<boolean> {
    const engine = await this.#read(identity, signal).catch((error) => {
      if (!(error instanceof TrtforgeError) || !isAboutContent(error)) throw error;
      return null;
    });
    if (engine === undefined) return false;
    const more =
      engine === null
        ? []
        : [
            this.#modelKey(engine.passport.identity.document.model, identity),
            engine.key,
            passportPath(engine.key),
            signaturePath(engine.key),
          ];
    await this.#objects.remove([this.#indexKey(identity), ...more], signal);
    return true;
  }

  /** Removes every engine of the index, and every timing cache. Returns the engines removed. */
  async clear(signal?: AbortSignal): Promise<number> {
    const identities = await this.identities(signal);
    for (const identity of identities) await this.remove(identity, signal);
    for (const { name } of await this.timing.list(undefined, signal)) await this.timing.remove(name, signal);
    return identities.length;
  }

  close(): void {
    this.#objects.close();
  }

  #indexKey(identity: string): string {
    return `${this.prefix}${INDEX}/${identity.slice(0, 2)}/${identity}.json`;
  }

  #modelKey(model: string, identity: string): string {
    return `${this.prefix}${MODELS}/${model.slice(0, 2)}/${model}/${identity}`;
  }

  async #putJson(key: string, value: unknown, signal: AbortSignal | undefined): Promise<void> {
    const text = `${JSON.stringify(value, null, 2)}\n`;
    await this.#objects.put(key, Buffer.from(text), { contentType: JSON_TYPE }, signal);
  }

  /** The readable key, or with the start of the identity where another engine has that name already. */
  async #freeKey({ name, identity }: Passport, signal: AbortSignal | undefined): Promise<string> {
    const folder = `${this.prefix}${modelFolder(name)}`;
    const there = await this.#objects.head(`${folder}/${name}`, signal);
    const isFree = there === undefined || identityOf(there) === identity.digest;
    return `${folder}/${isFree ? name : longerName(name, identity.digest)}`;
  }

  /** Undefined when the index has no such identity. Throws what `isAboutContent` knows, and TF_REMOTE_*. */
  async #read(identity: string, signal: AbortSignal | undefined): Promise<RemoteEngine | undefined> {
    const path = this.#indexKey(identity);
    const entry = await this.#objects.read(path, signal);
    if (entry === undefined) return undefined;
    const engine = await parseRemoteEntry(entry.body.toString('utf8'), identity, {
      path,
      place: this.place,
    });
    return { ...engine, key: `${this.prefix}${engine.key}` };
  }
}

/** Errors of what an entry holds, as against those of reaching it. */
const isAboutContent = ({ code }: TrtforgeError): boolean =>
  ['TF_REMOTE_DAMAGED', 'TF_PASSPORT_INVALID', 'TF_SIGNATURE_INVALID'].includes(code);

const metadataOf = ({ identity, plan, built }: Passport): Readonly<Record<string, string>> => ({
  'trtforge-identity': identity.digest,
  'trtforge-sha256': plan.sha256,
  'trtforge-built-by': built.by,
});

const identityOf = ({ metadata }: ObjectFacts): string | undefined => metadata['trtforge-identity'];

/** The entry of an engine in the index of a bucket; `key` is below the store's prefix. */
const remoteEntry = ({ key, passport, signature }: RemoteEngine) => ({
  schema: 'trtforge.remote-entry/1',
  key,
  passport,
  ...(signature === null ? {} : { signature }),
});

/**
 * An entry is somebody else's bytes: its key must be a name in a folder, its passport must be one of this identity.
 * `path` and `place` are where it was read. Throws TF_REMOTE_DAMAGED, TF_PASSPORT_INVALID, TF_SIGNATURE_INVALID.
 */
async function parseRemoteEntry(
  text: string,
  identity: string,
  { path, place }: { readonly path: string; readonly place: string },
): Promise<RemoteEngine> {
  const damaged = () => new TrtforgeError('TF_REMOTE_DAMAGED', `${path} is not JSON.`);
  const entry = parseJson(text, LARGEST_SMALL_OBJECT, damaged);
  if (!isRecord(entry)) throw damaged();
  const { key, passport, signature } = entry;
  if (typeof key !== 'string' || !/^[\w+][\w.+~-]*\/[\w+][\w.+~-]*$/.test(key)) {
    throw new TrtforgeError('TF_REMOTE_DAMAGED', `${path} at ${place} names no engine of this store.`);
  }
  const parsed = parsePassport(JSON.stringify(passport ?? null), path);
  if (parsed.identity.digest !== identity) {
    throw new TrtforgeError('TF_REMOTE_DAMAGED', `${path} at ${place} is about ${parsed.identity.digest}.`);
  }
  return {
    key,
    passport: parsed,
    signature: signature === undefined ? null : await signatureOf(signature, path),
  };
}
