import { parseEngineName } from '../../engine/engine-name.js';
import { parsePassport } from '../../engine/passport.js';
import { type Passport, passportPath } from '../../engine/passport-file.js';
import { checkPlanHeaderOf } from '../../engine/verify-engine.js';
import { type ErrorCode, TrtforgeError } from '../../errors.js';
import { downloadFile } from './download.js';
import type { ObjectFacts, Objects } from './objects.js';
import { RemoteLeases } from './remote-lease.js';
import type { TransferOptions } from './transfer.js';
import { uploadFile } from './upload.js';

/** An engine that the bucket has: where its plan is, and the passport it must agree with. */
export interface RemoteEngine {
  readonly key: string;
  readonly passport: Passport;
}

export type RemoteLookup =
  | { readonly found: true; readonly engine: RemoteEngine }
  /** `code` is null when there is simply no such engine. */
  | { readonly found: false; readonly code: ErrorCode | null; readonly reason: string };

const JSON_TYPE = 'application/json';
const INDEX = '.by-identity';

/**
 * Engines in a bucket, below the address's prefix:
 *
 *     resnet50/resnet50_…_sm_89_10.6.0.26.engine                 the plan, its SHA-256 and identity in the metadata
 *     resnet50/resnet50_…_sm_89_10.6.0.26.engine.passport.json   the passport beside it, for people and other tools
 *     .by-identity/3f/3f2a….json                                 passport and key of the plan: written last, read first
 *     .leases/3f2a…                                              builds in progress
 *
 * Only what the index names is believed, and only when header, size and digest of what comes agree with its passport.
 */
export class RemoteStore {
  readonly place: string;
  readonly leases: RemoteLeases;
  readonly #objects: Objects;
  readonly #prefix: string;

  constructor(objects: Objects, prefix: string) {
    this.place = objects.place;
    this.#objects = objects;
    this.#prefix = prefix === '' ? '' : `${prefix}/`;
    this.leases = new RemoteLeases(objects, `${this.#prefix}.leases/`);
  }

  /** One request. Throws TF_REMOTE_* where the server does not answer; what it answers wrongly is a miss with a reason. */
  async find(identity: string, signal?: AbortSignal): Promise<RemoteLookup> {
    const key = this.#indexKey(identity);
    const entry = await this.#objects.read(key, signal);
    if (entry === undefined)
      return { found: false, code: null, reason: `${this.place} has no engine of this identity` };
    try {
      return { found: true, engine: this.#parseEntry(entry.body.toString('utf8'), key, identity) };
    } catch (error) {
      if (!(error instanceof TrtforgeError)) throw error;
      return { found: false, code: error.code, reason: error.message };
    }
  }

  /** Fetches a plan into `planPath` and checks it: size, SHA-256, header. Throws TF_REMOTE_*, TF_REMOTE_DAMAGED, TF_ENGINE_HEADER_MISMATCH, TF_WRITE_FAILED. */
  async download({ key, passport }: RemoteEngine, planPath: string, options: TransferOptions): Promise<void> {
    const facts = await this.#objects.head(key, options.signal);
    if (facts === undefined) {
      throw new TrtforgeError('TF_REMOTE_DAMAGED', `${this.place} lists ${key}, but it is not there.`);
    }
    await downloadFile(this.#objects, facts, planPath, passport.plan, options);
    checkPlanHeaderOf(planPath, passport);
  }

  /** Keeps a sound engine. Others see it only when it is there as a whole. Throws TF_REMOTE_*, TF_CANCELLED. */
  async upload(planPath: string, passport: Passport, options: TransferOptions): Promise<RemoteEngine> {
    const { signal } = options;
    const { digest } = passport.identity;
    const key = await this.#freeKey(passport, signal);
    const text = `${JSON.stringify(passport, null, 2)}\n`;
    await uploadFile(this.#objects, planPath, key, metadataOf(passport), options);
    await this.#objects.put(passportPath(key), Buffer.from(text), { contentType: JSON_TYPE }, signal);
    const entry = { schema: 'trtforge.remote-entry/1', key: key.slice(this.#prefix.length), passport };
    await this.#objects.put(
      this.#indexKey(digest),
      Buffer.from(JSON.stringify(entry)),
      { contentType: JSON_TYPE },
      signal,
    );
    return { key, passport };
  }

  /** Every identity in the index, in no order. */
  async identities(signal?: AbortSignal): Promise<readonly string[]> {
    const identities: string[] = [];
    for await (const { key } of this.#objects.list(`${this.#prefix}${INDEX}/`, signal)) {
      const [, identity] = /\/([0-9a-f]{64})\.json$/.exec(key) ?? [];
      if (identity !== undefined) identities.push(identity);
    }
    return identities;
  }

  /** Index first: what is left after a kill in between is not believed. False when there was nothing. */
  async remove(identity: string, signal?: AbortSignal): Promise<boolean> {
    const answer = await this.find(identity, signal);
    if (!answer.found && answer.code === null) return false;
    const key = answer.found ? [answer.engine.key, passportPath(answer.engine.key)] : [];
    await this.#objects.remove([this.#indexKey(identity), ...key], signal);
    return true;
  }

  close(): void {
    this.#objects.close();
  }

  #indexKey(identity: string): string {
    return `${this.#prefix}${INDEX}/${identity.slice(0, 2)}/${identity}.json`;
  }

  /** The readable key, or with the start of the identity where another engine has that name already. */
  async #freeKey({ name, identity }: Passport, signal: AbortSignal | undefined): Promise<string> {
    const folder = `${this.#prefix}${parseEngineName(name)?.model ?? 'other'}`;
    const key = `${folder}/${name}`;
    const there = await this.#objects.head(key, signal);
    if (there === undefined || identityOf(there) === identity.digest) return key;
    const extension = name.slice(name.lastIndexOf('.'));
    return `${folder}/${name.slice(0, -extension.length)}~${identity.digest.slice(0, 8)}${extension}`;
  }

  /** An entry is somebody else's bytes: its key must stay below the prefix, its passport must be one of this identity. */
  #parseEntry(text: string, path: string, identity: string): RemoteEngine {
    const { key, passport } = parseJson(text, path) as { key?: unknown; passport?: unknown };
    if (typeof key !== 'string' || !/^[\w+][\w.+~-]*\/[\w+][\w.+~-]*$/.test(key)) {
      throw new TrtforgeError('TF_REMOTE_DAMAGED', `${path} at ${this.place} names no engine of this store.`);
    }
    const parsed = parsePassport(JSON.stringify(passport ?? null), path);
    if (parsed.identity.digest !== identity) {
      throw new TrtforgeError(
        'TF_REMOTE_DAMAGED',
        `${path} at ${this.place} is about ${parsed.identity.digest}.`,
      );
    }
    return { key: `${this.#prefix}${key}`, passport: parsed };
  }
}

const metadataOf = ({ identity, plan, built }: Passport): Readonly<Record<string, string>> => ({
  'trtforge-identity': identity.digest,
  'trtforge-sha256': plan.sha256,
  'trtforge-built-by': built.by,
});

const identityOf = ({ metadata }: ObjectFacts): string | undefined => metadata['trtforge-identity'];

function parseJson(text: string, path: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Told below, as for JSON that is no object.
  }
  throw new TrtforgeError('TF_REMOTE_DAMAGED', `${path} is not JSON.`);
}
