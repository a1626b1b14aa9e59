import { closeSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { TrtforgeError } from '../../errors.js';
import { openFile } from '../../system/byte-source.js';
import { sleep, throwIfCancelled } from '../../system/cancel.js';
import { sha256InPieces } from '../../system/digest.js';
import { writeFailed } from '../../system/publish.js';
import { forget, ledgerPath, readLedger } from '../partial.js';
import { isPassing, remoteFailure } from './failure.js';
import { HashFollower } from './hash-follower.js';
import { inParallel } from './in-parallel.js';
import type { ByteRange, ObjectFacts, Objects } from './objects.js';
import { DeclinedError, RangeConnection } from './range-connection.js';
import { PARTS_AT_ONCE, partsOf, type TransferOptions, TransferProgress } from './transfer.js';

const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 200;

/** From so many parts on a thread that hashes beside the transfer costs less than it saves. */
const PARTS_TO_FOLLOW = 4;

export interface Expected {
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Fetches an object into `path` in parallel ranges, and holds it against its digest. A download that was interrupted goes on where it
 * stopped when the object is still the same (`path` and its ledger are what it left). What does not agree is removed.
 * Throws TF_REMOTE_*, TF_REMOTE_DAMAGED, TF_WRITE_FAILED, TF_CANCELLED.
 */
export async function downloadFile(
  objects: Objects,
  facts: ObjectFacts,
  path: string,
  expected: Expected,
  options: TransferOptions,
): Promise<void> {
  const { key, bytes, etag } = facts;
  if (bytes !== expected.bytes) {
    throw damaged(objects, key, `it has ${bytes} bytes where its passport says ${expected.bytes}`);
  }
  const ledger = readLedger(path);
  const fits = ledger?.etag === etag && ledger.bytes === bytes && ledger.sha256 === expected.sha256;
  const whole = new Set(fits ? ledger.parts : []);
  const isResumed = whole.size > 0;
  const actual = await new Download(objects, facts, path, expected.sha256, whole, options).run();
  if (actual === expected.sha256) return;
  forget(path);
  // What an earlier process left may never have reached the disk.
  if (isResumed) return downloadFile(objects, facts, path, expected, options);
  throw damaged(
    objects,
    key,
    `its SHA-256 is ${actual.slice(0, 16)}…, its passport says ${expected.sha256.slice(0, 16)}…`,
  );
}

class Download {
  readonly #connections: RangeConnection[] = [];
  readonly #file: number;
  readonly #ranges: readonly ByteRange[];

  constructor(
    private readonly objects: Objects,
    private readonly facts: ObjectFacts,
    private readonly path: string,
    private readonly sha256: string,
    private readonly whole: Set<number>,
    private readonly options: TransferOptions,
  ) {
    this.#ranges = partsOf(facts.bytes);
    this.#file = openTarget(path, whole.size > 0);
  }

  /** The digest of what arrived. */
  async run(): Promise<string> {
    const { signal, emit } = this.options;
    const { key, bytes } = this.facts;
    const left = this.#ranges
      .map((range, part) => ({ range, part }))
      .filter(({ part }) => !this.whole.has(part));
    const progress = new TransferProgress('download', bytes, emit, bytes - sum(left));
    const follower = this.#ranges.length < PARTS_TO_FOLLOW ? undefined : new HashFollower(this.path);
    try {
      await inParallel(left, PARTS_AT_ONCE, signal, async ({ range, part }, _index, stop) => {
        const connection = this.#connections.pop() ?? new RangeConnection();
        await this.#fetch(range, connection, stop).finally(() => this.#connections.push(connection));
        this.whole.add(part);
        this.#writeLedger();
        follower?.reached(this.#reached());
        progress.add(lengthOf(range));
      });
      follower?.reached(bytes);
      // Not synced here: whoever publishes the file does that.
      const actual = await (follower?.digest() ?? digestOf(this.path));
      if (actual === this.sha256) rmSync(ledgerPath(this.path), { force: true });
      return actual;
    } catch (error) {
      throwIfCancelled(signal, `downloading ${key}`);
      throw error;
    } finally {
      for (const connection of this.#connections) connection.close();
      await follower?.stop();
      closeSync(this.#file);
    }
  }

  /** One range, from where it stopped when the connection is cut. */
  async #fetch({ first, last }: ByteRange, connection: RangeConnection, signal: AbortSignal): Promise<void> {
    const { objects, facts } = this;
    const doing = `downloading ${facts.key}`;
    let at = first;
    const take = (bytes: Uint8Array) => {
      if (at + bytes.length > last + 1)
        throw damaged(objects, facts.key, 'the server sent more than was asked for');
      writeAll(this.#file, this.path, bytes, at);
      at += bytes.length;
    };
    for (let attempt = 1; ; attempt++) {
      const before = at;
      try {
        await this.#receive({ first: at, last }, connection, take, signal);
        if (at === last + 1) return;
        throw Object.assign(new Error(`${last + 1 - at} bytes are missing`), { code: 'ECONNRESET' });
      } catch (error) {
        throwIfCancelled(signal, doing);
        // A connection that brought something along is not counted: a slow, shaky line still arrives.
        if (at > before) attempt = 1;
        if (!isPassing(error) || attempt >= ATTEMPTS)
          throw remoteFailure(error, { doing, place: objects.place });
        await sleep(FIRST_PAUSE_MS * 2 ** attempt * (0.5 + Math.random()), signal, doing);
      }
    }
  }

  /** Over a plain connection; what is declined there is asked for again through the client, which understands and explains every answer. */
  async #receive(
    range: ByteRange,
    connection: RangeConnection,
    take: (bytes: Uint8Array) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { objects } = this;
    const { key, etag } = this.facts;
    const request = await objects.signedGet?.(key, range, etag, signal);
    if (request !== undefined) {
      try {
        return await connection.fetch(request, lengthOf(range), take, signal);
      } catch (error) {
        if (!(error instanceof DeclinedError)) throw error;
      }
    }
    for await (const chunk of await objects.stream(key, range, etag, signal)) take(chunk);
  }

  /** Every byte before this one is in the file. */
  #reached(): number {
    const missing = this.#ranges.findIndex((_range, part) => !this.whole.has(part));
    return missing < 0 ? this.facts.bytes : (this.#ranges[missing]?.first ?? 0);
  }

  /** Losing it costs a part, so it is written plainly and not synced. */
  #writeLedger(): void {
    const { etag, bytes } = this.facts;
    try {
      writeFileSync(
        ledgerPath(this.path),
        JSON.stringify({ sha256: this.sha256, etag, bytes, parts: [...this.whole] }),
      );
    } catch (cause) {
      throw writeFailed(this.path, cause);
    }
  }
}

const lengthOf = ({ first, last }: ByteRange): number => last - first + 1;

const sum = (parts: readonly { readonly range: ByteRange }[]): number =>
  parts.reduce((total, { range }) => total + lengthOf(range), 0);

function digestOf(path: string): Promise<string> {
  const source = openFile(path);
  return sha256InPieces(source).finally(() => source.close());
}

function openTarget(path: string, resuming: boolean): number {
  try {
    return openSync(path, resuming ? 'r+' : 'w');
  } catch (cause) {
    throw writeFailed(path, cause);
  }
}

function writeAll(file: number, path: string, chunk: Uint8Array, position: number): void {
  try {
    for (let done = 0; done < chunk.length; ) {
      done += writeSync(file, chunk, done, chunk.length - done, position + done);
    }
  } catch (cause) {
    throw writeFailed(path, cause);
  }
}

const damaged = (objects: Objects, key: string, why: string): TrtforgeError =>
  new TrtforgeError('TF_REMOTE_DAMAGED', `${key} at ${objects.place} is not what it should be: ${why}.`);
