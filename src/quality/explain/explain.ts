import { z } from 'zod';
import { closing, openFile } from '../../base/files/byte-source.js';
import { parseJson, pythonJson } from '../../base/files/json.js';
import * as is from '../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../base/options/option.js';
import { TrtforgeError } from '../../errors.js';
import { LineCutter, LONGEST_LINE, parseLine, rawLines } from '../../tensorrt/trtexec/log/lines.js';
import { type ExplainedIssue, explainedIssueSchema, logLineSchema } from './explained-issue.js';
import { type FinderLine, LISTED_LINES, LISTED_UNEXPLAINED } from './issue-finder.js';
import { inOrder, type KnownIssue } from './known-issues/issue.js';
import {
  beginsRun,
  type LoggedRun,
  loggedRunSchema,
  type RunOutcome,
  RunReading,
  runOutcomeSchema,
} from './logged-run.js';
import { type ModelNodes, openModelNodes } from './model-nodes.js';

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

/** Runs that are listed; all of them count. */
export const LISTED_RUNS = 1000;

/** The worst first: what one run hides, another must not excuse. */
const OUTCOMES: readonly RunOutcome[] = ['failed', 'died', 'passed', 'unknown'];

/** The options for reading a log, besides the core's known issues. */
export const explainOptions = {
  /** The ONNX file at work, or what reads it: nodes that the log names are looked up in it. */
  model: optional(is.either(is.text, is.object<ModelNodes>())),
  knownIssues: optional(is.list<KnownIssue>()),
};

export interface ExplainMeans extends OptionsOf<typeof explainOptions> {}

/** The result of reading the lines of a log. */
export interface ReadLog {
  readonly lines: number;
  readonly tensorrtVersion: string | null;
  readonly commandLine: string | null;
  readonly outcome: RunOutcome;
  readonly runs: LoggedRun[];
  readonly issues: ExplainedIssue[];
  readonly unexplained: { line: number; text: string }[];
  readonly lastLine: string | null;
}

/** Matches the lines of a log with the known issues as they come, run by run, in constant memory. */
export class LogReading {
  readonly #known: ExplainMeans['knownIssues'];
  readonly #model: ModelNodes | undefined;
  readonly #issues = new Map<string, ExplainedIssue>();
  readonly #unexplained: ReadLog['unexplained'] = [];
  readonly #runs: LoggedRun[] = [];
  #deciding: RunReading | undefined;
  #current: RunReading;
  #number = 0;

  constructor({ model, knownIssues }: ExplainMeans = {}) {
    this.#model = typeof model === 'string' ? openModelNodes(model) : model;
    this.#known = knownIssues;
    this.#current = new RunReading(knownIssues);
  }

