import { constants, crc32, createInflateRaw, inflateRawSync } from 'node:zlib';
import { TrtforgeError } from '../../errors.js';
import type { ByteSource } from '../files/byte-source.js';

/** One member of a ZIP archive. Sizes and positions are in bytes. */
export interface ZipEntry {
  /** As stored, with `/` between folders; a folder's own entry ends in `/`. */
  readonly name: string;
  readonly method: 'stored' | 'deflate';
  readonly size: number;
  readonly compressedSize: number;
  readonly crc32: number;
  /** Unix permission and type bits, or 0 where the archive does not state it. */
  readonly mode: number;
  readonly headerOffset: number;
}

/** Read this much at a time: whole members are never needed in memory. */
const CHUNK_BYTES = 1 << 20;
/** A valid directory of this size lists about a million files. */
const MAX_DIRECTORY_BYTES = 64 << 20;
const END_SIGNATURE = 0x06054b50;
const END64_SIGNATURE = 0x06064b50;
const LOCATOR64_SIGNATURE = 0x07064b50;
const CENTRAL_SIGNATURE = 0x02014b50;
const LOCAL_SIGNATURE = 0x04034b50;
const UINT16_FULL = 0xffff;
const UINT32_FULL = 0xffffffff;
const SYMLINK = 0o120000;
const TYPE_MASK = 0o170000;

/**
 * Lists the members of a ZIP archive (wheels and npz files are ZIP archives) from its central directory, ZIP64 included.
 * Layout: PKWARE APPNOTE.TXT 4.3. Throws TF_ARCHIVE_INVALID for anything that is not a whole, plain archive.
 */
export function readZipDirectory(source: ByteSource): readonly ZipEntry[] {
  const end = findEnd(source);
  if (end.size > MAX_DIRECTORY_BYTES || end.offset + end.size > source.size) {
    throw invalid(source, 'its directory lies outside the file');
  }
  const directory = readExactly(source, end.offset, end.size);
  const entries: ZipEntry[] = [];
  for (let at = 0; entries.length < end.count; ) {
    if (at + 46 > directory.length || directory.readUInt32LE(at) !== CENTRAL_SIGNATURE) {
      throw invalid(source, `its directory breaks off after ${entries.length} of ${end.count} members`);
    }
    const { entry, length } = centralEntry(source, directory.subarray(at));
    entries.push(entry);
    at += length;
  }
  return entries;
}

/** Where a member's (possibly compressed) bytes begin: its local header has a length of its own. */
function zipEntryOffset(source: ByteSource, entry: ZipEntry): number {
  const header = readExactly(source, entry.headerOffset, 30);
  if (header.readUInt32LE(0) !== LOCAL_SIGNATURE) {
    throw invalid(source, `the header of its member ${entry.name} is missing`);
  }
  const offset = entry.headerOffset + 30 + header.readUInt16LE(26) + header.readUInt16LE(28);
  if (offset + entry.compressedSize > source.size)
    throw invalid(source, `its member ${entry.name} is cut short`);
  return offset;
}

/** Streams a member's content in constant memory; after the last chunk, size and CRC-32 have been checked. Throws TF_ARCHIVE_INVALID. */
export async function* zipEntryChunks(source: ByteSource, entry: ZipEntry): AsyncGenerator<Uint8Array> {
  let size = 0;
  let checksum = 0;
  const compressed = rawChunks(source, entry);
  const content = entry.method === 'stored' ? compressed : inflated(source, entry, compressed);
  for await (const chunk of content) {
    size += chunk.length;
    if (size > entry.size) break;
    checksum = crc32(chunk, checksum);
    yield chunk;
  }
  checkContent(source, entry, size, checksum);
}

/** Reads a whole member at once; `limit` (bytes) bounds what an archive can make us allocate. Throws TF_ARCHIVE_INVALID. */
export function readZipEntry(source: ByteSource, entry: ZipEntry, limit: number): Buffer {
  if (entry.size > limit || entry.compressedSize > limit) {
    throw invalid(
      source,
      `its member ${entry.name} has ${entry.size} bytes, more than the ${limit} expected`,
    );
  }
  const raw = readExactly(source, zipEntryOffset(source, entry), entry.compressedSize);
  const content = entry.method === 'stored' ? raw : inflateAtOnce(source, entry, raw);
  checkContent(source, entry, content.length, crc32(content));
  return content;
}

/** Says whether unpacking a member could write outside its folder or make a link: absolute, `..`, backslash, NUL, symbolic link. */
export function isUnsafeZipEntry(entry: ZipEntry): boolean {
  return (
    entry.name === '' ||
    entry.name.startsWith('/') ||
    /[\\\0]|^[a-zA-Z]:/.test(entry.name) ||
    entry.name.split('/').includes('..') ||
    (entry.mode & TYPE_MASK) === SYMLINK
  );
}

