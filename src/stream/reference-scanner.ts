import type { ByteSource } from '../system/byte-source.js';
import { LineFault } from './reference-fault.js';
import { type NumberList, NumberListBuilder } from './reference-numbers.js';

/** A long string of the file, left where it is: from `start` to `end`, the quotes not counted. */
export class TextSpan {
  readonly start: number;
  readonly end: number;
  /** There is a backslash in it, so its bytes are not its characters. */
  readonly escaped: boolean;
  constructor(start: number, end: number, escaped: boolean) {
    this.start = start;
    this.end = end;
    this.escaped = escaped;
  }
}

export type LineNode = null | boolean | number | string | TextSpan | LineNode[] | Map<string, LineNode>;
/** A tensor as it stands in a line: an object that describes it, or numbers. */
export type TensorNode = Map<string, LineNode> | NumberList;

export interface ScannedLine {
  /** Everything but the tensors. */
  readonly fields: ReadonlyMap<string, LineNode>;
  readonly inputs: ReadonlyMap<string, TensorNode>;
  readonly outputs: ReadonlyMap<string, TensorNode>;
}

/** Strings from here on are left in the file. */
const LONG_STRING = 4096;
/**
 * Over the 1,031,913 bytes from which V8 keeps a string outside its heap; larger windows leave the processor's cache.
 * Measured: 256 KiB 1.1 GB/s, 1 MiB 2.9 GB/s, 8 MiB 2.2 GB/s.
 */
export const WINDOW_BYTES = 1 << 20;
/** A literal is never longer, so one that does not fit is none. */
const LOOKAHEAD = 64;
/** Deeper and larger than any line of a reference; one that is made to hurt stops here. */
const MAX_DEPTH = 32;
const MAX_NODES = 1_000_000;

const byteOf = (character: string): number => character.charCodeAt(0);
const QUOTE = byteOf('"');
const BACKSLASH = byteOf('\\');
const NEWLINE = 0x0a;
const OPEN_OBJECT = byteOf('{');
const OPEN_LIST = byteOf('[');
const CLOSE_OBJECT = byteOf('}');
const CLOSE_LIST = byteOf(']');
const COMMA = byteOf(',');
const COLON = byteOf(':');

/** Reads the lines of a JSONL file one after the other, its long strings left in the file: the memory needed does not depend on the length of a line. */
export class LineScanner {
  readonly #source: ByteSource;
  readonly #window = Buffer.allocUnsafeSlow(WINDOW_BYTES);
  readonly #numbers = new NumberListBuilder();
  #windowStart = 0;
  #windowLength = 0;
  #at = 0;
  #nodes = 0;
  #line = 0;

  constructor(source: ByteSource) {
    this.#source = source;
  }

  /** Number of the line last begun, from 1. */
  get line(): number {
    return this.#line;
  }

  /** The next line that is not blank, or null at the end. Throws LineFault; the scanner then stands on that line until `skipLine`. */
  next(): ScannedLine | null {
    for (;;) {
      this.#line++;
      const first = this.#skipSpace();
      if (first < 0) return null;
      if (first !== NEWLINE) break;
      this.#at++;
    }
    this.#nodes = 0;
    const line = this.#topLevel();
    const after = this.#skipSpace();
    if (after >= 0 && after !== NEWLINE) throw new LineFault('something follows the end of its object');
    if (after === NEWLINE) this.#at++;
    return line;
  }

  /** Goes to the end of a line that could not be read. */
  skipLine(): void {
    for (;;) {
      const part = this.#bytesAt(this.#at);
      const newline = part.indexOf(NEWLINE);
      this.#at += newline < 0 ? part.length : newline + 1;
      if (newline >= 0 || part.length === 0) return;
    }
  }

  /** The text of a string that was left in the file. */
  textOf(span: TextSpan): string {
    const bytes = Buffer.allocUnsafe(span.end - span.start);
    this.#source.read(bytes, span.start, bytes.length);
    return parseText(bytes);
  }

