import { accessSync, closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '../../base/files/folders.js';
import { writeFailed } from '../../base/files/publish.js';
import { assertNotInput } from '../../base/files/user-files.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { type ProcessGroup, startGroup } from '../../base/process/command.js';
import { agree } from '../../behaviour/versions.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { onLines } from './log/lines.js';
import { LogReader } from './log/log.js';
import type { TrtexecLog } from './log/result.js';
import { RunProgress } from './progress.js';

/** Number of the last lines that an error contains. */
const LAST_LINES = 20;

/** Memory is looked at so often; the system itself keeps the peak, so a look near the end finds it. */
const MEMORY_INTERVAL_MS = 250;

interface TrtexecRunRequest {
  readonly trtexec: string;
  readonly arguments: readonly string[];
  /** Its banner must agree, as far as both have parts; null takes any. */
  readonly expectedVersion: string | null;
  readonly environment: NodeJS.ProcessEnv;
  /** Working folder; undefined for this process's own. */
  readonly folder?: string;
  /** Both streams in the order their lines arrived; null for none. */
  readonly logPath: string | null;
  /** For the error's sentence: "building resnet50.onnx with trtexec". */
  readonly doing: string;
}

interface TrtexecRunOptions extends WorkContext {
  readonly graceMs?: number;
}

/** The result of a run of trtexec. Nothing in it states whether it did its work: `requireSuccess` does. */
export interface TrtexecRun {
  readonly arguments: readonly string[];
  readonly log: TrtexecLog;
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly wallMs: number;
  /** Most memory it held at once (resident, host); null where the system does not state it. */
  readonly peakMemoryBytes: number | null;
  readonly lastLines: readonly string[];
  readonly logPath: string | null;
}

/**
 * Runs trtexec in a process group of its own, reports its lines as events and writes them to a log, and waits until it ends.
 * Errors: TF_TRTEXEC_NOT_FOUND, TF_TRTEXEC_VERSION (stopped at its first line), TF_CANCELLED with the last lines in its details, TF_WRITE_FAILED.
 * However it ends, no process of the group is left. Nothing but the signal (`AbortSignal.timeout`) limits its time: a build may be silent for ten minutes.
 */
export async function runTrtexec(
  request: TrtexecRunRequest,
  options: TrtexecRunOptions,
): Promise<TrtexecRun> {
  throwIfCancelled(options.signal, request.doing);
  checkProgram(request.trtexec);
  return new Run(request, options).done();
}

function checkProgram(path: string): void {
  try {
    accessSync(path, constants.X_OK);
  } catch (cause) {
    throw new TrtforgeError('TF_TRTEXEC_NOT_FOUND', `${path} is not there or may not be run.`, { cause });
  }
}

class Run {
  readonly #request: TrtexecRunRequest;
  readonly #options: TrtexecRunOptions;
  readonly #reader = new LogReader();
  readonly #progress: RunProgress;
  readonly #lastLines: string[] = [];
  readonly #started = performance.now();
  readonly #log: LogFile | null;
  readonly #group: ProcessGroup;
  #peakMemoryBytes: number | null = null;
  #isVersionChecked = false;
  /** Why the run was stopped from outside; the first reason stays. */
  #stopped: TrtforgeError | undefined;

  constructor(request: TrtexecRunRequest, options: TrtexecRunOptions) {
    this.#request = request;
    this.#options = options;
    this.#progress = new RunProgress(options.emit);
    this.#log = request.logPath === null ? null : beginLog(request.logPath);
    this.#group = startGroup(request.trtexec, request.arguments, request);
  }

  done(): Promise<TrtexecRun> {
    const { child } = this.#group;
    const { signal, emit } = this.#options;
    const { doing } = this.#request;
    const onAbort = () => this.#stop(this.#cancelled());
    signal?.addEventListener('abort', onAbort, { once: true });
    const memory = setInterval(() => this.#lookAtMemory(), MEMORY_INTERVAL_MS);
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null) onLines(stream, (lines) => this.#take(lines));
    }
    return new Promise((resolve, reject) => {
      child.on('error', (cause) => {
        this.#stopped ??= new TrtforgeError(
          'TF_TRTEXEC_NOT_FOUND',
          `A process for ${doing} could not be started.`,
          {
            cause,
          },
        );
        if (child.pid === undefined) reject(this.#stopped);
      });
      child.on('close', (exitCode, killedBy) => {
        clearInterval(memory);
        signal?.removeEventListener('abort', onAbort);
        this.#log?.close();
        this.#progress.end();
        if (this.#stopped !== undefined) {
          emit?.({ type: 'log', source: 'trtforge', severity: 'warning', message: this.#stopped.message });
          return reject(this.#stopped);
        }
        resolve(this.#result(exitCode, killedBy));
      });
    });
  }

  #take(lines: readonly string[]): void {
    try {
      this.#log?.write(lines);
    } catch (error) {
      if (error instanceof TrtforgeError) this.#stop(error);
    }
    for (const line of lines) {
      for (const message of this.#reader.read(line)) this.#progress.take(message);
      if (line.trim() === '') continue;
      this.#lastLines.push(line.trimEnd());
      if (this.#lastLines.length > LAST_LINES) this.#lastLines.shift();
    }
    if (!this.#isVersionChecked) this.#checkVersion();
  }

  /** The banner is trtexec's first line. Another version would read its options another way, so it goes no further. */
  #checkVersion(): void {
    const { expectedVersion, trtexec } = this.#request;
    const version = this.#reader.version;
    if (version === null) return;
    this.#isVersionChecked = true;
    if (expectedVersion === null || agree(version, expectedVersion)) return;
    this.#stop(
      new TrtforgeError(
        'TF_TRTEXEC_VERSION',
        `${trtexec} is version ${version}; ${expectedVersion} was expected.`,
        {
          details: { found: version, expected: expectedVersion },
        },
      ),
    );
  }

  #cancelled(): TrtforgeError {
    const { doing, logPath } = this.#request;
    return new TrtforgeError('TF_CANCELLED', `Cancelled while ${doing}.`, {
      cause: this.#options.signal?.reason,
      details: { lastLines: [...this.#lastLines], log: logPath },
    });
  }

  /** Asks the whole group to end, and kills it when it does not. */
  #stop(why: TrtforgeError): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = why;
    this.#group.stop(this.#options.graceMs);
  }

  #lookAtMemory(): void {
    try {
      const status = readFileSync(`/proc/${this.#group.child.pid}/status`, 'latin1');
      const kibibytes = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
      if (kibibytes !== undefined) this.#peakMemoryBytes = Number(kibibytes) * 1024;
    } catch {
      // No such system, or the process has just ended.
    }
  }

  #result(exitCode: number | null, signal: NodeJS.Signals | null): TrtexecRun {
    return {
      arguments: this.#request.arguments,
      log: this.#reader.result(),
      exitCode,
      signal,
      wallMs: performance.now() - this.#started,
      peakMemoryBytes: this.#peakMemoryBytes,
      lastLines: this.#lastLines,
      logPath: this.#request.logPath,
    };
  }
}

/** A log being written while its program runs. Not published by rename like other files: a log is read while it grows, and all of it is true at any time. */
interface LogFile {
  write(lines: readonly string[]): void;
  close(): void;
}

/** Begins a log, in place of an older one of that name. Errors: TF_WRITE_FAILED, here and when writing. */
function beginLog(path: string): LogFile {
  const guarded = <T>(action: () => T): T => {
    try {
      return action();
    } catch (cause) {
      throw writeFailed(path, cause);
    }
  };
  const descriptor = guarded(() => {
    assertNotInput(path);
    makeFolder(dirname(path));
    return openSync(path, 'w', 0o666);
  });
  let isOpen = true;
  return {
    write: (lines) => {
      const bytes = Buffer.from(`${lines.join('\n')}\n`);
      for (let done = 0; done < bytes.length; )
        done += guarded(() => writeSync(descriptor, bytes, done, bytes.length - done));
    },
    close: () => {
      if (isOpen) closeSync(descriptor);
      isOpen = false;
    },
  };
}
