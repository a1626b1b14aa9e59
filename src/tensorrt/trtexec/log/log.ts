import { openFile } from '../../../base/files/byte-source.js';
import { trtexecVersionIn } from '../../toolchain/trtexec.js';
import { LoggedFacts } from './facts.js';
import { parseLine, rawLines, type TrtexecLine } from './lines.js';
import { EchoedOptions, sectionOf } from './options.js';
import { PerformanceSummary } from './performance.js';
import type { LogMessage, OptionSection, TrtexecLog } from './result.js';

/** More warnings and errors than this are counted, not kept. */
const MOST_MESSAGES = 500;
const LONGEST_MESSAGE = 2000;

const BANNER = /^&&&& (RUNNING|PASSED|FAILED) (\S*(?:trtexec|tensorrt_rtx)) (.*)$/s;

/** Words of a dying process: they carry no severity of trtexec's. */
const DYING =
  /^(?:Cuda failure|LLVM ERROR|terminate called|Assertion failure|Segmentation fault|Aborted|Killed|Could not open file|free\(\)|malloc\(\)|.*error while loading shared libraries)/;

/** The information that trtexec from 9.1 on prints before it ends with exit code 1, without a line "FAILED". */
const ENDING = /^Cannot find (?:any available devices|device ID )/;

/** One run of trtexec as far as its lines have come. */
class RunState {
  readonly options = new EchoedOptions();
  readonly performance = new PerformanceSummary();
  readonly facts = new LoggedFacts();
  readonly warnings: LogMessage[] = [];
  readonly errors: LogMessage[] = [];
  readonly unknownOptions: string[] = [];
  warningCount = 0;
  errorCount = 0;
  section: OptionSection | null = null;
  product: TrtexecLog['product'] = null;
  version: string | null = null;
  commandLine: string | null = null;
  outcome: TrtexecLog['outcome'] = 'unfinished';
  startedAt: string | null = null;
  endedAt: string | null = null;
  skippedInference = false;
}

/** Reads lines as they come, in constant memory. */
export class LogReader {
  private state = new RunState();
  private lines = 0;
  private runs = 0;

  /** One raw line without its line end. Returns the messages it held. */
  read(raw: string): readonly TrtexecLine[] {
    const messages = parseLine(raw, ++this.lines);
    for (const message of messages) this.take(message);
    return messages;
  }

  /** The version in the banner, as soon as that has come. */
  get version(): string | null {
    return this.state.version;
  }

  private take(line: TrtexecLine): void {
    if (line.severity === null) this.takeBare(line);
    else this.takeMessage(line);
  }

  private takeMessage(line: TrtexecLine): void {
    const { state } = this;
    state.startedAt ??= line.time;
    state.endedAt = line.time;
    if (line.severity === 'V') return;
    // Ten runs' average: by far the most lines of an ordinary log, and the exported samples have more.
    if (line.message.startsWith('Average on ')) return;
    if (line.severity === 'W') this.note('warning', line);
    else if (line.severity === 'E' || line.severity === 'F' || ENDING.test(line.message))
      this.note('error', line);
    else this.takeInformation(line.message);
    state.facts.take(line.message);
  }

  private takeInformation(message: string): void {
    const { state } = this;
    const section = sectionOf(message);
    if (section !== undefined) state.section = section;
    else if (message.trim() === '') state.section = null;
    else if (state.section !== null) state.options.take(state.section, message);
    else if (message.startsWith('Skipped inference phase')) state.skippedInference = true;
    else state.performance.take(message);
  }

  private note(kind: 'warning' | 'error', { number, message }: TrtexecLine): void {
    const { state } = this;
    const kept = kind === 'warning' ? state.warnings : state.errors;
    if (kind === 'warning') state.warningCount++;
    else state.errorCount++;
    if (kept.length < MOST_MESSAGES) kept.push({ line: number, message: message.slice(0, LONGEST_MESSAGE) });
    const unknown = /^Unknown option: (\S+)/.exec(message)?.[1];
    if (unknown !== undefined && state.unknownOptions.length < MOST_MESSAGES)
      state.unknownOptions.push(unknown);
  }

  /** A line without severity: one of trtexec's own marks, a dying process's words, or another program's. */
  private takeBare(line: TrtexecLine): void {
    const banner = BANNER.exec(line.message);
    if (banner === null) {
      if (DYING.test(line.message)) this.note('error', line);
      // `grep` prints parts of logs, and so do seeds' own summaries.
      else this.state.performance.take(line.message.trim());
      return;
    }
    const [, kind, program = '', rest = ''] = banner;
    if (kind === 'RUNNING') {
      this.state = new RunState();
      this.runs++;
    } else this.state.outcome = kind === 'PASSED' ? 'passed' : 'failed';
    this.state.product ??= program.includes('RTX') || program.includes('rtx') ? 'tensorrt-rtx' : 'tensorrt';
    this.state.version ??= trtexecVersionIn(`&&&& RUNNING ${program} ${rest}`);
    this.state.commandLine ??= /# (.*)$/s.exec(rest)?.[1]?.trim() ?? null;
  }

  result(): TrtexecLog {
    const { state } = this;
    return {
      schema: 'trtforge.trtexec-log/1',
      lines: this.lines,
      runs: this.runs,
      product: state.product,
      version: state.version,
      commandLine: state.commandLine,
      outcome: state.outcome,
      startedAt: state.startedAt,
      endedAt: state.endedAt,
      options: state.options.printed(),
      build: state.options.build(),
      measurement: state.options.measurement(),
      device: state.facts.device(),
      engine: state.facts.engine(),
      run: state.facts.run(),
      performance: state.performance.result(),
      warnings: state.warnings,
      errors: state.errors,
      warningCount: state.warningCount,
      errorCount: state.errorCount,
      unknownOptions: state.unknownOptions,
      skippedInference: state.skippedInference,
    };
  }
}

/**
 * Reads a log of trtexec (8.6, 9, 10, 11, and tensorrt_rtx), written by anyone: a path, read in constant memory, or its lines. It takes what is
 * there: a log cut short, with two streams interleaved, with `\r\n`, or without a banner gives what it contains and null for the rest.
 * Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE.
 */
export function readTrtexecLog(log: string | Iterable<string>): TrtexecLog {
  if (typeof log !== 'string') return readLines(log);
  const source = openFile(log);
  try {
    return readLines(rawLines(source));
  } finally {
    source.close();
  }
}

function readLines(lines: Iterable<string>): TrtexecLog {
  const reader = new LogReader();
  for (const line of lines) reader.read(line);
  return reader.result();
}
