import { basename, dirname, join } from 'node:path';
import type { z } from 'zod';
import { lstatIfThere, readText, removeIfThere } from '../../base/files/files.js';
import { pathBelow } from '../../base/files/folders.js';
import { parseJson } from '../../base/files/json.js';
import { publishFile, writeFailed } from '../../base/files/publish.js';
import { faultText } from '../../base/text/schema-error.js';
import type { IdentityDocument } from '../../engines/identity/identity.js';
import type { Passport } from '../../engines/identity/passport.js';
import { mayServe } from '../../engines/store/compatibility.js';
import { openStores } from '../../engines/store/open-stores.js';
import { isRemoteAddress, remoteAddress } from '../../engines/store/remote/address.js';
import { LARGEST_SMALL_OBJECT, type Objects } from '../../engines/store/remote/objects.js';
import type { EngineSignature, Signable } from '../../engines/store/signature-schema.js';
import type { EngineSource } from '../../engines/store/store.js';
import { assertSigns, checkTrust, signatureFor } from '../../engines/store/trust.js';
import { type Miss, plainMiss, withNearest } from '../../engines/store/why.js';
import { TrtforgeError } from '../../errors.js';

/** Size limits of `read`: a plan has 2 to 3 KB a job, a record as much. */
export const LARGEST_PLAN = LARGEST_SMALL_OBJECT;
export const LARGEST_RECORD = 1 << 20;

/** The entry of a store for an engine that a fleet wants. */
export type Held =
  | { readonly passport: Passport; readonly rule: string }
  | { readonly passport: null; readonly why: Miss };

/** The store options of a build in a fleet; `scratch` is for what a remote store has not kept yet. */
export const storeOptions = (place: string, scratch: string): Parameters<typeof openStores>[0] =>
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

  /**
   * A document, and whether a trusted key signed it; undefined where there is none. Throws TF_FLEET_INVALID for what is none of `schema`, TF_SIGNATURE_INVALID, TF_REMOTE_…,
   * TF_FILE_UNREADABLE.
   */
  async read<T extends { readonly signature?: EngineSignature | undefined }>(
    key: string,
    schema: z.ZodType<T>,
    largest: number,
  ): Promise<{ readonly document: T; readonly isSigned: boolean } | undefined> {
    const text = await this.#text(key, largest);
    if (text === undefined) return undefined;
    const place = this.address(key);
    const invalid = (why: string) =>
      new TrtforgeError('TF_FLEET_INVALID', `${place} does not count: ${why}.`);
    const content = parseJson(text, largest, invalid);
    const parsed = schema.safeParse(content);
    if (!parsed.success) throw invalid(faultText(parsed.error));
    // As it was written: what this version does not know of it is signed too.
    const { signature: _, ...signed } = content as Signable & { readonly signature?: unknown };
    const isSigned = checkTrust(this.#stores.trust, place, signed, parsed.data.signature ?? null);
    return { document: parsed.data, isSigned };
  }

  async #text(key: string, largest: number): Promise<string | undefined> {
    if (this.#objects !== null)
      return (await this.#objects.objects.read(this.#key(key)))?.body.toString('utf8');
    try {
      return readText(this.#path(key), largest, 'TF_FLEET_INVALID');
    } catch (error) {
      if (error instanceof TrtforgeError && error.code === 'TF_FILE_NOT_FOUND') return undefined;
      throw error;
    }
  }

  /** Whether what this machine writes is signed. */
  get signs(): boolean {
    return this.#stores.trust.signingKey !== null;
  }

  /** Throws TF_STORE_UNWRITABLE where signatures are required and this machine cannot sign, and where a link is in the way. */
  assertMayWrite(key: string): void {
    assertSigns(this.#stores.trust, this.place);
    try {
      if (this.#objects === null) this.#path(key);
    } catch (error) {
      unreadableHere(this.place, error);
    }
  }

  /** Signed where this machine has a key; whole or not at all; the last writer counts. Throws TF_REMOTE_…, TF_WRITE_FAILED, TF_STORE_UNWRITABLE, TF_FLEET_INVALID for more than `largest` bytes. */
  async write(key: string, document: Signable, largest: number): Promise<void> {
    this.assertMayWrite(key);
    const signature = signatureFor(this.#stores.trust, document);
    const text = `${JSON.stringify({ ...document, ...(signature && { signature }) }, null, 2)}\n`;
    if (Buffer.byteLength(text) > largest)
      throw new TrtforgeError('TF_FLEET_INVALID', `${this.address(key)} has more than ${largest} bytes.`, {
        remedy: 'Divide the engines file: each part has its own plan in the same store.',
      });
    if (this.#objects !== null) {
      const body = Buffer.from(text);
      await this.#objects.objects.put(this.#key(key), body, { contentType: 'application/json' });
      return;
    }
    const path = this.#path(key);
    try {
      if (lstatIfThere(path)?.isDirectory() === true) removeIfThere(path);
    } catch (cause) {
      throw writeFailed(path, cause);
    }
    publishFile(path, text);
  }

  /** Leads through folders alone: a link on the way would have documents written elsewhere. Throws TF_FILE_UNREADABLE. */
  #path(key: string): string {
    const folders = dirname(`fleet/${key}`).split('/');
    return join(pathBelow(this.place, ...folders), basename(key));
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

  /** Makes the next call of `find` read the store's engines again. */
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
export const notHere = (
  place: string,
  why: string,
  remedy = 'Mount it, and give its tasks the right to read and write there.',
): TrtforgeError =>
  new TrtforgeError('TF_STORE_UNWRITABLE', `The store ${place} cannot be used here: ${why}`, { remedy });

/** Throws what cannot be read of a store's files as such a matter. */
export function unreadableHere(place: string, error: unknown): never {
  if (!(error instanceof TrtforgeError) || error.code !== 'TF_FILE_UNREADABLE') throw error;
  throw notHere(place, error.message, error.remedy);
}
