import { type ChildProcess, fork } from 'node:child_process';
import { catalogue, type ErrorCode, TrtforgeError } from '../../errors.js';
import type { EventListener, WorkContext, WorkEvent } from '../../events.js';
import { assertUnbundled } from '../files/own-files.js';
import { cancelled } from './cancel.js';
import { withLoaderPath, withStreams } from './command.js';

/** Number of a dead child's last lines that its error contains. */
const LAST_LINES = 20;

/** The messages between a supervised child and its parent. Values cross by structured clone, so typed arrays stay typed arrays. */
export type ChildMessage =
  | { readonly kind: 'event'; readonly event: WorkEvent }
  | { readonly kind: 'result'; readonly value: unknown }
  | {
      readonly kind: 'error';
      readonly code: ErrorCode;
      readonly message: string;
      readonly remedy: string;
      readonly details?: Readonly<Record<string, unknown>>;
    };

/** Aborting asks the child to stop (SIGTERM), then kills it after `graceMs`. */
export interface ChildWork extends Omit<WorkContext, 'environment'> {
  readonly graceMs?: number;
  readonly env?: NodeJS.ProcessEnv;
  /** The child's work, for the error's sentence: "building resnet50.onnx". */
  readonly doing: string;
}

/**
 * Runs a module in a child process that may crash: libraries such as TensorRT can abort the whole process, and return their memory only at exit.
 * The module calls `serve` from `supervised-child.ts`. Resolves with what it returned; rejects with its TrtforgeError, with TF_CANCELLED,
 * or with TF_CHILD_DIED that names the signal and the last lines the child printed.
 *
 * `module` is a URL into `dist/` (write it as `new URL('../../../dist/<room>/<file>.js', import.meta.url)`, which is right from `src/` and from `dist/`).
 */
export function runSupervised(module: URL, request: unknown, options: ChildWork): Promise<unknown> {
  if (options.signal?.aborted) return Promise.reject(cancelled(options));
  return new Promise((resolve, reject) => {
    const child = forkModule(module, options);
    const lines = lastLines(child, options.emit);
    let outcome: (() => void) | undefined;
    const stopWhenAborted = onAbort(child, options);

    child.on('message', (message: ChildMessage) => {
      if (message.kind === 'event') {
        lines.note(message.event);
        options.emit?.(message.event);
      } else if (message.kind === 'result') outcome = () => resolve(message.value);
      else outcome = () => reject(errorFromChild(message, options.signal));
    });
    child.on('error', (cause) => {
      // One that started and died cannot be sent to either: how it ended comes with its close.
      if (child.pid === undefined) reject(notStarted(options.doing, cause));
    });
    child.on('close', (exitCode, signal) => {
      stopWhenAborted();
      if (outcome !== undefined) return outcome();
      if (options.signal?.aborted) return reject(cancelled(options));
      return reject(deathOf(options.doing, lines.all(), exitCode, signal));
    });
    child.send({ request });
  });
}

/** Starts a module in a child whose output is collected and whose messages keep typed arrays. */
export function forkModule(module: URL, options: Pick<ChildWork, 'env'>): ChildProcess {
  assertUnbundled('a child process');
  // Node reads every certificate of such a file at its start, 0.1 s for a system's; no child opens a connection.
  const { NODE_EXTRA_CA_CERTS: _, ...env } = options.env ?? process.env;
  return withStreams(
    fork(module, [], {
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: withLoaderPath(env),
      execArgv: [],
    }),
  );
}

/** The error a child reported, as if thrown here: what ended because of the signal has its reason as the cause. */
export function errorFromChild(
  message: ChildMessage & { readonly kind: 'error' },
  signal?: AbortSignal,
): TrtforgeError {
  const { code, remedy, details } = message;
  const cause = code === 'TF_CANCELLED' ? signal?.reason : undefined;
  return new TrtforgeError(code, message.message, { remedy, details, cause });
}

export const notStarted = (doing: string, cause: unknown): TrtforgeError =>
  new TrtforgeError('TF_INTERNAL', `A child process for ${doing} could not be started.`, { cause });

/** TF_CHILD_DIED with the signal or exit code (both null: it has neither) and the last lines; TF_CANCELLED where Ctrl-C reached the child before it could listen. */
export function deathOf(
  doing: string,
  lastLines: readonly string[],
  exitCode: number | null,
  signal: NodeJS.Signals | null,
): TrtforgeError {
  if (signal === 'SIGINT') return cancelled({ doing });
  const ended = exitCode === null ? 'took no request and did not end' : `ended with exit code ${exitCode}`;
  const how = signal === null ? ended : `was killed by ${signal}`;
  const tail = lastLines.length === 0 ? '' : ` Its last lines:\n${lastLines.join('\n')}`;
  return new TrtforgeError('TF_CHILD_DIED', `The process ${doing} ${how}.${tail}`, {
    remedy: remedyForDeath(signal, lastLines),
    details: { signal, exitCode, lastLines },
  });
}

/** The remedy where a process was killed by a signal, or died, with these last lines. */
export function remedyForDeath(signal: NodeJS.Signals | null, lastLines: readonly string[]): string {
  if (signal === 'SIGKILL')
    return "SIGKILL comes from outside: usually the kernel's out-of-memory killer (see dmesg), or a user who ended the process. Free memory, or use smaller shapes and fewer profiles.";
  if (lastLines.length === 0)
    return "It printed nothing before. On the command line, `--verbose` prints the library's lines, which show how far it came.";
  return catalogue.TF_CHILD_DIED.remedy;
}

/** Keeps a library's last lines in a child, whether they were logged as events or printed on its way down; our own are not among them. */
export function lastLines(
  child: ChildProcess,
  emit: EventListener | undefined,
): { note(event: WorkEvent): void; all(): readonly string[]; clear(): void } {
  const kept: string[] = [];
  const keep = (line: string) => {
    kept.push(line);
    if (kept.length > LAST_LINES) kept.shift();
  };
  const collect = (stream: NodeJS.ReadableStream | null) => {
    let rest = '';
    const take = (line: string) => {
      if (line.trim() === '') return;
      keep(line);
      emit?.({ type: 'log', source: 'child', severity: 'info', message: line });
    };
    stream?.on('data', (chunk: Buffer) => {
      const parts = (rest + chunk.toString()).split('\n');
      rest = parts.pop() ?? '';
      parts.forEach(take);
    });
    stream?.on('end', () => take(rest));
  };
  collect(child.stdout);
  collect(child.stderr);
  return {
    note: (event) => {
      if (event.type === 'log' && event.severity !== 'verbose' && event.source !== 'trtforge')
        keep(event.message);
    },
    all: () => kept,
    clear: () => kept.splice(0),
  };
}

export function onAbort(child: ChildProcess, options: Pick<ChildWork, 'signal' | 'graceMs'>): () => void {
  let killer: NodeJS.Timeout | undefined;
  const stop = () => {
    child.kill('SIGTERM');
    killer = setTimeout(() => child.kill('SIGKILL'), options.graceMs ?? 5000);
  };
  options.signal?.addEventListener('abort', stop, { once: true });
  return () => {
    clearTimeout(killer);
    options.signal?.removeEventListener('abort', stop);
  };
}
