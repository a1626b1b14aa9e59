import { z } from 'zod';
import { closing, openFile } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import { rawLines } from '../../tensorrt/trtexec/log/lines.js';
import { explainedIssueSchema, logLineSchema } from './explained-issue.js';
import { type ExplainMeans, LogReading } from './log-reading.js';
import { loggedRunSchema, runOutcomeSchema } from './logged-run.js';

export const explainResultSchema = z.object({
  schema: z.literal('trtforge.explain/1'),
  log: z.string(),
  /** Number of lines in the log. */
  lines: z.int().nonnegative(),
  /** As the banner of the run that decides the outcome reports; null where the log is not trtexec's. */
  tensorrtVersion: z.string().nullable(),
  /** As that banner reports it. */
  commandLine: z.string().nullable(),
  /** Of the worst run: one that passes excuses none that failed. */
  outcome: runOutcomeSchema,
  /** One after another; the first 1000. */
  runs: z.array(loggedRunSchema),
  /** Each judged by how its own run ended. */
  issues: z.array(explainedIssueSchema),
  /** Error lines that are neither known nor the mere consequence of another. */
  unexplained: z.array(logLineSchema),
  /** The last line, where the run that decides stops without a verdict. */
  lastLine: z.string().nullable(),
});

export interface ExplainResult extends z.infer<typeof explainResultSchema> {}

/** Explains a log of trtexec, or of anything that prints TensorRT's messages, in constant memory. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_USAGE for what is not text. */
export function explainLog(path: string, means?: ExplainMeans): ExplainResult {
  return closing(openFile(path), (file) => {
    const start = Buffer.alloc(FIRST_BYTES);
    rejectBinary(path, start.subarray(0, file.read(start, 0, start.length)));
    return explainLines(path, rawLines(file), means);
  });
}

/** The same for raw lines from anywhere; `log` names them. */
export function explainLines(log: string, lines: Iterable<string>, means?: ExplainMeans): ExplainResult {
  const reading = new LogReading(means);
  for (const line of lines) reading.take(line);
  return explanation(log, reading);
}

/** The reading of a log, as a result. */
export const explanation = (log: string, reading: LogReading): ExplainResult => ({
  schema: 'trtforge.explain/1',
  log,
  ...reading.result(),
});

/** So many bytes decide whether a file is text. */
export const FIRST_BYTES = 512;

/** Control characters that no text has, as a share of the first bytes: none in recorded logs, 8 % and more in models, plans and archives. */
const MOST_CONTROLS = 0.03;

const fromUtf16 = 'iconv -f utf-16 -t utf-8 FILE | trtforge explain -';

/** Files that are often passed in place of a log, by their first bytes, and the command that makes one. */
const KINDS: readonly { readonly magic: readonly number[]; readonly is: string; readonly with: string }[] = [
  { magic: [0x1f, 0x8b], is: 'compressed by gzip', with: 'gzip -dc FILE | trtforge explain -' },
  { magic: [0x28, 0xb5, 0x2f, 0xfd], is: 'compressed by zstd', with: 'zstd -dc FILE | trtforge explain -' },
  { magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a], is: 'compressed by xz', with: 'xz -dc FILE | trtforge explain -' },
  { magic: [0x42, 0x5a, 0x68], is: 'compressed by bzip2', with: 'bzip2 -dc FILE | trtforge explain -' },
  { magic: [0x50, 0x4b, 0x03, 0x04], is: 'a zip archive', with: 'unzip -p FILE | trtforge explain -' },
  { magic: [0xff, 0xfe], is: 'text in UTF-16', with: fromUtf16 },
  { magic: [0xfe, 0xff], is: 'text in UTF-16', with: fromUtf16 },
];

/** Throws TF_USAGE, naming what it is, where the first bytes are not those of a text. */
export function rejectBinary(name: string, start: Uint8Array): void {
  const kind = KINDS.find(({ magic }) => magic.every((byte, index) => start[index] === byte));
  if (kind !== undefined)
    throw new TrtforgeError('TF_USAGE', `${name} is ${kind.is}, so it cannot be read as a log.`, {
      remedy: `Make a text of it first: ${kind.with}`,
    });
  const controls = start.filter((byte) => byte < 0x20 && byte !== 0x1b && (byte < 0x08 || byte > 0x0d));
  if (controls.length <= start.length * MOST_CONTROLS) return;
  throw new TrtforgeError('TF_USAGE', `${name} is not text, so it is not a log.`, {
    remedy:
      'Pass what TensorRT or trtexec printed; a log in UTF-16 becomes readable with iconv -f utf-16 -t utf-8.',
  });
}
