import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { TrtforgeError } from '../../errors.js';
import { openFile } from '../../system/byte-source.js';
import { sleep, throwIfCancelled } from '../../system/cancel.js';
import { sha256InPieces } from '../../system/digest.js';
import { writeFailed } from '../../system/publish.js';
import { isPassing, remoteFailure } from './failure.js';
import { inParallel } from './in-parallel.js';
import type { ByteRange, ObjectFacts, Objects } from './objects.js';
import { PARTS_AT_ONCE, partsOf, type TransferOptions, TransferProgress } from './transfer.js';

const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 200;

/** What a download that was cut short left beside its file: parts that are whole, of one very object. */
interface Ledger {
  readonly etag: string;
  readonly bytes: number;
  readonly parts: readonly number[];
}

export interface Expected {
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Fetches an object into `path` in parallel ranges, and holds it against its digest. A download that was interrupted goes on where it
 * stopped when the object is still the same (`path` and `path.parts` are what it left). What does not agree is removed.
 * Throws TF_REMOTE_*, TF_REMOTE_DAMAGED, TF_WRITE_FAILED, TF_CANCELLED.
 */
export async function downloadFile(
  objects: Objects,
  { key, bytes, etag }: ObjectFacts,
  path: string,
  expected: Expected,
  { emit, signal }: TransferOptions,
): Promise<void> {
  if (bytes !== expected.bytes) {
    throw damaged(objects, key, `it has ${bytes} bytes where its passport says ${expected.bytes}`);
  }
  const ranges = partsOf(bytes);
  const ledgerPath = `${path}.parts`;
  const whole = new Set(readLedger(ledgerPath, etag, bytes));
  const file = openTarget(path, whole.size > 0);
  const left = ranges.map((range, part) => ({ range, part })).filter(({ part }) => !whole.has(part));
  const done = bytes - left.reduce((sum, { range }) => sum + lengthOf(range), 0);
  const progress = new TransferProgress('download', bytes, emit, done);
  try {
    await inParallel(left, PARTS_AT_ONCE, signal, async ({ range, part }, _index, stop) => {
      await fetchRange(objects, key, etag, range, file, stop);
      whole.add(part);
      writeLedger(ledgerPath, { etag, bytes, parts: [...whole] });
      progress.add(lengthOf(range));
    });
    fsyncSync(file);
  } catch (error) {
    throwIfCancelled(signal, `downloading ${key}`);
    throw error;
  } finally {
    closeSync(file);
  }
  const source = openFile(path);
  const actual = await sha256InPieces(source).finally(() => source.close());
  rmSync(ledgerPath, { force: true });
  if (actual === expected.sha256) return;
  rmSync(path, { force: true });
  throw damaged(
    objects,
    key,
    `its SHA-256 is ${actual.slice(0, 16)}…, its passport says ${expected.sha256.slice(0, 16)}…`,
  );
}

/** One range, from where it stopped when the connection is cut. */
async function fetchRange(
  objects: Objects,
  key: string,
  etag: string,
  { first, last }: ByteRange,
  file: number,
  signal: AbortSignal,
): Promise<void> {
  const doing = `downloading ${key}`;
  let at = first;
  for (let attempt = 1; ; attempt++) {
    const before = at;
    try {
      for await (const chunk of await objects.stream(key, { first: at, last }, etag, signal)) {
        if (at + chunk.length > last + 1)
          throw damaged(objects, key, 'the server sent more than was asked for');
        writeAll(file, chunk, at);
        at += chunk.length;
      }
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

const lengthOf = ({ first, last }: ByteRange): number => last - first + 1;

function openTarget(path: string, resuming: boolean): number {
  try {
    return openSync(path, resuming ? 'r+' : 'w');
  } catch (cause) {
    throw writeFailed(path, cause);
  }
}

function writeAll(file: number, chunk: Uint8Array, position: number): void {
  try {
    for (let done = 0; done < chunk.length; ) {
      done += writeSync(file, chunk, done, chunk.length - done, position + done);
    }
  } catch (cause) {
    throw writeFailed('the downloaded engine', cause);
  }
}

/** Parts of the same object that are there; anything odd means none. */
function readLedger(path: string, etag: string, bytes: number): readonly number[] {
  try {
    const ledger = JSON.parse(readFileSync(path, 'utf8')) as Ledger;
    const parts =
      ledger.etag === etag && ledger.bytes === bytes && Array.isArray(ledger.parts) ? ledger.parts : [];
    return parts.filter((part) => Number.isInteger(part));
  } catch {
    return [];
  }
}

/** Losing it costs a part, so it is written plainly and not synced. */
function writeLedger(path: string, ledger: Ledger): void {
  writeFileSync(path, JSON.stringify(ledger));
}

const damaged = (objects: Objects, key: string, why: string): TrtforgeError =>
  new TrtforgeError('TF_REMOTE_DAMAGED', `${key} at ${objects.place} is not what it should be: ${why}.`);
