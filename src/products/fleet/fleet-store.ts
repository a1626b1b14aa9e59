import { join } from 'node:path';
import { readText } from '../../base/files/files.js';
import { publishFile } from '../../base/files/publish.js';
import type { IdentityDocument } from '../../engines/identity/identity.js';
import type { Passport } from '../../engines/identity/passport-file.js';
import { mayServe } from '../../engines/store/compatibility.js';
import { type Miss, plainMiss, withNearest } from '../../engines/store/lookup.js';
import { openStores, type StoreOptions } from '../../engines/store/open-stores.js';
import { isRemoteAddress, remoteAddress } from '../../engines/store/remote/address.js';
import type { Objects } from '../../engines/store/remote/objects.js';
import type { EngineSource } from '../../engines/store/store.js';
import { TrtforgeError } from '../../errors.js';

/** Plans and records are small; a plan of thousands of jobs has some MB. */
const LARGEST_BYTES = 64 << 20;

/** What a store has of an engine that a fleet wants. */
export type Held =
  | { readonly passport: Passport; readonly rule: string }
  | { readonly passport: null; readonly why: Miss };

/** How a build opens the store of a fleet; `scratch` is for what a remote one has not kept yet. */
export const storeOptions = (place: string, scratch: string): StoreOptions =>
  isRemoteAddress(place) ? { store: scratch, remote: place } : { store: place, remote: false };

/** The store of a fleet: engines as everywhere, and documents below `fleet/`. What it has of a model is read once. */
export class FleetStore {
  readonly place: string;
  readonly #stores: Awaited<ReturnType<typeof openStores>>;
  readonly #objects: { readonly objects: Objects; readonly prefix: string } | null;
  readonly #passports = new Map<string, Promise<readonly Passport[]>>();

  private constructor(
    place: string,
    stores: Awaited<ReturnType<typeof openStores>>,
    objects: { readonly objects: Objects; readonly prefix: string } | null,
  ) {
    this.place = place;
    this.#stores = stores;
    this.#objects = objects;
  }

  /** Throws what `openStores` throws. The caller closes it. */
  static async open(place: string, environment: NodeJS.ProcessEnv): Promise<FleetStore> {
    if (!isRemoteAddress(place))
      return new FleetStore(place, await openStores({ store: place, remote: false }, environment), null);
    const address = remoteAddress(place, environment)!;
    const { openS3 } = await import('../../engines/store/remote/s3-objects.js');
    const stores = await openStores({ remote: place }, environment);
    return new FleetStore(place, stores, { objects: await openS3(address), prefix: address.prefix });
  }

  /** Where a document lies, for people and for `read` on another machine. */
  address(key: string): string {
    return `${this.place.replace(/\/+$/, '')}/fleet/${key}`;
  }

  /** A document's text; undefined where there is none. Throws TF_REMOTE_…, TF_FILE_UNREADABLE. */
  async read(key: string): Promise<string | undefined> {
    if (this.#objects === null) {
      try {
        return readText(join(this.place, 'fleet', key), LARGEST_BYTES, 'TF_FLEET_INVALID');
      } catch (error) {
        if (!(error instanceof TrtforgeError)) throw error;
        if (error.code === 'TF_FILE_NOT_FOUND') return undefined;
        throw error.code === 'TF_FILE_UNREADABLE' ? notHere(this.place, error.message) : error;
      }
    }
    return (await this.#objects.objects.read(this.#key(key)))?.body.toString('utf8');
  }

  /** Whole or not at all; the last writer counts. Throws TF_REMOTE_…, TF_WRITE_FAILED. */
  async write(key: string, document: unknown): Promise<void> {
    const text = `${JSON.stringify(document, null, 2)}\n`;
    if (this.#objects === null) publishFile(join(this.place, 'fleet', key), text);
    else
      await this.#objects.objects.put(this.#key(key), Buffer.from(text), { contentType: 'application/json' });
  }

  #key(key: string): string {
    const { prefix } = this.#objects!;
    return `${prefix === '' ? '' : `${prefix}/`}fleet/${key}`;
  }

  /** The engine of an identity, or one that serves in its place, with its file or object checked; else why there is none. */
  async find(wanted: IdentityDocument, signal?: AbortSignal): Promise<Held> {
    const passports = await this.#ofModel(wanted.model, signal);
    const from = this.#objects === null ? 'local' : 'remote';
    const [served] = passports
      .map((passport) => ({ passport, ...mayServe(asBuilt(wanted, passport), passport.identity.document) }))
      .filter(({ serves }) => serves)
      .sort((a, b) => Number(b.rule === 'exact') - Number(a.rule === 'exact'));
    if (served === undefined) {
      const reason = `${this.place} has no engine of this ${passports.length === 0 ? 'model' : 'identity'}`;
      return { passport: null, why: withNearest(plainMiss(from, null, reason), wanted, passports) };
    }
    const { store, remote } = this.#stores;
    const source: EngineSource<unknown> = this.#objects === null ? store! : remote!;
    const own = await source.get(served.passport.identity.digest, signal);
    if (own.found) return { passport: served.passport, rule: served.rule };
    return { passport: null, why: plainMiss(from, own.code, own.reason) };
  }

  /** What was read of the store's engines is read again at the next call of `find`. */
  forget(): void {
    this.#passports.clear();
  }

  #ofModel(model: string, signal: AbortSignal | undefined): Promise<readonly Passport[]> {
    const known = this.#passports.get(model) ?? this.#read(model, signal);
    this.#passports.set(model, known);
    return known;
  }

  async #read(model: string, signal: AbortSignal | undefined): Promise<readonly Passport[]> {
    const { store, remote } = this.#stores;
    if (this.#objects !== null && remote !== null)
      return (await remote.ofModel(model, signal)).map(({ engine }) => engine.passport);
    if (store === null) return [];
    const engines = await store.ofModel(model);
    const passports = await Promise.all(engines.map(({ identity }) => store.passport(identity)));
    return passports.flatMap((passport) => passport ?? []);
  }

  close(): void {
    this.#stores.close();
    this.#objects?.objects.close();
  }
}

/** For which CUDA a library is, only the machine knows that has it: where a plan does not state it, any will do. */
export const asBuilt = (
  wanted: IdentityDocument,
  { identity: { document } }: Pick<Passport, 'identity'>,
): IdentityDocument =>
  wanted.target.cudaMajor === null
    ? { ...wanted, target: { ...wanted.target, cudaMajor: document.target.cudaMajor } }
    : wanted;

/** A matter of this machine, which others may not have. */
export const notHere = (place: string, why: string): TrtforgeError =>
  new TrtforgeError('TF_STORE_UNWRITABLE', `The store ${place} cannot be read here: ${why}`, {
    remedy: 'Mount it, and give its tasks the right to read and write there.',
  });