  /** One raw line without its line end. */
  take(raw: string): void {
    this.#number++;
    const text = raw.slice(0, LONGEST_LINE).replace(/\r$/, '');
    for (const { severity, message } of parseLine(raw, this.#number)) {
      const line: FinderLine = { number: this.#number, text, message, severity };
      if (beginsRun(line) && this.#current.run !== null) {
        this.#close();
        this.#current = new RunReading(this.#known);
      }
      this.#current.take(line);
    }
  }

  /** Once, after the last line. */
  result(): ReadLog {
    this.#close();
    const { run = null, outcome = 'unknown', lastLine = null } = this.#deciding ?? {};
    return {
      lines: this.#number,
      tensorrtVersion: run?.tensorrtVersion ?? null,
      commandLine: run?.commandLine ?? null,
      outcome,
      runs: this.#runs,
      issues: inOrder([...this.#issues.values()]),
      unexplained: this.#unexplained,
      lastLine,
    };
  }

  #close(): void {
    const { run, outcome, unexplained } = this.#current;
    for (const issue of this.#current.issues(this.#model)) this.#keep(issue);
    this.#unexplained.push(...unexplained.slice(0, LISTED_UNEXPLAINED - this.#unexplained.length));
    if (run !== null && this.#runs.length < LISTED_RUNS) this.#runs.push(run);
    const before = this.#deciding?.outcome ?? 'unknown';
    if (OUTCOMES.indexOf(outcome) <= OUTCOMES.indexOf(before)) this.#deciding = this.#current;
  }

  /** The same issue in several runs is reported once, as the worst of them has it. */
  #keep(issue: ExplainedIssue): void {
    const before = this.#issues.get(issue.id);
    if (before === undefined) {
      this.#issues.set(issue.id, issue);
      return;
    }
    const [worse = issue] = inOrder([before, issue]);
    this.#issues.set(issue.id, {
      ...worse,
      count: before.count + issue.count,
      lines: [...before.lines, ...issue.lines].slice(0, LISTED_LINES),
    });
  }
}

/** Results of trtforge are far smaller; a larger document is taken for a log. */
const LARGEST_RESULT = 64 << 20;

/** The depth to which strings are looked for in a result. */
const DEEPEST = 12;

/**
 * Reads input that is not a log file but can be explained as one: `-` is standard input, read to its end, and a JSON document (a result or error of
 * trtforge, a report) is the lines of its texts. Undefined for anything else. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE,
 * TF_USAGE for what is not text.
 */
export async function readExplainable(
  path: string,
  means?: ExplainMeans,
  standardInput: AsyncIterable<Buffer | string> = process.stdin,
): Promise<ExplainResult | undefined> {
  if (path === '-') return explainStream(standardInput, means);
  if (!path.endsWith('.json')) return undefined;
  return closing(openFile(path), (source) => {
    if (source.size > LARGEST_RESULT) return undefined;
    const bytes = Buffer.alloc(source.size);
    const text = bytes.toString('utf8', 0, source.read(bytes, 0, source.size));
    return explainLines(path, linesIn(text), means);
  });
}

const STANDARD_INPUT = 'standard input';

/** A verbose build prints hundreds of megabytes, so lines are read as they come; only what may be a JSON document is kept until its end. */
async function explainStream(
  stream: AsyncIterable<Buffer | string>,
  means?: ExplainMeans,
): Promise<ExplainResult> {
  const reading = new LogReading(means);
  const lines = new LineCutter((cut) => {
    for (const line of cut) reading.take(line);
  });
  let document: Buffer[] | null = null;
  let bytes = 0;
  let isBegun = false;
  for await (const chunk of stream) {
    const piece = Buffer.from(chunk);
    if (!isBegun) {
      rejectBinary(STANDARD_INPUT, piece.subarray(0, FIRST_BYTES));
      if (/^\s*\{/.test(piece.toString('latin1', 0, FIRST_BYTES))) document = [];
    }
    isBegun = true;
    bytes += piece.length;
    if (document === null) lines.write(piece);
    else document.push(piece);
    if (document !== null && bytes > LARGEST_RESULT) {
      for (const kept of document) lines.write(kept);
      document = null;
    }
  }
  if (document !== null)
    return explainLines(STANDARD_INPUT, linesIn(Buffer.concat(document).toString('utf8')), means);
  lines.end();
  return explanation(STANDARD_INPUT, reading);
}

function* linesIn(text: string): Generator<string> {
  const document = /^\s*\{/.test(text) ? parsed(text) : undefined;
  if (document === undefined) yield* text.split('\n');
  else for (const found of textsOf(document, 0)) yield* found.split('\n');
}

function parsed(text: string): unknown {
  try {
    return parseJson(text, LARGEST_RESULT, Error, pythonJson);
  } catch {
    return undefined;
  }
}

/** Every text in a document. What trtforge explained before is left out: its words are not the library's. */
function* textsOf(value: unknown, depth: number): Generator<string> {
  if (typeof value === 'string') yield value;
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return;
  for (const [key, inner] of Object.entries(value))
    if (key !== 'issues' && key !== 'remedy') yield* textsOf(inner, depth + 1);
}
