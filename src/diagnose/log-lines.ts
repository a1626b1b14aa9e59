import { StringDecoder } from 'node:string_decoder';
import type { ByteSource } from '../system/byte-source.js';

/** One line of a log: its number from 1, and trtexec's severity letter where it has one. */
export interface LogLine {
  readonly number: number;
  readonly text: string;
  readonly severity: 'I' | 'W' | 'E' | 'F' | 'V' | null;
  /** Without date, severity and `[TRT]`. */
  readonly message: string;
}

const CHUNK_BYTES = 1 << 20;

/** A longer line is cut here: no message is that long, and a file without line ends must not fill the memory. */
const LONGEST_LINE = 64 << 10;

/** Reads a log line by line in constant memory; `\r\n` and bytes that are not UTF-8 are taken as they come. */
export function* readLog(source: ByteSource): Generator<LogLine> {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(source.size, 1)));
  const decoder = new StringDecoder('utf8');
  let rest = '';
  let number = 0;
  for (let position = 0; position < source.size; ) {
    const count = source.read(buffer, position, buffer.length);
    if (count === 0) break;
    position += count;
    const parts = (rest + decoder.write(buffer.subarray(0, count))).split('\n');
    rest = (parts.pop() ?? '').slice(0, LONGEST_LINE);
    for (const part of parts) yield toLine(part, ++number);
  }
  if (rest !== '') yield toLine(rest, ++number);
}

function toLine(raw: string, number: number): LogLine {
  const text = raw.slice(0, LONGEST_LINE).replace(/\r$/, '');
  const match = /^\[\d\d\/\d\d\/\d{4}-\d\d:\d\d:\d\d\] \[([IWEFV])\] (?:\[TRT\] )?(.*)$/.exec(text);
  return { number, text, severity: (match?.[1] as LogLine['severity']) ?? null, message: match?.[2] ?? text };
}
