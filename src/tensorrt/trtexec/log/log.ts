import { openFile } from '../../../base/files/byte-source.js';
import { trtexecVersionIn } from '../../toolchain/trtexec.js';
import { parseLine, rawLines, type TrtexecLine } from './lines.js';
import { EchoedOptions, sectionOf } from './options.js';
import {
  type LoggedDevice,
  type LoggedEngine,
  type LoggedRun,
  type LogMessage,
  type OptionSection,
  PerformanceSummary,
  printedNumber,
  type TrtexecLog,
} from './result.js';

type Facts = {
  -readonly [Key in keyof (LoggedDevice & LoggedEngine & LoggedRun)]?: (LoggedDevice &
    LoggedEngine &
    LoggedRun)[Key];
};
type NumberField = { [Key in keyof Facts]-?: number extends Facts[Key] ? Key : never }[keyof Facts];
type TextField = { [Key in keyof Facts]-?: string extends Facts[Key] ? Key : never }[keyof Facts];

const MIB = 1 << 20;

interface NumberRule {
  /** The line begins with it: distinguished without a regular expression, since a verbose log has millions of lines. */
  readonly start: string;
  readonly pattern: RegExp;
  readonly fields: readonly NumberField[];
  readonly unit?: number;
}

const number = String.raw`(-?[\d.]+(?:e[-+]?\d+)?)`;
const rule = (start: string, rest: string, fields: readonly NumberField[], unit = 1): NumberRule => ({
  start,
  pattern: new RegExp(`^${start.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}${rest}`),
  fields,
  unit,
});

/** Lines that give numbers, by their first words; libraries from 8.6 to 11 spell some of them without their unit. */
const NUMBERS: readonly NumberRule[] = [
  rule('Selected Device ID: ', '(\\d+)', ['id']),
  rule('SMs: ', '(\\d+)', ['sms']),
  rule('Device Global Memory: ', '(\\d+) MiB', ['memoryMiB']),
  rule('Finished parsing network model. Parse time: ', number, ['parseSeconds']),
  rule('Engine built in ', `${number} sec`, ['builtSeconds']),
  rule('Engine loaded in ', `${number} sec`, ['loadedSeconds']),
  rule('Engine deserialized in ', `${number} sec`, ['deserializedSeconds']),
  rule('Created engine with size: ', `${number} MiB`, ['bytes'], MIB),
  rule('Loaded engine with size: ', `${number} MiB`, ['bytes'], MIB),
  rule('Detected ', '(\\d+) inputs and (\\d+) output network tensors', ['inputs', 'outputs']),
  rule('[BlockAssignment] Algorithm ', '.* blocks to (\\d+) nodes', ['scheduledLayers']),
  rule('Total Host Persistent Memory: ', number, ['hostPersistentBytes']),
  rule('Total Device Persistent Memory: ', number, ['devicePersistentBytes']),
  rule('Total Scratch Memory: ', number, ['scratchBytes']),
  rule('Max Scratch Memory: ', number, ['scratchBytes']),
  rule('Total Activation Memory: ', number, ['activationBytes']),
  rule('Total Weights Memory: ', number, ['weightsBytes']),
  rule('Weight streaming is enabled with a device memory limit of ', '(\\d+) bytes', ['weightLimit']),
  rule('Created execution context with device memory size: ', `${number} MiB`, ['contextBytes'], MIB),
  rule(
    '[MemUsageStats] Peak memory usage of TRT CPU/GPU memory allocators: CPU ',
    '(\\d+) MiB, GPU (\\d+) MiB',
    ['peakCpuBytes', 'peakGpuBytes'],
    MIB,
  ),
  rule('Loaded ', '(\\d+) bytes of (?:timing )?cache', ['timingCacheLoadedBytes']),
  rule('Saved ', '(\\d+) bytes of (?:timing )?cache', ['timingCacheSavedBytes']),
  rule('Warmup completed ', `(\\d+) queries over ${number} ms`, ['warmUpQueries', 'warmUpMs']),
  rule('Timing trace has ', `(\\d+) queries over ${number} s`, ['queries', 'seconds']),
  rule('=== Profile (', '(\\d+) iterations', ['profiledIterations']),
];

