import { LineFault } from './fault.js';

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

export const QUOTE = 0x22;
export const NEWLINE = 0x0a;
const BACKSLASH = 0x5c;

export interface StringEnd {
  /** Where the closing quote is, or -1. */
  readonly quote: number;
  /** The line ends before it. */
  readonly breaksOff: boolean;
  /** Where to go on when neither is so. */
  readonly next: number;
  readonly escaped: boolean;
}

/** Where a string that goes on at the beginning of `part` ends. Each byte is looked at a fixed number of times, however many escapes there are. */
export function endWithin(part: Buffer): StringEnd {
  let escaped = false;
  let quote = -1;
  let from = 0;
  while (from < part.length) {
    if (quote < from) {
      const next = part.indexOf(QUOTE, from);
      quote = next < 0 ? part.length : next;
      if (part.subarray(from, quote).indexOf(NEWLINE) >= 0)
        return { quote: -1, breaksOff: true, next: quote, escaped };
    }
    const slash = part.subarray(from, quote).indexOf(BACKSLASH);
    if (slash < 0)
      return { quote: quote < part.length ? quote : -1, breaksOff: false, next: part.length, escaped };
    escaped = true;
    from += slash + 2;
  }
  return { quote: -1, breaksOff: false, next: from, escaped };
}

/** The text of the bytes between two quotes. Throws LineFault for control characters and escapes that JSON does not have. */
export const textOf = (bytes: Buffer): string =>
  bytes.indexOf(BACKSLASH) < 0 ? plainText(bytes) : parseText(bytes);

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