  #topLevel(): ScannedLine {
    const fields = new Map<string, LineNode>();
    const tensors = { inputs: new Map<string, TensorNode>(), outputs: new Map<string, TensorNode>() };
    this.#object((name) => {
      if (name === 'inputs' || name === 'outputs') {
        const side = tensors[name];
        this.#object((tensor) => side.set(tensor, this.#tensor()));
      } else fields.set(name, this.#value(1));
    });
    return { fields, ...tensors };
  }

  #tensor(): TensorNode {
    const first = this.#skipSpace();
    if (first === OPEN_OBJECT) return this.#map(1);
    if (first === OPEN_LIST) return this.#numberList();
    this.#numbers.begin();
    this.#numbers.add(Buffer.from(this.#word()));
    return this.#numbers.end();
  }

  #value(depth: number): LineNode {
    if (depth > MAX_DEPTH || ++this.#nodes > MAX_NODES)
      throw new LineFault('it is deeper or larger than any');
    const first = this.#skipSpace();
    if (first === OPEN_OBJECT) return this.#map(depth);
    if (first === OPEN_LIST) return this.#list(depth);
    if (first === QUOTE) return this.#string();
    return this.#literal();
  }

  #map(depth: number): Map<string, LineNode> {
    const entries = new Map<string, LineNode>();
    this.#object((name) => entries.set(name, this.#value(depth + 1)));
    return entries;
  }

  #object(entry: (name: string) => void): void {
    this.#expect(OPEN_OBJECT, 'an object');
    if (this.#closes(CLOSE_OBJECT)) return;
    do {
      if (this.#skipSpace() !== QUOTE) throw this.#missing('a name');
      const name = this.#string();
      if (typeof name !== 'string') throw new LineFault('a name is longer than any');
      this.#expect(COLON, 'a colon');
      entry(name);
    } while (this.#continues(CLOSE_OBJECT));
  }

  #list(depth: number): LineNode[] {
    const items: LineNode[] = [];
    this.#at++;
    if (this.#closes(CLOSE_LIST)) return items;
    do items.push(this.#value(depth + 1));
    while (this.#continues(CLOSE_LIST));
    return items;
  }

  #numberList(): NumberList {
    this.#numbers.begin();
    this.#numbersAt(0);
    return this.#numbers.end();
  }

  #numbersAt(depth: number): void {
    if (depth >= MAX_DEPTH) throw new LineFault('its lists are deeper than any');
    this.#at++;
    let count = 0;
    if (!this.#closes(CLOSE_LIST)) {
      if (this.#skipSpace() === OPEN_LIST) {
        do {
          if (this.#skipSpace() !== OPEN_LIST) throw new LineFault('a list holds both lists and numbers');
          this.#numbersAt(depth + 1);
          count++;
        } while (this.#continues(CLOSE_LIST));
      } else count = this.#innermost();
    }
    this.#numbers.close(depth, count);
  }

  /** The numbers up to the next bracket, a window at a time. */
  #innermost(): number {
    let count = 0;
    for (;;) {
      const part = this.#lineBytes();
      const bracket = part.indexOf(CLOSE_LIST);
      const end = bracket >= 0 ? bracket : part.lastIndexOf(COMMA);
      if (end < 0) throw this.#missing('the end of a list');
      count += this.#numbers.add(part.subarray(0, end));
      this.#at += end + 1;
      if (bracket >= 0) return count;
    }
  }

  #expect(byte: number, what: string): void {
    if (this.#skipSpace() !== byte) throw this.#missing(what);
    this.#at++;
  }

  #closes(bracket: number): boolean {
    if (this.#skipSpace() !== bracket) return false;
    this.#at++;
    return true;
  }

  #continues(bracket: number): boolean {
    const next = this.#skipSpace();
    if (next !== COMMA && next !== bracket) throw this.#missing('a comma or a bracket');
    this.#at++;
    return next === COMMA;
  }

  #string(): string | TextSpan {
    const start = ++this.#at;
    const span = this.#closingQuote(start);
    this.#at = span.end + 1;
    if (span.end - start >= LONG_STRING) return span;
    const short = this.#bytesAt(start).subarray(0, span.end - start);
    return short.length === span.end - start && short.indexOf(BACKSLASH) < 0
      ? plainText(short)
      : this.textOf(span);
  }

  /** Looks for quotes, not at every byte: strings may have gigabytes. */
  #closingQuote(start: number): TextSpan {
    let escaped = false;
    for (let at = start; ; ) {
      const part = this.#bytesAt(at);
      if (part.length === 0) throw this.#endsWithin('a string');
      const found = endWithin(part);
      escaped ||= found.escaped;
      if (found.quote >= 0) return new TextSpan(start, at + found.quote, escaped);
      if (found.breaksOff) throw this.#endsWithin('a string');
      at += found.next;
    }
  }

  #literal(): boolean | number | null {
    const word = this.#word();
    return Object.hasOwn(words, word) ? (words[word] ?? null) : Number(word);
  }

  /** The next number or name of a value. */
  #word(): string {
    const word = /^[-+\w.]+/.exec(this.#bytesAt(this.#at).toString('latin1', 0, LOOKAHEAD))?.[0] ?? '';
    if (!Object.hasOwn(words, word) && !NUMBER.test(word)) throw this.#missing('a value');
    this.#at += word.length;
    return word;
  }

  /** The next byte that is not white space, a line break included, or -1 at the end of the file. */
  #skipSpace(): number {
    for (;;) {
      const part = this.#bytesAt(this.#at);
      if (part.length === 0) return -1;
      for (let i = 0; i < part.length; i++) {
        const byte = part[i]!;
        if (byte === 0x20 || byte === 0x0d || byte === 0x09) continue;
        this.#at += i;
        return byte;
      }
      this.#at += part.length;
    }
  }

  /** What is there of the line: many numbers at a time. */
  #lineBytes(): Buffer {
    const part = this.#bytesAt(this.#at, LONG_STRING);
    const newline = part.indexOf(NEWLINE);
    return newline < 0 ? part : part.subarray(0, newline);
  }

  /** What is there from `position` on: at least so many bytes, unless the file ends. */
  #bytesAt(position: number, atLeast = LOOKAHEAD): Buffer {
    const end = this.#windowStart + this.#windowLength;
    const isThere = position + atLeast <= end || (position <= end && end === this.#source.size);
    if (position < this.#windowStart || !isThere) {
      const length = Math.max(0, Math.min(WINDOW_BYTES, this.#source.size - position));
      this.#windowStart = position;
      this.#windowLength = this.#source.read(this.#window, position, length);
    }
    return this.#window.subarray(position - this.#windowStart, this.#windowLength);
  }

  #missing(what: string): LineFault {
    const next = this.#skipSpace();
    if (next < 0 || next === NEWLINE) return this.#endsWithin('its object');
    return new LineFault(`${what} is missing at byte ${this.#at}`);
  }

  #endsWithin(what: string): LineFault {
    return new LineFault(`it ends within ${what}: it was cut short`);
  }
}

