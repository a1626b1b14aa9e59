import type { ByteSource } from '../../base/files/byte-source.js';
import { readTag } from './rewrite.js';
import { type Segment, WireReader } from './wire.js';

/** The encoding of one value in its segment, and what becomes of it. */
export type ValueKind =
  | { readonly wire: 'fixed'; readonly width: 4 | 8 }
  /** The low `width` bytes of the varint: negative numbers are sign-extended on the wire, so they come out right at every width. */
  | { readonly wire: 'varint'; readonly width: 1 | 2 | 4 | 8 };

const READ_BYTES = 256 << 10;

/**
 * The values of typed payload fields as little-endian bytes, in constant memory. Chunks have `chunkBytes` bytes (a multiple of 8) but for the last;
 * the buffer is used again for the next one.
 */
export function* segmentValues(
  source: ByteSource,
  segments: readonly Segment[],
  kind: ValueKind,
  chunkBytes: number,
): Generator<Uint8Array> {
  const out = new Uint8Array(chunkBytes);
  const decoder = new ValueDecoder(kind, out);
  const window = new Uint8Array(READ_BYTES);
  for (const segment of segments) {
    decoder.begin(segment.encoding === 'records');
    for (let done = 0; done < segment.length; ) {
      const count = source.read(
        window,
        segment.offset + done,
        Math.min(window.length, segment.length - done),
      );
      if (count === 0) return;
      done += count;
      for (let at = 0; at < count; ) {
        at = decoder.feed(window, at, count);
        if (decoder.filled === out.length) {
          yield out;
          decoder.filled = 0;
        }
      }
    }
  }
  if (decoder.filled > 0) yield out.subarray(0, decoder.filled);
}

/** Decodes values byte by byte, so that they may straddle reads. */
class ValueDecoder {
  filled = 0;
  readonly #kind: ValueKind;
  readonly #out: Uint8Array;
  #tagged = false;
  #inTag = false;
  #low = 0;
  #high = 0;
  #bits = 0;

  constructor(kind: ValueKind, out: Uint8Array) {
    this.#kind = kind;
    this.#out = out;
  }

  begin(tagged: boolean): void {
    this.#tagged = tagged;
    this.#inTag = tagged;
    this.#low = 0;
    this.#high = 0;
    this.#bits = 0;
  }

  /** Consumes bytes from `at` until `end` or until the output is full; returns where it stopped. */
  feed(input: Uint8Array, at: number, end: number): number {
    const fixed = this.#kind.wire === 'fixed';
    while (at < end && this.filled < this.#out.length) {
      const byte = input[at++]!;
      if (this.#inTag) {
        if (byte < 128) this.#inTag = false;
      } else if (fixed) {
        this.#out[this.filled++] = byte;
        this.#bits += 8;
        if (this.#bits === this.#kind.width * 8) this.#nextValue();
      } else {
        this.#accumulate(byte);
      }
    }
    return at;
  }

  #accumulate(byte: number): void {
    const seven = byte & 127;
    if (this.#bits < 28) this.#low |= seven << this.#bits;
    else if (this.#bits === 28) {
      this.#low |= seven << 28;
      this.#high = seven >> 4;
    } else if (this.#bits < 63) this.#high |= seven << (this.#bits - 32);
    else if (this.#bits === 63) this.#high |= seven << 31;
    this.#bits += 7;
    if (byte >= 128) return;
    const { width } = this.#kind;
    for (let index = 0; index < width; index++) {
      const word = index < 4 ? this.#low : this.#high;
      this.#out[this.filled++] = word >>> ((index & 3) * 8);
    }
    this.#nextValue();
  }

  #nextValue(): void {
    this.#low = 0;
    this.#high = 0;
    this.#bits = 0;
    this.#inTag = this.#tagged;
  }
}

/** Number of strings in the records, and their bytes without lengths. */
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
