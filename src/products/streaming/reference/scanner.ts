import type { ByteSource } from '../../../base/files/byte-source.js';
import { jsonWords } from '../../../formats/tensor/json-spans.js';
import { ByteWindow, LOOKAHEAD } from './byte-window.js';
import { LineFault } from './fault.js';
import { LONGEST_NUMBER, type NumberList, NumberListReader } from './numbers.js';
import { endWithin, NEWLINE, QUOTE, TextSpan, textOf } from './scanned-text.js';

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
/** Deeper and larger than any line of a reference; one that is made to hurt stops here. */
const MAX_DEPTH = 32;
const MAX_NODES = 1_000_000;

const byteOf = (character: string): number => character.charCodeAt(0);
const OPEN_OBJECT = byteOf('{');
const OPEN_LIST = byteOf('[');
const CLOSE_OBJECT = byteOf('}');
const CLOSE_LIST = byteOf(']');
const COMMA = byteOf(',');
const COLON = byteOf(':');

/** Reads the lines of a JSONL file one after the other, its long strings left in the file: the memory needed does not depend on the length of a line. */
export class LineScanner {
  readonly #window: ByteWindow;
  readonly #numbers = new NumberListReader();
  #nodes = 0;
  #line = 0;

  constructor(source: ByteSource) {
    this.#window = new ByteWindow(source);
  }

  /** Number of the line last begun, from 1. */
  get line(): number {
    return this.#line;
  }

  /** The next line that is not blank, or null at the end. Throws LineFault; the scanner then stands on that line until `skipLine`. */
  next(): ScannedLine | null {
    for (;;) {
      this.#line++;
      const first = this.#window.skipSpace();
      if (first < 0) return null;
      if (first !== NEWLINE) break;
      this.#window.at++;
    }
    this.#nodes = 0;
    const line = this.#topLevel();
    const after = this.#window.skipSpace();
    if (after >= 0 && after !== NEWLINE) throw new LineFault('something follows the end of its object');
    if (after === NEWLINE) this.#window.at++;
    return line;
  }

  /** Goes to the end of a line that could not be read. */
  skipLine(): void {
    for (;;) {
      const part = this.#window.from(this.#window.at);
      const newline = part.indexOf(NEWLINE);
      this.#window.at += newline < 0 ? part.length : newline + 1;
      if (newline >= 0 || part.length === 0) return;
    }
  }

  /** The text of a string that was left in the file. */
  textOf({ start, end }: TextSpan): string {
    return textOf(this.#window.read(start, end));
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
    const first = this.#window.skipSpace();
    if (first === OPEN_OBJECT) return this.#map(1);
    if (first === OPEN_LIST) return this.#numberList();
    return this.#numbers.scalar(this.#word());
  }

  #value(depth: number): LineNode {
    if (depth > MAX_DEPTH || ++this.#nodes > MAX_NODES)
      throw new LineFault('it is deeper or larger than any');
    const first = this.#window.skipSpace();
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
      if (this.#window.skipSpace() !== QUOTE) throw this.#missing('a name');
      const name = this.#string();
      if (typeof name !== 'string') throw new LineFault('a name is longer than any');
      this.#expect(COLON, 'a colon');
      entry(name);
    } while (this.#continues(CLOSE_OBJECT));
  }

  #list(depth: number): LineNode[] {
    const items: LineNode[] = [];
    this.#window.at++;
    if (this.#closes(CLOSE_LIST)) return items;
    do items.push(this.#value(depth + 1));
    while (this.#continues(CLOSE_LIST));
    return items;
  }

  #numberList(): NumberList {
    const { bytes, view } = this.#window;
    this.#numbers.begin();
    for (;;) {
      const start = this.#window.place(2 * LONGEST_NUMBER);
      const end = this.#numbers.read({ bytes, view }, start, this.#window.length, this.#window.isLast);
      this.#window.at += end - start;
      if (this.#numbers.isDone) return this.#numbers.end();
      if (end === start) throw this.#missing('the end of a list');
    }
  }

  #expect(byte: number, what: string): void {
    if (this.#window.skipSpace() !== byte) throw this.#missing(what);
    this.#window.at++;
  }

  #closes(bracket: number): boolean {
    if (this.#window.skipSpace() !== bracket) return false;
    this.#window.at++;
    return true;
  }

  #continues(bracket: number): boolean {
    const next = this.#window.skipSpace();
    if (next !== COMMA && next !== bracket) throw this.#missing('a comma or a bracket');
    this.#window.at++;
    return next === COMMA;
  }

  #string(): string | TextSpan {
    const start = ++this.#window.at;
    const span = this.#closingQuote(start);
    this.#window.at = span.end + 1;
    if (span.end - start >= LONG_STRING) return span;
    const short = this.#window.from(start).subarray(0, span.end - start);
    return short.length === span.end - start ? textOf(short) : this.textOf(span);
  }

  /** Looks for quotes, not at every byte: strings may have gigabytes. */
  #closingQuote(start: number): TextSpan {
    let escaped = false;
    for (let at = start; ; ) {
      const part = this.#window.from(at);
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
    return Object.hasOwn(jsonWords, word) ? (jsonWords[word] ?? null) : Number(word);
  }

  /** The next number or name of a value. */
  #word(): string {
    const word =
      /^[-+\w.]+/.exec(this.#window.from(this.#window.at).toString('latin1', 0, LOOKAHEAD))?.[0] ?? '';
    if (!Object.hasOwn(jsonWords, word) && !NUMBER.test(word)) throw this.#missing('a value');
    this.#window.at += word.length;
    return word;
  }

  #missing(what: string): LineFault {
    const next = this.#window.skipSpace();
    if (next < 0 || next === NEWLINE) return this.#endsWithin('its object');
    return new LineFault(`${what} is missing at byte ${this.#window.at}`);
  }

  #endsWithin(what: string): LineFault {
    return new LineFault(`it ends within ${what}: it was cut short`);
  }
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;
