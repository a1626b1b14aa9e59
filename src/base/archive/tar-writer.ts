import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { TrtforgeError } from '../../errors.js';
import { beginFile } from '../files/publish.js';

/** One file of an archive: its content, or where that is. */
export interface TarEntry {
  /** With `/` between folders; at most 100 bytes, or 155 more before one of them. */
  readonly name: string;
  readonly content: { readonly path: string } | Uint8Array;
}

const BLOCK = 512;
const COPY_BYTES = 1 << 20;
/** The largest number of eleven octal digits. */
const LARGEST = 8 ** 11 - 1;

/**
 * Writes a gzipped tar archive (POSIX ustar), entries by name: the same entries result in the same bytes, whatever their times, owners and order. Returns its
 * size in bytes. Throws TF_WRITE_FAILED, also for a name or a file too long for the format, and what reading throws.
 */
export async function writeTarGz(path: string, entries: readonly TarEntry[]): Promise<number> {
  const sorted = [...entries].sort((a, b) => (a.name < b.name ? -1 : 1));
  const file = beginFile(path);
  try {
    const gzip = createGzip();
    const source = Readable.from(blocksOf(sorted));
    source.on('error', (error) => gzip.destroy(error));
    for await (const chunk of source.pipe(gzip)) file.write(chunk as Uint8Array);
    const bytes = file.position;
    file.publish();
    return bytes;
  } catch (error) {
    file.discard();
    throw error;
  }
}

function* blocksOf(entries: readonly TarEntry[]): Generator<Uint8Array> {
  for (const { name, content } of entries) {
    const size = content instanceof Uint8Array ? content.length : statSync(content.path).size;
    yield header(name, size);
    if (content instanceof Uint8Array) {
      if (size > 0) yield content;
    } else yield* piecesOf(content.path, size);
    const rest = size % BLOCK;
    if (rest > 0) yield Buffer.alloc(BLOCK - rest);
  }
  yield Buffer.alloc(2 * BLOCK);
}

/** Exactly `size` bytes, lest a file that grows meanwhile shifts what follows. */
function* piecesOf(path: string, size: number): Generator<Uint8Array> {
  const descriptor = openSync(path, 'r');
  try {
    for (let at = 0; at < size; ) {
      const piece = Buffer.alloc(Math.min(COPY_BYTES, size - at));
      const count = readSync(descriptor, piece, 0, piece.length, at);
      if (count === 0)
        throw new TrtforgeError('TF_FILE_UNREADABLE', `${path} became shorter while it was read.`);
      yield piece.subarray(0, count);
      at += count;
    }
  } finally {
    closeSync(descriptor);
  }
}

function header(name: string, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const [prefix, short] = splitName(name, size);
  block.write(short, 0);
  block.write('0000644\0', 100);
  block.write('0000000\0', 108);
  block.write('0000000\0', 116);
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  block.write(`${'0'.repeat(11)}\0`, 136);
  block.write('        ', 148);
  block.write('0', 156);
  block.write('ustar\x0000', 257);
  block.write(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

function splitName(name: string, size: number): readonly [string, string] {
  const fits = (text: string, most: number) => Buffer.byteLength(text) <= most;
  if (size <= LARGEST) {
    if (fits(name, 100)) return ['', name];
    for (const { index } of name.matchAll(/\//g)) {
      const parts = [name.slice(0, index), name.slice(index + 1)] as const;
      if (fits(parts[0], 155) && fits(parts[1], 100)) return parts;
    }
  }
  throw new TrtforgeError('TF_WRITE_FAILED', `${name} (${size} bytes) does not fit into a tar archive.`, {
    remedy: 'Names have at most 100 bytes, and files at most 8 GiB.',
  });
}