function centralEntry(source: ByteSource, record: Buffer): { entry: ZipEntry; length: number } {
  const nameLength = record.readUInt16LE(28);
  const extraLength = record.readUInt16LE(30);
  const length = 46 + nameLength + extraLength + record.readUInt16LE(32);
  if (length > record.length) throw invalid(source, 'its directory is cut short');
  const name = record.toString('utf8', 46, 46 + nameLength);
  if ((record.readUInt16LE(8) & 1) !== 0) throw invalid(source, `its member ${name} is encrypted`);
  const extra = record.subarray(46 + nameLength, 46 + nameLength + extraLength);
  const sizes = wideSizes(source, name, extra, {
    size: record.readUInt32LE(24),
    compressedSize: record.readUInt32LE(20),
    headerOffset: record.readUInt32LE(42),
  });
  const method = methodOf(source, name, record.readUInt16LE(10));
  if (method === 'stored' && sizes.size !== sizes.compressedSize) {
    throw invalid(source, `its member ${name} is stored but has two sizes`);
  }
  const madeOnUnix = record.readUInt8(5) === 3;
  const mode = madeOnUnix ? record.readUInt16LE(40) : 0;
  return { entry: { name, method, ...sizes, crc32: record.readUInt32LE(16), mode }, length };
}

function methodOf(source: ByteSource, name: string, method: number): ZipEntry['method'] {
  if (method === 0) return 'stored';
  if (method === 8) return 'deflate';
  throw invalid(source, `its member ${name} is compressed by method ${method}; 0 and 8 can be read`);
}

type Sizes = Pick<ZipEntry, 'size' | 'compressedSize' | 'headerOffset'>;

/** Fields that are full in the directory stand, in this order, in the ZIP64 extra field (id 1). */
function wideSizes(source: ByteSource, name: string, extra: Buffer, narrow: Sizes): Sizes {
  const full = (['size', 'compressedSize', 'headerOffset'] as const).filter((k) => narrow[k] === UINT32_FULL);
  if (full.length === 0) return narrow;
  const field = extraField(extra, 1);
  if (field === undefined || field.length < full.length * 8) {
    throw invalid(source, `the sizes of its member ${name} are missing`);
  }
  const wide: Partial<Record<keyof Sizes, number>> = {};
  full.forEach((key, index) => {
    wide[key] = readUInt64(source, field, index * 8);
  });
  return { ...narrow, ...wide };
}

function extraField(extra: Buffer, id: number): Buffer | undefined {
  for (let at = 0; at + 4 <= extra.length; ) {
    const length = extra.readUInt16LE(at + 2);
    if (extra.readUInt16LE(at) === id) return extra.subarray(at + 4, at + 4 + length);
    at += 4 + length;
  }
  return undefined;
}

interface DirectoryPlace {
  readonly offset: number;
  readonly size: number;
  readonly count: number;
}

function findEnd(source: ByteSource): DirectoryPlace {
  const tailLength = Math.min(source.size, 22 + UINT16_FULL);
  const tailStart = source.size - tailLength;
  const tail = readExactly(source, tailStart, tailLength);
  for (let at = tail.length - 22; at >= 0; at--) {
    if (tail.readUInt32LE(at) !== END_SIGNATURE || at + 22 + tail.readUInt16LE(at + 20) !== tail.length) {
      continue;
    }
    const narrow = {
      count: tail.readUInt16LE(at + 10),
      size: tail.readUInt32LE(at + 12),
      offset: tail.readUInt32LE(at + 16),
    };
    const isWide =
      narrow.count === UINT16_FULL || narrow.size === UINT32_FULL || narrow.offset === UINT32_FULL;
    return isWide ? (findWideEnd(source, tailStart + at) ?? narrow) : narrow;
  }
  throw invalid(source, 'it has no ZIP directory at its end (not a ZIP archive, or cut short)');
}

function findWideEnd(source: ByteSource, endOffset: number): DirectoryPlace | undefined {
  if (endOffset < 20) return undefined;
  const locator = readExactly(source, endOffset - 20, 20);
  if (locator.readUInt32LE(0) !== LOCATOR64_SIGNATURE) return undefined;
  const record = readExactly(source, readUInt64(source, locator, 8), 56);
  if (record.readUInt32LE(0) !== END64_SIGNATURE) throw invalid(source, 'its ZIP64 directory is missing');
  return {
    count: readUInt64(source, record, 32),
    size: readUInt64(source, record, 40),
    offset: readUInt64(source, record, 48),
  };
}

function readUInt64(source: ByteSource, bytes: Buffer, at: number): number {
  const value = bytes.readBigUInt64LE(at);
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw invalid(source, 'it names an impossible size');
  return Number(value);
}

