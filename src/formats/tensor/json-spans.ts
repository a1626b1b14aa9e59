import type { ByteSource } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';

/** A long string of a JSON file, left where it is: from `start` to `end`, the quotes not counted. */
export class JsonSpan {
  readonly start: number;
  readonly end: number;
  constructor(start: number, end: number) {
    this.start = start;
    this.end = end;
  }
}

export type JsonNode = null | boolean | number | string | JsonSpan | JsonNode[] | Map<string, JsonNode>;

/** Strings from here on are left in the file. */
const LONG_STRING = 4096;
const WINDOW = 1 << 20;
/** Deeper and larger than any file of tensors is; a file that is made to hurt stops here. */
const MAX_DEPTH = 64;
const MAX_NODES = 4_000_000;

const code = (character: string): number => character.charCodeAt(0);
const QUOTE = code('"');
const BACKSLASH = code('\\');

/**
 * Reads a JSON file whose bulk is in long strings (encoded tensors), in constant memory: those stay in the file as spans. NaN and Infinity, which Python
 * writes, are numbers. Throws TF_TENSOR_FILE_INVALID.
 */
export function readJsonSpans(source: ByteSource): JsonNode {
  const scanner = new Scanner(source);
  const value = scanner.value(0);
  scanner.end();
  return value;
}

/** The text of a string that was left in the file. */
export function spanText(source: ByteSource, span: JsonSpan): string {
  const bytes = Buffer.alloc(span.end - span.start);
  source.read(bytes, span.start, bytes.length);
  try {
    return JSON.parse(`"${bytes.toString('utf8')}"`) as string;
  } catch {
    throw invalid(source.path, span.start, 'a string is not JSON');
  }
}

class Scanner {
  readonly #source: ByteSource;
  readonly #window = Buffer.alloc(WINDOW);
  #windowStart = 0;
  #windowLength = 0;
  #at = 0;
  #nodes = 0;

  constructor(source: ByteSource) {
    this.#source = source;
  }

  value(depth: number): JsonNode {
    if (depth > MAX_DEPTH || ++this.#nodes > MAX_NODES)
      throw this.#invalid('it is deeper or larger than any');
    const next = this.#skipSpace();
    if (next === code('{')) return this.#object(depth);
    if (next === code('[')) return this.#array(depth);
    if (next === QUOTE) return this.#string();
    return this.#literal();
  }

  end(): void {
    if (this.#skipSpace() >= 0) throw this.#invalid('something follows its end');
  }

  #object(depth: number): Map<string, JsonNode> {
    const entries = new Map<string, JsonNode>();
    this.#at++;
    if (this.#closes('}')) return entries;
    for (;;) {
      if (this.#skipSpace() !== QUOTE) throw this.#invalid('a name is missing');
      const name = this.#string();
      if (typeof name !== 'string') throw this.#invalid('a name is too long');
      if (this.#skipSpace() !== code(':')) throw this.#invalid('a colon is missing');
      this.#at++;
      entries.set(name, this.value(depth + 1));
      if (!this.#continues('}')) return entries;
    }
  }

  #array(depth: number): JsonNode[] {
    const items: JsonNode[] = [];
    this.#at++;
    if (this.#closes(']')) return items;
    for (;;) {
      items.push(this.value(depth + 1));
      if (!this.#continues(']')) return items;
    }
  }

  #closes(bracket: string): boolean {
    if (this.#skipSpace() !== code(bracket)) return false;
    this.#at++;
    return true;
  }

  #continues(bracket: string): boolean {
    const next = this.#skipSpace();
    if (next !== code(',') && next !== code(bracket)) throw this.#invalid('a comma or bracket is missing');
    this.#at++;
    return next === code(',');
  }

  #string(): string | JsonSpan {
    const start = ++this.#at;
    const end = this.#closingQuote();
    this.#at = end + 1;
    const span = new JsonSpan(start, end);
    return end - start >= LONG_STRING ? span : spanText(this.#source, span);
  }

  /** Looks for quotes, not at every byte: strings may have gigabytes. */
  #closingQuote(): number {
    for (let at = this.#at; ; ) {
      const part = this.#bytesAt(at);
      if (part.length === 0) throw this.#invalid('it ends within a string');
      const { quote, next } = endWithin(part);
      if (quote >= 0) return at + quote;
      at += next;
    }
  }

  #literal(): JsonNode {
    const part = this.#bytesAt(this.#at).toString('latin1', 0, 64);
    const word = /^[-+\w.]+/.exec(part)?.[0] ?? '';
    this.#at += word.length;
    if (Object.hasOwn(jsonWords, word)) return jsonWords[word] ?? null;
    const value = word === '' ? Number.NaN : Number(word);
    if (Number.isNaN(value)) throw this.#invalid('a value is missing');
    return value;
  }

  /** The next byte that is not white space, or -1 at the end. */
  #skipSpace(): number {
    for (;;) {
      const part = this.#bytesAt(this.#at);
      if (part.length === 0) return -1;
      for (let i = 0; i < part.length; i++) {
        const byte = part[i]!;
        if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) continue;
        this.#at += i;
        return byte;
      }
      this.#at += part.length;
    }
  }

  /** What is there from `position` on: at least 64 bytes, unless the file ends. */
  #bytesAt(position: number): Buffer {
    const offset = position - this.#windowStart;
    const isThere = offset >= 0 && offset + 64 <= this.#windowLength;
    if (!isThere) {
      this.#windowStart = position;
      this.#windowLength = this.#source.read(
        this.#window,
        position,
        Math.max(0, Math.min(WINDOW, this.#source.size - position)),
      );
    }
    return this.#window.subarray(position - this.#windowStart, this.#windowLength);
  }

  #invalid(what: string): TrtforgeError {
    return invalid(this.#source.path, this.#at, what);
  }
}

/** Where a string that goes on at the beginning of `part` ends; or, when it does not end there, where to go on. */
function endWithin(part: Buffer): { readonly quote: number; readonly next: number } {
  let from = 0;
  for (;;) {
    const quote = part.indexOf(QUOTE, from);
    const stop = quote < 0 ? part.length : quote;
    let slash = part.subarray(from, stop).indexOf(BACKSLASH);
    while (slash >= 0) {
      from += slash + 2;
      slash = from >= stop ? -1 : part.subarray(from, stop).indexOf(BACKSLASH);
    }
    if (from <= stop) return { quote, next: part.length };
    // The quote itself was escaped, or the escape's second byte is in the next part.
    if (quote < 0) return { quote, next: from };
  }
}

/** The words of JSON, and those that Python writes though JSON has none of them. */
export const jsonWords: Readonly<Record<string, boolean | number | null>> = {
  true: true,
  false: false,
  null: null,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
};

const invalid = (path: string, at: number, what: string): TrtforgeError =>
  new TrtforgeError(
    'TF_TENSOR_FILE_INVALID',
    `${path} cannot be read as JSON of tensors: ${what} at byte ${at}.`,
  );
