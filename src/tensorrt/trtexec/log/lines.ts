import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';
import type { ByteSource } from '../../../base/files/byte-source.js';
import type { LogSeverity } from '../../../events.js';

export type TrtexecSeverity = 'I' | 'W' | 'E' | 'F' | 'V';

/** The letters of severities in trtexec and in TensorRT's own logger. */
export const severityLetters: Readonly<Record<LogSeverity, TrtexecSeverity>> = {
  internal_error: 'F',
  error: 'E',
  warning: 'W',
  info: 'I',
  verbose: 'V',
};

/** One message of a log. Two messages that two streams glued into one line have the same number. */
export interface TrtexecLine {
  /** From 1. */
  readonly number: number;
  /** `11/20/2026-21:33:49`, local time of the machine; null where the line has none. */
  readonly time: string | null;
  /** Null for lines of another program, and for the `&&&&` lines. */
  readonly severity: TrtexecSeverity | null;
  /** Whether the library printed it, not trtexec. */
  readonly fromLibrary: boolean;
  /** Without date, severity and `[TRT]`. */
  readonly message: string;
}

const CHUNK_BYTES = 1 << 20;

/** A longer line is cut here: no message is that long, and a file without line ends must not fill the memory. */
export const LONGEST_LINE = 64 << 10;

/**
 * Prefixes of lines from programs that run TensorRT: trtexec and TensorRT's Python logger, its samples, trtforge's run roots and terminal,
 * GStreamer's elements, Triton, ONNX Runtime (with TensorRT's own line inside), protobuf, Python's logging and its like, compilers, exceptions, and
 * whatever contains an error code.
 */
const PREFIXES: readonly RegExp[] = [
  /^(?:\[(?<time>\d\d\/\d\d\/\d{4}-\d\d:\d\d:\d\d)\] )?(?:\[(?<severity>[IWEFV])\] (?<library>\[TRT\] )?)(?<message>.*)$/s,
  /^(?:\[(?<time>\d\d\/\d\d\/\d{4}-\d\d:\d\d:\d\d)\] )?(?<library>\[TRT\] )\[(?<severity>[IWEFV])\] (?<message>.*)$/s,
  /^ {0,9}\d{1,9}\.\d{3} {2}(?<severity>internal_error|error|warning|info|verbose) \[(?<source>[\w-]{1,40})\] (?<message>.*)$/s,
  /^ {2}(?<source>tensorrt|tensorrt-rtx|trtexec) (?<severity>internal_error|error|warning|info|verbose) (?<message>.*)$/s,
  /^\[TensorRT\] (?<severity>INTERNAL_ERROR|ERROR|WARNING|INFO|VERBOSE): (?<message>.*)$/s,
  /^\d:\d\d:\d\d\.\d{9}\s{1,20}\d{1,9}\s{1,20}0x\w{1,20} (?<severity>ERROR|WARN|INFO)\s{1,20}\S{1,60} \S{1,200} (?<message>.*)$/s,
  /^(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,9} )?\[(?<severity>[IWEFV]):onnxruntime:[^\]]{0,300}\] (?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {1,9}[A-Z_]{1,20}\] )?(?<message>.*)$/s,
  /^\[libprotobuf (?<severity>FATAL|ERROR|WARNING|INFO) [^\]]{1,500}\] (?<message>.*)$/s,
  /^\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: (?:[-|:] )?[[\]\w./-]{1,80}){0,2}? (?:[-|:] )?\[?(?<severity>CRITICAL|FATAL|ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|(?<=\[)(?:critical|error|warning|info|debug|trace))\b\]?:?\s{0,9}(?:[-|] )?(?<message>.*)$/s,
  /^(?:\[[^\]]{1,60}\] ?){0,2}\[(?<severity>CRITICAL|FATAL|ERROR|WARN(?:ING)?|INFO|DEBUG)\] (?<message>.*)$/s,
  /^(?<severity>CRITICAL|ERROR|WARNING|INFO|DEBUG):[\w.-]{1,80}:(?<message>.*)$/s,
  /^\*\* (?<severity>ERROR|WARN|INFO): (?<message>.*)$/s,
  /^(?<message>(?:\S{1,500}: )?(?:fatal )?(?<severity>error|warning)(?: [A-Z]{1,4}\d{1,5})?: .*)$/s,
  /^(?<severity>[IWE])\d{4} \d\d:\d\d:\d\d\.\d{6} \d{1,9} \S{1,200}\] (?<message>.*)$/s,
  /^(?<severity>ERROR|WARNING): (?:\[TRT\]: )?(?<message>(?!\S{1,200}\.cpp:).*)$/s,
  /^(?<message>(?<severity>(?:\w{1,60}\.){0,9}\w{0,60}(?:Error|Exception)): .*)$/s,
  /^(?<message>\[(?<severity>ONNXRuntimeError)\] : .*)$/s,
  /^(?<message>(?<severity>terminate called|CMake Error|thread '[^']{1,100}' panicked|panic:|fatal:) ?.*)$/s,
  /^ {1,9}(?<severity>what\(\)): {1,9}(?<message>.*)$/s,
  /^(?<message>(?:[^[\n]{0,100}\[[^\]]{1,300}\] |[^:\n]{0,200}: )?(?<severity>Error Code) \d{1,3}: .*)$/s,
];

