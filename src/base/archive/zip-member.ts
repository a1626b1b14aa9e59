import { constants, crc32, inflateRawSync } from 'node:zlib';
import type { ByteSource } from '../files/byte-source.js';
import { damagedMember, type ZipEntry, zipEntryOffset } from './zip.js';

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
