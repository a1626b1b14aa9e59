import type { ByteSource } from '../../../base/files/byte-source.js';
import type { NumberBytes } from './numbers.js';

/**
 * Over the 1,031,913 bytes from which V8 keeps a string outside its heap; larger windows leave the processor's cache.
 * Measured: 256 KiB 1.1 GB/s, 1 MiB 2.9 GB/s, 8 MiB 2.2 GB/s.
 */
const WINDOW_BYTES = 1 << 20;
/** A literal is never longer, so one that does not fit is none. */
export const LOOKAHEAD = 64;
/** Behind the last byte: a zero, which is no part of anything, and room to read words. */
const SENTINEL_BYTES = 16;

/** A part of a file in memory that goes along with a reader. */
export class ByteWindow implements NumberBytes {
  readonly bytes = Buffer.allocUnsafeSlow(WINDOW_BYTES + SENTINEL_BYTES);
  readonly view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.length);
  readonly #source: ByteSource;
  #start = 0;
  #length = 0;
  /** Where the reader is in the file. */
  at = 0;

  constructor(source: ByteSource) {
    this.#source = source;
    this.bytes.fill(0, 0, SENTINEL_BYTES);
  }

  /** Bytes in the window: positions in it end there. */
  get length(): number {
    return this.#length;
  }

  /** Nothing of the file comes behind the window. */
  get isLast(): boolean {
    return this.#start + this.#length === this.#source.size;
  }

  /** Where the reader is in the window, with at least so many bytes behind it unless the file ends. */
  place(atLeast: number): number {
    return this.#reach(this.at, atLeast);
  }

  /** What is there from `position` of the file on: at least so many bytes, unless the file ends. */
  from(position: number, atLeast = LOOKAHEAD): Buffer {
    const place = this.#reach(position, atLeast);
    return this.bytes.subarray(place, Math.max(place, this.#length));
  }

  /** The next byte that is not white space, a line break included, or -1 at the end of the file. */
  skipSpace(): number {
    for (;;) {
      const start = this.#reach(this.at, 1);
      for (let place = start; place < this.#length; place++) {
        const byte = this.bytes[place]!;
        if (byte === 0x20 || byte === 0x0d || byte === 0x09) continue;
        this.at += place - start;
        return byte;
      }
      if (start >= this.#length) return -1;
      this.at += this.#length - start;
    }
  }

  /** The bytes of the file, read anew into memory of their own. */
  read(start: number, end: number): Buffer {
    const bytes = Buffer.allocUnsafe(end - start);
    this.#source.read(bytes, start, bytes.length);
    return bytes;
  }

  #reach(position: number, atLeast: number): number {
    const end = this.#start + this.#length;
    const isThere = position + atLeast <= end || (position <= end && end === this.#source.size);
    if (position < this.#start || !isThere) {
      const length = Math.max(0, Math.min(WINDOW_BYTES, this.#source.size - position));
      this.#start = position;
      this.#length = this.#source.read(this.bytes, position, length);
      this.bytes.fill(0, this.#length, this.#length + SENTINEL_BYTES);
    }
    return position - this.#start;
  }
}