function prefixOf(text: string): Readonly<Record<string, string | undefined>> | undefined {
  for (const prefix of PREFIXES) {
    const groups = prefix.exec(text)?.groups;
    if (groups !== undefined) return groups;
  }
  return undefined;
}

/** Another spelling of a severity; what is none of them is an exception. */
const LETTERS: Readonly<Record<string, TrtexecSeverity>> = {
  ...severityLetters,
  ...{ warn: 'W', debug: 'V', trace: 'V', critical: 'F', fatal: 'F' },
};

const letterOf = (word: string): TrtexecSeverity =>
  word.length === 1 ? (word as TrtexecSeverity) : (LETTERS[word.toLowerCase()] ?? 'E');

/** A line of --log-file, which is an event; null for any other. Its other events have no message. */
function loggedEvent(text: string): Omit<TrtexecLine, 'number'> | null {
  if (!text.startsWith('{"time":')) return null;
  try {
    const {
      severity,
      message = '',
      source,
    } = JSON.parse(text) as Readonly<Record<string, string | undefined>>;
    return {
      ...{ time: null, fromLibrary: source !== 'trtforge', message: String(message) },
      severity: severity === undefined ? null : letterOf(severity),
    };
  } catch {
    return null;
  }
}

/** Where a second message begins inside a line: both streams write to one terminal or file, and neither waits for the other's line end. */
const GLUED =
  /(?<=.)(?=\[\d\d\/\d\d\/\d{4}-\d\d:\d\d:\d\d\] (?:\[TRT\] )?\[[IWEFV]\] |&&&& (?:RUNNING|PASSED|FAILED) \S*(?:trtexec|tensorrt_rtx))/s;

/** The messages of one raw line; `\r\n` and control characters at its end are dropped, an overlong line is cut. */
export function parseLine(raw: string, number: number): readonly TrtexecLine[] {
  const cut = raw.slice(0, LONGEST_LINE).replace(/[\r\0]+$/, '');
  const text = cut.includes('\u001b') ? stripVTControlCharacters(cut) : cut;
  const event = loggedEvent(text);
  if (event !== null) return event.message.split('\n').map((message) => ({ ...event, number, message }));
  return text.split(GLUED).map((part) => {
    const found = prefixOf(part);
    const { time = null, severity, library, source, message = part } = found ?? {};
    return {
      number,
      time,
      severity: severity === undefined ? null : letterOf(severity),
      fromLibrary: library !== undefined || source !== undefined,
      message,
    };
  });
}

/** Raw lines of a file in constant memory, however long the file or a line of it. */
export function* rawLines(source: ByteSource): Generator<string> {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(source.size, 1)));
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for (let position = 0; position < source.size; ) {
    const count = source.read(buffer, position, buffer.length);
    if (count === 0) break;
    position += count;
    const parts = (rest + decoder.write(buffer.subarray(0, count))).split('\n');
    rest = (parts.pop() ?? '').slice(0, LONGEST_LINE);
    yield* parts;
  }
  if (rest !== '') yield rest;
}

/** Cuts text that comes in pieces into lines as they become whole; the rest of the last line comes at its end. */
export class LineCutter {
  readonly #take: (lines: readonly string[]) => void;
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';

  constructor(take: (lines: readonly string[]) => void) {
    this.#take = take;
  }

  write(piece: Buffer): void {
    const parts = (this.#rest + this.#decoder.write(piece)).split('\n');
    this.#rest = (parts.pop() ?? '').slice(0, LONGEST_LINE);
    if (parts.length > 0) this.#take(parts);
  }

  end(): void {
    const rest = this.#rest + this.#decoder.end();
    this.#rest = '';
    if (rest !== '') this.#take([rest]);
  }
}

/** Cuts one stream into lines. */
export function onLines(stream: NodeJS.ReadableStream, take: (lines: readonly string[]) => void): void {
  const cutter = new LineCutter(take);
  stream.on('data', (chunk: Buffer) => cutter.write(chunk));
  stream.on('end', () => cutter.end());
}