function readExactly(source: ByteSource, offset: number, length: number): Buffer {
  if (offset + length > source.size) throw invalid(source, 'it is cut short');
  const bytes = Buffer.alloc(length);
  if (source.read(bytes, offset, length) !== length) throw invalid(source, 'it is cut short');
  return bytes;
}

function* rawChunks(source: ByteSource, entry: ZipEntry): Generator<Buffer> {
  const start = zipEntryOffset(source, entry);
  for (let done = 0; done < entry.compressedSize; ) {
    const chunk = readExactly(source, start + done, Math.min(CHUNK_BYTES, entry.compressedSize - done));
    yield chunk;
    done += chunk.length;
  }
}

async function* inflated(
  source: ByteSource,
  entry: ZipEntry,
  compressed: Iterable<Buffer>,
): AsyncGenerator<Buffer> {
  const inflate = createInflateRaw({ chunkSize: CHUNK_BYTES });
  const { Readable } = await import('node:stream');
  const input = Readable.from(compressed, { objectMode: false, highWaterMark: CHUNK_BYTES });
  input.on('error', (error) => inflate.destroy(error));
  input.pipe(inflate);
  try {
    for await (const chunk of inflate) yield chunk as Buffer;
  } catch (cause) {
    throw cause instanceof TrtforgeError ? cause : damagedMember(source, entry, cause);
  } finally {
    input.destroy();
    inflate.destroy();
  }
}

function inflateAtOnce(source: ByteSource, entry: ZipEntry, raw: Buffer): Buffer {
  try {
    const maxOutputLength = Math.max(1, entry.size);
    return inflateRawSync(raw, { maxOutputLength, finishFlush: constants.Z_SYNC_FLUSH });
  } catch (cause) {
    throw damagedMember(source, entry, cause);
  }
}

function checkContent(source: ByteSource, entry: ZipEntry, size: number, checksum: number): void {
  if (size !== entry.size || checksum !== entry.crc32) throw damagedMember(source, entry, undefined);
}

/** Its content is not what the directory reports. */
function damagedMember(source: ByteSource, entry: ZipEntry, cause: unknown): TrtforgeError {
  return invalid(source, `its member ${entry.name} is damaged (size or checksum is wrong)`, cause);
}

function invalid(source: ByteSource, what: string, cause?: unknown): TrtforgeError {
  return new TrtforgeError('TF_ARCHIVE_INVALID', `${source.path} cannot be read as an archive: ${what}.`, {
    cause,
  });
}

/**
 * A stored member as a source of its own, to be read piece by piece. Its CRC-32 is taken of bytes as they pass for the first time, in order from the
 * beginning; the read that completes them throws TF_ARCHIVE_INVALID where the checksum is wrong. Bytes that are skipped leave it unchecked.
 */
export function storedMember(source: ByteSource, entry: ZipEntry): ByteSource {
  const start = zipEntryOffset(source, entry);
  let passed = 0;
  let checksum = 0;
  return {
    path: `${entry.name} in ${source.path}`,
    size: entry.size,
    read: (target, position, length) => {
      const wanted = Math.max(0, Math.min(length, entry.size - position));
      const count = source.read(target, start + position, wanted);
      // Never an empty part: zlib's crc32 would forget the ones before it.
      if (position <= passed && passed < position + count) {
        checksum = crc32(target.subarray(passed - position, count), checksum);
        passed = position + count;
        if (passed === entry.size && checksum !== entry.crc32) throw damagedMember(source, entry, undefined);
      }
      return count;
    },
    close: () => {},
  };
}

/** Compressed bytes that are looked at first: a few headers' worth. */
const FIRST_LOOK = 4096;

/** The first bytes of a compressed member, `length` of them or more, or all there are; unpacks little else, and checks nothing. Throws TF_ARCHIVE_INVALID. */
export function memberStart(source: ByteSource, entry: ZipEntry, length: number): Buffer {
  const offset = zipEntryOffset(source, entry);
  for (let look = FIRST_LOOK; ; look *= 4) {
    const packed = Buffer.alloc(Math.min(look, entry.compressedSize));
    source.read(packed, offset, packed.length);
    const unpacked = inflatedStart(source, entry, packed);
    if (unpacked.length >= length || packed.length === entry.compressedSize) return unpacked;
  }
}

/** With Z_SYNC_FLUSH what is cut short gives what is there, instead of being an error. */
function inflatedStart(source: ByteSource, entry: ZipEntry, packed: Buffer): Buffer {
  try {
    return inflateRawSync(packed, { finishFlush: constants.Z_SYNC_FLUSH });
  } catch (cause) {
    throw damagedMember(source, entry, cause);
  }
}
