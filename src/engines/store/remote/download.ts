import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { openFile } from '../../../base/files/byte-source.js';
import { sha256InPieces } from '../../../base/files/digest.js';
import { writeFailed } from '../../../base/files/publish.js';
import { sleep, throwIfCancelled } from '../../../base/process/cancel.js';
import { TrtforgeError } from '../../../errors.js';
import { forget, ledgerPath } from '../partial.js';
import { Arrivals, type Stretch } from './arrivals.js';
import { isPassing, remoteFailure } from './failure.js';
import { HashFollower } from './hash-follower.js';
import { inParallel } from './in-parallel.js';
import { LineSpeed } from './line-speed.js';
import type { ByteRange, ObjectFacts, Objects } from './objects.js';
import { DeclinedError, RangeConnection, type Taker } from './range-connection.js';
import { PARTS_AT_ONCE, type TransferOptions, TransferProgress } from './transfer.js';

const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 200;

/** From so many parts on a thread that hashes beside the transfer costs less than it saves. */
const PARTS_TO_FOLLOW = 4;
/** That thread is told of so many bytes in the file at a time. */
const TELL_BYTES = 4 << 20;

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
  const { key, bytes } = facts;
  if (bytes !== expected.bytes) {
    throw damaged(objects, key, `it has ${bytes} bytes where its passport says ${expected.bytes}`);
  }
  const arrivals = new Arrivals(path, facts, expected.sha256);
  const isResumed = arrivals.wholeBytes > 0;
  const actual = await new Download(objects, facts, path, expected.sha256, arrivals, options).run();
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
  readonly #speed = new LineSpeed();
  readonly #progress: TransferProgress;
  readonly #follower: HashFollower | undefined;
  #told = 0;

  constructor(
    private readonly objects: Objects,
    private readonly facts: ObjectFacts,
    private readonly path: string,
    private readonly sha256: string,
    private readonly arrivals: Arrivals,
    private readonly options: TransferOptions,
  ) {
    const { wholeBytes } = arrivals;
    this.#file = openTarget(path, wholeBytes > 0);
    this.#progress = new TransferProgress('download', facts.bytes, options.emit, wholeBytes);
    this.#follower = arrivals.parts < PARTS_TO_FOLLOW ? undefined : new HashFollower(path);
  }

  /** The digest of what arrived. */
  async run(): Promise<string> {
    const { signal } = this.options;
    const lanes = Array.from({ length: Math.min(PARTS_AT_ONCE, this.arrivals.parts) }, (_, lane) => lane);
    try {
      await inParallel(lanes, PARTS_AT_ONCE, signal, (lane, _index, stop) => this.#work(lane, stop));
      this.#follower?.reached(this.facts.bytes);
      // Not synced here: whoever publishes the file does that.
      const actual = await (this.#follower?.digest() ?? digestOf(this.path));
      if (actual === this.sha256) rmSync(ledgerPath(this.path), { force: true });
      return actual;
    } catch (error) {
      throwIfCancelled(signal, `downloading ${this.facts.key}`);
      throw error;
    } finally {
      this.#speed.stop();
      for (const connection of this.#connections) connection.close();
      await this.#follower?.stop();
      closeSync(this.#file);
    }
  }

  /** The first connection goes ahead; where it alone is fast the others would only cost both sides processor time. */
  async #work(lane: number, stop: AbortSignal): Promise<void> {
    if (lane > 0 && !(await this.#speed.isSlow)) return;
    const follower = lane === 0 ? this.#follower : undefined;
    const connection = new RangeConnection(follower && (() => follower.slot()));
    this.#connections.push(connection);
    try {
      for (;;) {
        const stretch = this.arrivals.next(this.#speed.wasSlow);
        if (stretch === undefined) return;
        await this.#fetch(stretch, connection, stop);
      }
    } finally {
      this.#speed.stop();
    }
  }

  /** Notes what is in the file and lets the thread that hashes have it. */
  #arrived(bytes: Uint8Array, at: number, stretch: Stretch): Promise<void> | undefined {
    const follower = this.#follower;
    this.#speed.add(bytes.length);
    const whole = this.arrivals.reached(stretch, at + bytes.length);
    if (whole > 0) this.#progress.add(whole);
    // From memory while one connection is alone: then it all comes in the file's order.
    if (follower?.shares(bytes) && !this.#speed.wasSlow) return follower.hand(bytes, at);
    const { front } = this.arrivals;
    if (front - this.#told < TELL_BYTES) return undefined;
    follower?.reached(front);
    this.#told = front;
    return undefined;
  }

  /** One stretch, from where it stopped when the connection is cut. */
  async #fetch(stretch: Stretch, connection: RangeConnection, signal: AbortSignal): Promise<void> {
    const { objects, facts } = this;
    const { first, last } = stretch;
    const doing = `downloading ${facts.key}`;
    let at = first;
    const take = (bytes: Uint8Array): Promise<void> | undefined => {
      if (at + bytes.length > last + 1)
        throw damaged(objects, facts.key, 'the server sent more than was asked for');
      writeAll(this.#file, this.path, bytes, at);
      at += bytes.length;
      return this.#arrived(bytes, at - bytes.length, stretch);
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
    take: Taker,
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
    for await (const chunk of await objects.stream(key, range, etag, signal)) await take(chunk);
  }
}

const lengthOf = ({ first, last }: ByteRange): number => last - first + 1;

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
