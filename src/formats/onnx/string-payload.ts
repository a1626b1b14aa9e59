import type { ByteSource } from '../../base/files/byte-source.js';
import type { Segment } from './payload.js';
import { readTag } from './rewrite.js';
import { WireReader } from './wire.js';

/** How many strings the records hold, and their bytes without lengths. */
export function stringBytes(
  source: ByteSource,
  segments: readonly Segment[],
): { count: number; bytes: number } {
  let count = 0;
  let bytes = 0;
  for (const { length } of stringRanges(source, segments)) {
    count++;
    bytes += length;
  }
  return { count, bytes };
}

/** The strings one after the other, each as a 4-byte little-endian length and its bytes. */
export function* stringChunks(
  source: ByteSource,
  segments: readonly Segment[],
  chunkBytes: number,
): Generator<Uint8Array> {
  const out = new Uint8Array(chunkBytes);
  let filled = 0;
  for (const { start, length } of stringRanges(source, segments)) {
    const value = new Uint8Array(4 + length);
    new DataView(value.buffer).setUint32(0, length, true);
    source.read(value.subarray(4), start, length);
    for (let done = 0; done < value.length; ) {
      const count = Math.min(value.length - done, out.length - filled);
      out.set(value.subarray(done, done + count), filled);
      done += count;
      filled += count;
      if (filled === out.length) {
        yield out;
        filled = 0;
      }
    }
  }
  if (filled > 0) yield out.subarray(0, filled);
}

function* stringRanges(
  source: ByteSource,
  segments: readonly Segment[],
): Generator<{ start: number; length: number }> {
  const reader = new WireReader(source);
  for (const segment of segments) {
    const end = segment.offset + segment.length;
    reader.position = segment.offset;
    while (reader.position < end) {
      const recordStart = reader.position;
      const { wireType } = readTag(reader, end);
      const start = reader.skip(wireType, recordStart, end);
      yield { start, length: reader.position - start };
    }
  }
}
