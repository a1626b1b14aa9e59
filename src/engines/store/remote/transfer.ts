import { createHash } from 'node:crypto';
import { closeSync, openSync, read, rmSync, writeFileSync, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { openFile } from '../../../base/files/byte-source.js';
import { stampOf, unchanged } from '../../../base/files/file-memo.js';
import { writeFailed } from '../../../base/files/publish.js';
import { sleep, throwIfCancelled } from '../../../base/process/cancel.js';
import { TrtforgeError } from '../../../errors.js';
import type { EventListener, WorkContext } from '../../../events.js';
import { forget, ledgerPath, readLedger } from '../partial-downloads.js';
import { isPassing, remoteFailure } from './failure.js';
import { type ByteRange, inParallel, type ObjectFacts, type Objects } from './objects.js';

/** Large enough that signing and round trips vanish, small enough that a cut connection costs little. S3 wants at least 5 MiB. */
const PART_BYTES = 16 << 20;
const PARTS_AT_ONCE = 4;
/** S3 takes at most this many parts; larger files get larger parts. */
const MOST_PARTS = 10_000;

/** The ranges a file of `bytes` is moved in: equal parts, the last shorter. */
function partsOf(bytes: number): readonly ByteRange[] {
  const size = Math.max(PART_BYTES, Math.ceil(bytes / MOST_PARTS));
  return Array.from({ length: Math.ceil(bytes / size) }, (_, index) => ({
    first: index * size,
    last: Math.min(bytes, (index + 1) * size) - 1,
  }));
}

/** Adds up bytes of parallel parts into progress events. */
class TransferProgress {
  #done = 0;

  constructor(
    private readonly phase: 'upload' | 'download',
    private readonly total: number,
    private readonly emit: EventListener | undefined,
    done = 0,
  ) {
    this.#done = done;
  }

  add(bytes: number): void {
    this.#done += bytes;
    this.emit?.({
      type: 'progress',
      phase: this.phase,
      done: this.#done,
      total: this.total,
      detail: 'bytes',
    });
  }
}

const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 200;
/** Hashed at once: large enough to be fast, small enough that the event loop waits a few milliseconds only. */
const HASHED_BYTES = 4 << 20;

const readAsync = promisify(read);

/** The facts of a plan in its passport. */
interface Expected {
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Fetches an object into `path` in parallel ranges and checks its SHA-256; null for an object without a passport, which is not checked. An interrupted
 * download is resumed when the object is still the same (`path` and its ledger are what it left). A file with another digest is removed.
 * Throws TF_REMOTE_*, TF_REMOTE_DAMAGED, TF_WRITE_FAILED, TF_CANCELLED.
 */
export async function downloadFile(
  objects: Objects,
  facts: ObjectFacts,
  path: string,
  expected: Expected | null,
  options: WorkContext,
): Promise<void> {
  if (expected === null) {
    await new Download(objects, facts, path, null, [], options).run();
    return;
  }
  const { key, bytes } = facts;
  const { sha256 } = expected;
  if (bytes !== expected.bytes)
    throw damaged(objects, key, `it has ${bytes} bytes, its passport states ${expected.bytes}`);
  const ledger = readLedger(path);
  const isSame = ledger?.etag === facts.etag && ledger.bytes === bytes && ledger.sha256 === sha256;
  const resumed = isSame ? ledger.parts : [];
  const actual = await new Download(objects, facts, path, sha256, resumed, options).run();
  if (actual === sha256) return rmSync(ledgerPath(path), { force: true });
  forget(path);
  // Parts that an earlier process left may never have reached the disk.
  if (resumed.length > 0) return downloadFile(objects, facts, path, expected, options);
  throw damaged(
    objects,
    key,
    `its SHA-256 is ${actual.slice(0, 16)}…, its passport states ${sha256.slice(0, 16)}…`,
  );
}

class Download {
  readonly #parts: readonly ByteRange[];
  /** Numbers of the parts that are in the file. */
  readonly #whole: Set<number>;
  readonly #file: number;
  readonly #progress: TransferProgress;
  readonly #hash = createHash('sha256');
  #hashedParts = 0;
  #hashing = Promise.resolve();

  constructor(
    private readonly objects: Objects,
    private readonly facts: ObjectFacts,
    private readonly path: string,
    private readonly sha256: string | null,
    resumed: readonly number[],
    private readonly options: WorkContext,
  ) {
    this.#parts = partsOf(facts.bytes);
    this.#whole = new Set(resumed);
    const there = this.#parts.filter((_range, part) => this.#whole.has(part));
    this.#file = openTarget(path, resumed.length > 0);
    const bytes = there.reduce((sum, range) => sum + lengthOf(range), 0);
    this.#progress = new TransferProgress('download', facts.bytes, options.emit, bytes);
  }

  /** Returns the SHA-256 of the file. Not synced here: the caller does that when it publishes the file. */
  async run(): Promise<string> {
    const { signal } = this.options;
    const missing = [...this.#parts.keys()].filter((part) => !this.#whole.has(part));
    try {
      await inParallel(missing, PARTS_AT_ONCE, signal, (part, _index, stop) => this.#fetch(part, stop));
      await this.#hashWhole();
      return this.#hash.digest('hex');
    } catch (error) {
      throwIfCancelled(signal, `downloading ${this.facts.key}`);
      throw error;
    } finally {
      await this.#hashing.catch(() => {});
      closeSync(this.#file);
    }
  }

  /** One part, resumed where a cut connection ended. */
  async #fetch(part: number, signal: AbortSignal): Promise<void> {
    const { objects, facts } = this;
    const { first, last } = this.#parts[part] ?? { first: 0, last: -1 };
    const doing = `downloading ${facts.key}`;
    let at = first;
    for (let attempt = 1; at <= last; attempt++) {
      const before = at;
      try {
        for await (const bytes of await objects.stream(facts.key, { first: at, last }, facts.etag, signal)) {
          if (at + bytes.length > last + 1)
            throw damaged(objects, facts.key, 'the server sent more than was requested');
          this.#write(bytes, at);
          at += bytes.length;
        }
        if (at <= last)
          throw Object.assign(new Error(`${last + 1 - at} bytes are missing`), { code: 'ECONNRESET' });
      } catch (error) {
        throwIfCancelled(signal, doing);
        // Only attempts that bring nothing count: a slow, shaky line still arrives.
        if (at > before) attempt = 1;
        if (!isPassing(error) || attempt >= ATTEMPTS)
          throw remoteFailure(error, { doing, place: objects.place });
        await sleep(FIRST_PAUSE_MS * 2 ** attempt * (0.5 + Math.random()), signal, doing);
      }
    }
    this.#whole.add(part);
    this.#writeLedger();
    this.#progress.add(last + 1 - first);
    void this.#hashWhole().catch(() => {});
  }

  /** Continues the digest over the parts that follow in the file and are whole; read back, since parts arrive out of order. */
  #hashWhole(): Promise<void> {
    this.#hashing = this.#hashing.then(async () => {
      const buffer = Buffer.allocUnsafe(HASHED_BYTES);
      for (; this.#whole.has(this.#hashedParts); this.#hashedParts++) {
        const { first, last } = this.#parts[this.#hashedParts] ?? { first: 0, last: -1 };
        for (let at = first; at <= last; ) {
          const length = Math.min(buffer.length, last + 1 - at);
          const { bytesRead } = await readAsync(this.#file, buffer, 0, length, at);
          // A file that another process cut short has another digest.
          if (bytesRead === 0) break;
          this.#hash.update(buffer.subarray(0, bytesRead));
          at += bytesRead;
        }
      }
    });
    return this.#hashing;
  }

  #write(bytes: Uint8Array, position: number): void {
    try {
      for (let done = 0; done < bytes.length; )
        done += writeSync(this.#file, bytes, done, bytes.length - done, position + done);
    } catch (cause) {
      throw writeFailed(this.path, cause);
    }
  }

  /** Losing it costs a part, so it is written plainly and not synced. */
  #writeLedger(): void {
    if (this.sha256 === null) return;
    const { etag, bytes } = this.facts;
    const ledger = { sha256: this.sha256, etag, bytes, parts: [...this.#whole] };
    try {
      writeFileSync(ledgerPath(this.path), JSON.stringify(ledger));
    } catch (cause) {
      throw writeFailed(this.path, cause);
    }
  }
}

const lengthOf = ({ first, last }: ByteRange): number => last - first + 1;

function openTarget(path: string, resuming: boolean): number {
  try {
    return openSync(path, resuming ? 'r+' : 'w+');
  } catch (cause) {
    throw writeFailed(path, cause);
  }
}

const damaged = (objects: Objects, key: string, why: string): TrtforgeError =>
  new TrtforgeError('TF_REMOTE_DAMAGED', `${key} at ${objects.place} is not what it should be: ${why}.`);

/**
 * Puts a file under a key, in parallel parts when it is larger than one; the object appears whole or not at all. A file that changes
 * meanwhile is not put. Throws TF_REMOTE_*, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_CANCELLED.
 */
export async function uploadFile(
  objects: Objects,
  path: string,
  key: string,
  metadata: Readonly<Record<string, string>>,
  { emit, signal }: WorkContext,
): Promise<void> {
  const stamp = stampOf(path);
  const source = openFile(path);
  const options = { metadata, contentType: 'application/octet-stream' };
  const read = ({ first, last }: ByteRange, memory = Buffer.allocUnsafe(last - first + 1)) => {
    const body = memory.subarray(0, last - first + 1);
    if (source.read(body, first, body.length) < body.length) throw changed(path);
    return body;
  };
  try {
    const parts = partsOf(source.size);
    const [first] = parts;
    if (first === undefined || parts.length === 1) {
      await objects.put(key, first === undefined ? Buffer.alloc(0) : read(first), options, signal);
      return;
    }
    const progress = new TransferProgress('upload', source.size, emit);
    const upload = await objects.startParts(key, options, signal);
    // Fresh memory for every part would cost more than reading the file.
    const spare: Buffer<ArrayBuffer>[] = [];
    try {
      await inParallel(parts, PARTS_AT_ONCE, signal, async (range, index, stop) => {
        const memory = spare.pop() ?? Buffer.allocUnsafe(first.last + 1);
        await upload.put(index + 1, read(range, memory), stop);
        spare.push(memory);
        progress.add(range.last - range.first + 1);
      });
      if (stamp === undefined || !unchanged([stamp])) throw changed(path);
      await upload.complete(signal);
    } catch (error) {
      await upload.abort();
      throw error;
    }
  } finally {
    source.close();
  }
}

const changed = (path: string): TrtforgeError =>
  new TrtforgeError(
    'TF_FILE_UNREADABLE',
    `${path} changed while it was uploaded; nothing of it was kept there.`,
  );