const TEXTS: readonly { readonly start: string; readonly field: TextField }[] = [
  { start: 'Selected Device: ', field: 'name' },
  { start: 'Selected Device UUID: ', field: 'uuid' },
  { start: 'Plan was created with TensorRT version ', field: 'planVersion' },
];

const LONGEST_TEXT = 200;

/** Rejection of a CUDA graph: 8.6 to 10.16 go on without `--useCudaGraph`, or omit it where CUDA is before 11.1 or for a DLA; 11 measures without. */
export const GRAPH_REFUSED =
  /not permitted under CUDA graph capture|CUDA graph capture failed|CUDA graph capture on the stream has failed|useCudaGraph flag has been ignored|Ignored --useCudaGraph flag|CUDA graphs and DLA offloading/;

/** Collects what single lines report of device, engine and run; a later line replaces an earlier one of its kind. */
class LoggedFacts {
  private readonly facts: Facts = {};

  take(message: string): void {
    for (const { start, pattern, fields, unit = 1 } of NUMBERS) {
      if (!message.startsWith(start)) continue;
      const found = pattern.exec(message);
      if (found === null) continue;
      for (const [index, field] of fields.entries()) {
        const value = printedNumber(found[index + 1] ?? '');
        if (value !== null) this.facts[field] = unit === 1 ? value : Math.round(value * unit);
      }
      return;
    }
    const text = TEXTS.find(({ start }) => message.startsWith(start));
    if (text !== undefined) this.facts[text.field] = message.slice(text.start.length, LONGEST_TEXT).trim();
    this.takeCapability(message);
    this.takeGraph(message);
    this.takeWeightBudget(message);
    this.takeTimingCache(message);
  }

  private takeCapability(message: string): void {
    if (!message.startsWith('Compute Capability: ')) return;
    const [, major, minor] = /: (\d{1,2})\.(\d)$/.exec(message) ?? [];
    if (major !== undefined && minor !== undefined)
      this.facts.computeCapability = Number(major) * 10 + Number(minor);
  }

  /** A capture that failed counts although the lines of a capture follow it: trtexec then measures without. */
  private takeGraph(message: string): void {
    if (!/CUDA graph/i.test(message)) return;
    if (GRAPH_REFUSED.test(message)) this.facts.graphCaptured = false;
    else if (message.startsWith('Successfully captured CUDA graph')) this.facts.graphCaptured ??= true;
  }

  /** Where 10.0 sets a budget without saying how many bytes that is. */
  private takeWeightBudget(message: string): void {
    if (message.startsWith('Weight streaming has been disabled at runtime')) this.facts.weightLimit = 'all';
    if (message.startsWith('The weight streaming budget will automatically be chosen'))
      this.facts.weightLimit = 'automatic';
  }

  private takeTimingCache(message: string): void {
    if (message.startsWith('Global timing cache in use')) this.facts.timingCacheInUse = 'global';
    else if (message.startsWith('Local timing cache in use')) this.facts.timingCacheInUse = 'local';
  }

  device(): LoggedDevice {
    return this.pick(['name', 'id', 'uuid', 'computeCapability', 'sms', 'memoryMiB']);
  }

  engine(): LoggedEngine {
    return this.pick([
      'parseSeconds',
      'builtSeconds',
      'loadedSeconds',
      'deserializedSeconds',
      'bytes',
      'inputs',
      'outputs',
      'scheduledLayers',
      'hostPersistentBytes',
      'devicePersistentBytes',
      'scratchBytes',
      'activationBytes',
      'weightsBytes',
      'contextBytes',
      'weightLimit',
      'peakCpuBytes',
      'peakGpuBytes',
      'timingCacheLoadedBytes',
      'timingCacheSavedBytes',
      'timingCacheInUse',
      'planVersion',
    ]);
  }

  run(): LoggedRun {
    return this.pick([
      'warmUpQueries',
      'warmUpMs',
      'queries',
      'seconds',
      'graphCaptured',
      'profiledIterations',
    ]);
  }

  private pick<Key extends keyof Facts>(
    keys: readonly Key[],
  ): { readonly [Each in Key]: NonNullable<Facts[Each]> | null } {
    const picked = keys.map((key) => [key, this.facts[key] ?? null]);
    return Object.fromEntries(picked) as { readonly [Each in Key]: NonNullable<Facts[Each]> | null };
  }
}

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
