import { constants, isAscii } from 'node:buffer';
import type { ByteSource } from '../../base/files/byte-source.js';
import { isRecord, type JsonRecord, parseJson, pythonJson } from '../../base/files/json.js';

/** Why a line of a reference cannot be read. Stays within this room: readers report it with the line number. */
export class LineFault extends Error {
  readonly remedy: string | undefined;
  constructor(message: string, remedy?: string) {
    super(message);
    this.remedy = remedy;
  }
}

/** One line of a reference, parsed. */
export interface ReferenceLine {
  /** Without its long base64. */
  readonly text: string;
  /** The characters of long base64, which `data_b64` names by `longBase64`; valid until the next line is read. */
  readonly base64: readonly Buffer[];
  readonly index: unknown;
  readonly inputs: JsonRecord;
  readonly outputs: JsonRecord;
  readonly metadata: JsonRecord;
}

const NEWLINE = 0x0a;
const BLANK = /^[ \t\r]*$/;
/** Shorter base64 is parsed with the rest of its line. */
const LONG_BASE64 = 4096;
/** Stands for base64 that was cut out; no encoder writes such a character. In the text of a line it is escaped. */
const CUT_MARK = '\u0001base64:';
const CUT = JSON.stringify(CUT_MARK).slice(1, -1);
/** Larger windows leave the processor's cache. */
const WINDOW_BYTES = 1 << 20;
/** Deeper than what any recorder writes; recursion over deeper data would exhaust the stack. */
const MAX_DEPTH = 32;

/** Reads the lines of a JSONL file in order, in memory for one line. */
export class LineReader {
  readonly #source: ByteSource;
  readonly #window = Buffer.allocUnsafeSlow(WINDOW_BYTES);
  /** Reused by every line that is longer than the window. */
  #long = Buffer.alloc(0);
  #at = 0;
  #number = 0;

  constructor(source: ByteSource) {
    this.#source = source;
  }

  /** Number of the line read last, from 1. */
  get number(): number {
    return this.#number;
  }

  /** The next line that is not blank, or null at the end. Throws LineFault; the call after that reads the line behind the damaged one. */
  next(): ReferenceLine | null {
    while (this.#at < this.#source.size) {
      this.#number++;
      const line = this.#line();
      if (!BLANK.test(line.text)) return parsedLine(line);
    }
    return null;
  }

  #line(): LineText {
    const start = this.#at;
    let held = this.#source.read(this.#window, start, WINDOW_BYTES);
    let length = this.#window.subarray(0, held).indexOf(NEWLINE);
    if (length >= 0) return this.#taken(this.#window, start, length);
    length = held;
    while (held > 0) {
      held = this.#source.read(this.#window, start + length, WINDOW_BYTES);
      const newline = this.#window.subarray(0, held).indexOf(NEWLINE);
      length += newline < 0 ? held : newline;
      if (newline >= 0) break;
    }
    if (length <= WINDOW_BYTES) {
      this.#source.read(this.#window, start, length);
      return this.#taken(this.#window, start, length);
    }
    if (length <= constants.MAX_STRING_LENGTH) {
      if (this.#long.length < length) this.#long = Buffer.allocUnsafeSlow(length);
      this.#source.read(this.#long, start, length);
    }
    return this.#taken(this.#long, start, length);
  }

  /** The text of the line, behind which the reader then stands. */
  #taken(bytes: Buffer, start: number, length: number): LineText {
    this.#at = start + length + 1;
    if (length > constants.MAX_STRING_LENGTH) {
      throw new LineFault(
        `it has ${length} bytes, more than the ${constants.MAX_STRING_LENGTH} of the longest string of Node.js`,
        'Have its recorder write the tensors as npy files and their paths as npy_path.',
      );
    }
    return withoutBase64(bytes.subarray(0, length));
  }
}

type LineText = Pick<ReferenceLine, 'text' | 'base64'>;

/** The text of a line in which long base64 is replaced by its number: as a string, and again when JSON.parse copies it, it would take six times as long. */
function withoutBase64(line: Buffer): LineText {
  const parts: string[] = [];
  const base64: Buffer[] = [];
  let done = 0;
  const keep = (end: number) => {
    const part = line.subarray(done, end);
    parts.push(part.toString(isAscii(part) ? 'latin1' : 'utf8'));
  };
  for (let key = line.indexOf('"data_b64"'); key >= 0; key = line.indexOf('"data_b64"', key + 10)) {
    const before = /^\s{0,8}:\s{0,8}"/.exec(line.toString('latin1', key + 10, key + 30));
    if (before === null) continue;
    const start = key + 10 + before[0].length;
    const end = line.indexOf('"', start);
    // Escaped text is left to JSON.parse.
    if (end - start < LONG_BASE64 || line.subarray(start, end).includes(0x5c)) continue;
    keep(start);
    parts.push(`${CUT}${base64.length}`);
    base64.push(line.subarray(start, end));
    done = end;
    key = end;
  }
  keep(line.length);
  return { text: parts.join(''), base64 };
}

/** The base64 that was cut out of a line in this place; undefined for a text that stands for itself. */
export function longBase64(text: string, { base64 }: ReferenceLine): Buffer | undefined {
  return text.startsWith(CUT_MARK) ? base64[Number(text.slice(CUT_MARK.length))] : undefined;
}

function parsedLine({ text, base64 }: LineText): ReferenceLine {
  const line = jsonOf(text);
  if (!isRecord(line)) throw new LineFault('it is not an object');
  const member = (name: string): JsonRecord => {
    const value = Object.hasOwn(line, name) ? line[name] : undefined;
    if (isRecord(value)) return value;
    if (value === undefined || (value === null && name === 'metadata')) return {};
    throw new LineFault(`its ${name} is not an object`);
  };
  const metadata = member('metadata');
  if (isDeeper(metadata, MAX_DEPTH)) throw new LineFault(`its metadata is deeper than ${MAX_DEPTH} levels`);
  return {
    text,
    base64,
    index: line.chunk_idx,
    inputs: member('inputs'),
    outputs: member('outputs'),
    metadata,
  };
}

function jsonOf(text: string): unknown {
  const fault = (why: string, cause?: unknown) => {
    if (!(cause instanceof Error)) return new LineFault(why);
    const what = cause.message;
    const position = Number(/ at position (\d+)/.exec(what)?.[1] ?? 0);
    const isCut = / end of JSON input|Unterminated string/.test(what) || position >= text.length;
    return new LineFault(isCut ? `it was cut short (${what})` : `it is not JSON (${what})`);
  };
  return parseJson(text, constants.MAX_STRING_LENGTH, fault, pythonJson);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => isDeeper(item, levels - 1));
}
