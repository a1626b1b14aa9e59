import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { type ByteSource, closing, openFile } from './byte-source.js';

/** Reads of this many bytes keep SHA-256 at the processor's speed (measured: 4 MiB; 64 KiB costs half of it). */
const READ_BYTES = 4 << 20;

/** SHA-256 of bytes or text, as 64 hex digits. */
export function sha256(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex');
}

/** SHA-256 of `length` bytes of a source from `offset`, in constant memory, as 64 hex digits. */
export function sha256OfRange(source: ByteSource, offset = 0, length = source.size - offset): string {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(READ_BYTES, length)));
  for (let done = 0; done < length; ) {
    const count = source.read(buffer, offset + done, Math.min(buffer.length, length - done));
    if (count === 0) break;
    hash.update(buffer.subarray(0, count));
    done += count;
  }
  return hash.digest('hex');
}

/** SHA-256 of a whole source in pieces of a few milliseconds, so that a large file does not hold up the event loop. */
export async function sha256InPieces(source: ByteSource): Promise<string> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(READ_BYTES, source.size)));
  for (let done = 0; done < source.size; ) {
    const count = source.read(buffer, done, Math.min(buffer.length, source.size - done));
    if (count === 0) break;
    hash.update(buffer.subarray(0, count));
    done += count;
    await setImmediate();
  }
  return hash.digest('hex');
}

/** SHA-256 of a file. Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export function sha256OfFile(path: string): string {
  return closing(openFile(path), (source) => sha256OfRange(source));
}

/** The same without holding up the event loop: see `sha256InPieces`. */
export async function sha256OfFileInPieces(path: string): Promise<string> {
  return closing(openFile(path), (source) => sha256InPieces(source));
}

/**
 * JSON with sorted keys and no white space: equal values give equal text, whatever order they were made in.
 * Takes plain data (strings, finite numbers, booleans, null, arrays, records).
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`);
    return `{${fields.join(',')}}`;
  }
  return JSON.stringify(value);
}