interface StringEnd {
  /** Where the closing quote is, or -1. */
  readonly quote: number;
  /** The line ends before it. */
  readonly breaksOff: boolean;
  /** Where to go on when neither is so. */
  readonly next: number;
  readonly escaped: boolean;
}

/** Where a string that goes on at the beginning of `part` ends. Each byte is looked at a fixed number of times, however many escapes there are. */
function endWithin(part: Buffer): StringEnd {
  const newline = part.indexOf(NEWLINE);
  const limit = newline < 0 ? part.length : newline;
  const breaksOff = newline >= 0;
  let escaped = false;
  let quote = -1;
  for (let from = 0; from < limit; ) {
    if (quote < from) {
      const next = part.indexOf(QUOTE, from);
      quote = next < 0 || next > limit ? limit : next;
    }
    const slash = part.subarray(from, quote).indexOf(BACKSLASH);
    if (slash < 0) return { quote: quote < limit ? quote : -1, breaksOff, next: limit, escaped };
    escaped = true;
    from += slash + 2;
    if (from > limit) return { quote: -1, breaksOff, next: from, escaped };
  }
  return { quote: -1, breaksOff, next: limit, escaped };
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

const words: Readonly<Record<string, boolean | number | null>> = {
  true: true,
  false: false,
  null: null,
  // Python writes these, though JSON has none.
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
};

function plainText(bytes: Buffer): string {
  for (const byte of bytes) if (byte < 0x20) throw new LineFault('a string holds a control character');
  return bytes.toString('utf8');
}

function parseText(bytes: Buffer): string {
  try {
    return JSON.parse(`"${bytes.toString('utf8')}"`) as string;
  } catch {
    throw new LineFault('a string is not JSON');
  }
}
