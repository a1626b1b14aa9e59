import { isAscii } from 'node:buffer';
import type { ByteSource } from '../../../base/files/byte-source.js';
import { pythonJson } from '../../../base/text/lenient-json.js';
import { TrtforgeError } from '../../../errors.js';

/** Some elements of one list of a file, in order. */
export interface ListPart {
  /** The key of the list, or '' for a file that is a list itself. */
  readonly list: string;
  /** Index of the first of these elements in the list. */
  readonly first: number;
  readonly elements: readonly unknown[];
}

/** Elements are parsed in parts of about this size: larger ones need more memory, smaller ones more time. */
const PART_BYTES = 1 << 17;
/** The largest element, and the largest text outside of lists. */
const LARGEST_BYTES = 64 << 20;
/** Deeper than any annotation; deeper data could exhaust the stack. */
const MAX_DEPTH = 32;
const [QUOTE, COMMA, LIST, LIST_END, BACKSLASH, OBJECT, OBJECT_END] = [...Buffer.from('",[]\\{}')];

/**
 * Reads a JSON file that is a list, or an object of lists, in memory for a part of it. NaN and Infinity are read as Python writes them. Every byte is
 * checked to be JSON. Throws TF_EVAL_DATA for what is not, for more than 32 levels and for elements of more than 64 MiB.
 */
export class ListReader {
  readonly #source: ByteSource;
  #buffer: Buffer;
  /** Place of the first byte of the buffer in the file, and how many bytes are there. */
  #offset = 0;
  #held = 0;
  /** What has been scanned, and what has been handed out, in the buffer. */
  #at = 0;
  #start = 0;
  #depth = 0;
  #inString = false;
  /** The last string at the level of the file's keys. */
  #key: readonly [number, number] = [0, 0];
  /** The list that the scanner is in: its key, its level (0 outside of lists) and how many of its elements were handed out. */
  #list = '';
  #listDepth = 0;
  #count = 0;
  readonly #seen = new Set<string>();
  /** The file without the elements of its lists. */
  #rest = '';

  constructor(source: ByteSource) {
    this.#source = source;
    this.#buffer = Buffer.allocUnsafeSlow(Math.min(4 * PART_BYTES, source.size + 1));
  }

  /** The next elements, or null at the end of the file. */
  next(): ListPart | null {
    for (;;) {
      const part = this.#scan();
      if (part !== null) return part;
      if (!this.#refill()) return null;
    }
  }

  /** The file without the elements of its lists, once `next` has returned null. */
  rest(): unknown {
    if (this.#depth > 0) throw this.#fault(`it was cut short after ${this.#source.size} bytes`);
    this.#keepRest(this.#held);
    return this.#parsed(this.#rest, 'it is not JSON outside of its lists');
  }

  #scan(): ListPart | null {
    const buffer = this.#buffer;
    const held = this.#held;
    let at = this.#at;
    let inString = this.#inString;
    while (at < held) {
      const byte = buffer[at++];
      if (inString) {
        if (byte === BACKSLASH) at++;
        else if (byte === QUOTE) {
          inString = false;
          if (this.#depth === 1) this.#key = [this.#key[0], at];
        }
      } else if (byte === QUOTE) {
        inString = true;
        if (this.#depth === 1) this.#key = [at - 1, at];
      } else if (byte === COMMA) {
        if (this.#depth === this.#listDepth && at - this.#start > PART_BYTES) {
          this.#at = at;
          this.#inString = false;
          return this.#part(at - 1);
        }
      } else if (byte === LIST || byte === OBJECT) {
        if (++this.#depth > MAX_DEPTH) throw this.#fault(`it is deeper than ${MAX_DEPTH} levels`);
        if (byte === LIST && this.#listDepth === 0 && this.#depth <= 2) this.#enter(at);
      } else if (byte === LIST_END || byte === OBJECT_END) {
        this.#depth--;
        if (this.#depth < 0) throw this.#fault(`it is not JSON at byte ${this.#offset + at - 1}`);
        if (this.#depth < this.#listDepth) {
          this.#at = at;
          this.#inString = false;
          this.#listDepth = 0;
          return this.#part(at - 1);
        }
      }
    }
    this.#at = at;
    this.#inString = inString;
    return null;
  }

  #enter(at: number): void {
    const [from, to] = this.#key;
    const key = this.#depth === 1 ? '' : this.#parsed(this.#text(from, to), 'its keys are not JSON');
    this.#list = String(key);
    if (this.#seen.has(this.#list)) throw this.#fault(`it has ${nameOf(this.#list)} twice`);
    this.#seen.add(this.#list);
    this.#listDepth = this.#depth;
    this.#count = 0;
    this.#keepRest(at);
  }

  /** The elements up to `end`. All parts of a list but the first begin with the comma before their first element. */
  #part(end: number): ListPart {
    const first = this.#count;
    const text = this.#text(this.#start, end);
    const values = this.#parsed(
      first === 0 ? `[${text}]` : `[0${text}]`,
      `its ${nameOf(this.#list)} is not JSON after ${first} elements`,
    ) as unknown[];
    this.#start = end;
    const elements = first === 0 ? values : values.slice(1);
    this.#count += elements.length;
    return { list: this.#list, first, elements };
  }

  #keepRest(end: number): void {
    this.#rest += this.#text(this.#start, Math.min(end, this.#held));
    this.#start = end;
    if (this.#rest.length > LARGEST_BYTES) throw this.#tooLarge('what stands outside of its lists');
  }

  #refill(): boolean {
    const kept = Math.min(this.#start, this.#held);
    if (kept > 0) {
      this.#buffer.copyWithin(0, kept, this.#held);
      this.#key = [this.#key[0] - kept, this.#key[1] - kept];
      this.#offset += kept;
      this.#held -= kept;
      this.#at -= kept;
      this.#start -= kept;
    }
    if (this.#held === this.#buffer.length) {
      if (this.#held >= LARGEST_BYTES) throw this.#tooLarge(`one part of ${nameOf(this.#list)}`);
      const larger = Buffer.allocUnsafeSlow(2 * this.#held);
      this.#buffer.copy(larger);
      this.#buffer = larger;
    }
    const room = this.#buffer.length - this.#held;
    const count = this.#source.read(this.#buffer.subarray(this.#held), this.#offset + this.#held, room);
    this.#held += count;
    return count > 0;
  }

  #text(from: number, to: number): string {
    const bytes = this.#buffer.subarray(from, to);
    return bytes.toString(isAscii(bytes) ? 'latin1' : 'utf8');
  }

  #parsed(text: string, why: string): unknown {
    try {
      return pythonJson(text);
    } catch (cause) {
      throw this.#fault(why, cause);
    }
  }

  #tooLarge = (what: string): TrtforgeError =>
    this.#fault(`${what} has more than ${LARGEST_BYTES >> 20} MiB`);

  #fault = (why: string, cause?: unknown): TrtforgeError =>
    new TrtforgeError('TF_EVAL_DATA', `${this.#source.path} cannot be read: ${why}.`, { cause });
}

const nameOf = (list: string): string => (list === '' ? 'list' : `list "${list.slice(0, 60)}"`);
