import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { catalogue, type ErrorCode, TrtforgeError } from '../../errors.js';
import type { EventListener, WorkContext, WorkEvent } from '../../events.js';
import { assertUnbundled } from '../files/folders.js';
import { cancelled, GRACE_MS } from './cancel.js';
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
function forkModule(module: URL, options: Pick<ChildWork, 'env'>): ChildProcess {
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

const notStarted = (doing: string, cause: unknown): TrtforgeError =>
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

/**
 * Keeps a library's last lines in a child, logged as events or printed on its way down; our own are not among them. Both come by ways of their own, in no order, so
 * neither may push out more than half of the other.
 */
export function lastLines(
  child: ChildProcess,
  emit: EventListener | undefined,
): { note(event: WorkEvent): void; all(): readonly string[]; clear(): void } {
  const logged: string[] = [];
  const printed: string[] = [];
  const keep = (lines: string[], line: string) => {
    lines.push(line);
    if (lines.length > LAST_LINES) lines.shift();
  };
  const besides = (lines: readonly string[], others: readonly string[]) =>
    lines.slice(-Math.max(LAST_LINES / 2, LAST_LINES - others.length));
  const collect = (stream: NodeJS.ReadableStream | null) => {
    let rest = '';
    const take = (line: string) => {
      if (line.trim() === '') return;
      keep(printed, line);
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
        keep(logged, event.message);
    },
    all: () => [...besides(logged, printed), ...besides(printed, logged)],
    clear: () => {
      logged.length = 0;
      printed.length = 0;
    },
  };
}

function onAbort(child: ChildProcess, options: Pick<ChildWork, 'signal' | 'graceMs'>): () => void {
  let killer: NodeJS.Timeout | undefined;
  const stop = () => {
    child.kill('SIGTERM');
    killer = setTimeout(() => child.kill('SIGKILL'), options.graceMs ?? GRACE_MS);
  };
  options.signal?.addEventListener('abort', stop, { once: true });
  return () => {
    clearTimeout(killer);
    options.signal?.removeEventListener('abort', stop);
  };
}

/**
 * A child process that answers many requests, for libraries that keep state (a loaded model) and may crash. Between requests it keeps the caller's process
 * no more alive than a loaded library would; it ends with that process.
 */
export interface SupervisedSession {
  /**
   * Sends a request and resolves with the answer; requests are answered one after the other, and the next one is with the child by then. Rejects with the
   * child's TrtforgeError, with TF_CHILD_DIED, or with TF_CANCELLED: aborting the one that is answered kills the child, as a library call cannot be interrupted.
   */
  request(value: unknown, signal?: AbortSignal): Promise<unknown>;
  /** Largest resident memory of the child so far, bytes; null after its end, and where the system does not report it. */
  peakBytes(): number | null;
  /** From now on events go to another caller, whose work the child does, and its peak memory counts anew. False where the child has ended, or its peak cannot be reset. */
  handTo(next: Omit<ChildWork, 'signal'>): boolean;
  /** Lets the child end and waits for it; kills it when it does not within the grace time. */
  close(): Promise<void>;
}

/** A request that is with the child. */
interface Asked {
  /** It is the first: the child works on it. */
  begin(): void;
  take(answer: ChildMessage): void;
}

/** Starts a module that calls `serveSession` from `supervised-child.ts`. `module` is a URL into `dist/`, as for `runSupervised`. */
export function startSupervised(module: URL, first: Omit<ChildWork, 'signal'>): SupervisedSession {
  const child = forkModule(module, first);
  let options = first;
  const lines = lastLines(child, options.emit);
  const ending = ended(child, { lines: () => lines.all(), doing: () => options.doing });
  const asked: Asked[] = [];
  let last: Promise<unknown> = Promise.resolve();
  let beforeLast: Promise<unknown> = last;
  let closing: Promise<void> | undefined;
  const whileBusy = keptAlive(child);

  child.on('message', (message: ChildMessage) => {
    if (message.kind !== 'event') {
      asked.shift()?.take(message);
      asked[0]?.begin();
      return;
    }
    lines.note(message.event);
    options.emit?.(message.event);
  });
  const request = (value: unknown, signal?: AbortSignal): Promise<unknown> => {
    if (closing !== undefined)
      return Promise.reject(
        new TrtforgeError(
          'TF_SESSION_CLOSED',
          `The session for ${options.doing} was used after it was closed.`,
        ),
      );
    const before = beforeLast;
    const answer = whileBusy(() =>
      before.then(() => oneRequest(child, ending, asked, value, { ...options, ...(signal && { signal }) })),
    );
    beforeLast = last;
    last = answer.catch(() => {});
    return answer;
  };
  return {
    request,
    peakBytes: () => peakBytesOf(child.pid),
    handTo: (next) => {
      if (closing !== undefined || ending.error() !== undefined || !resetPeak(child.pid)) return false;
      options = next;
      lines.clear();
      return true;
    },
    close: () => {
      closing ??= whileBusy(() => close(child, ending, options.graceMs ?? GRACE_MS));
      return closing;
    },
  };
}

/** Lets the event loop end unless work on the child is pending. */
function keptAlive(child: ChildProcess): <T>(work: () => Promise<T>) => Promise<T> {
  // Pipes of a child are sockets, which the type of its streams hides.
  const handles = [child, child.channel, child.stdout, child.stderr] as (Pick<
    ChildProcess,
    'ref' | 'unref'
  > | null)[];
  let pending = 0;
  for (const handle of handles) handle?.unref();
  return async (work) => {
    if (pending++ === 0) for (const handle of handles) handle?.ref();
    try {
      return await work();
    } finally {
      if (--pending === 0) for (const handle of handles) handle?.unref();
    }
  };
}

function peakBytesOf(pid: number | undefined): number | null {
  try {
    const kibibytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kibibytes === undefined ? null : Number(kibibytes) * 1024;
  } catch {
    return null;
  }
}

/** The kernel's peak becomes what is resident now. */
function resetPeak(pid: number | undefined): boolean {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
    return true;
  } catch {
    return false;
  }
}

interface Ending {
  readonly promise: Promise<TrtforgeError>;
  readonly error: () => TrtforgeError | undefined;
  /** The same before the end is reported. */
  readonly soFar: () => TrtforgeError;
}

/** The child's end, whenever it comes, as the error that a request then gets. */
function ended(
  child: ChildProcess,
  { lines, doing }: { readonly lines: () => readonly string[]; readonly doing: () => string },
): Ending {
  let error: TrtforgeError | undefined;
  const promise = new Promise<TrtforgeError>((resolve) => {
    const end = (reason: TrtforgeError) => {
      error ??= reason;
      resolve(error);
    };
    child.on('close', (exitCode, signal) => end(deathOf(doing(), lines(), exitCode, signal)));
    child.on('error', (cause) => {
      if (child.pid === undefined) end(notStarted(doing(), cause));
    });
  });
  const soFar = () => deathOf(doing(), lines(), child.exitCode, child.signalCode);
  return { promise, error: () => error, soFar };
}

function oneRequest(
  child: ChildProcess,
  ending: Ending,
  asked: Asked[],
  value: unknown,
  options: ChildWork,
): Promise<unknown> {
  const { signal } = options;
  if (signal?.aborted) return Promise.reject(cancelled(options));
  const dead = ending.error();
  if (dead !== undefined) return Promise.reject(dead);
  return new Promise((resolve, reject) => {
    // Until it is the first, the child is another request's, and its answer is only dropped.
    const drop = () => finish(() => reject(cancelled(options)));
    let unlisten = () => signal?.removeEventListener('abort', drop);
    const finish = (settle: () => void) => {
      unlisten();
      settle();
    };
    signal?.addEventListener('abort', drop);
    const request: Asked = {
      begin: () => {
        unlisten();
        if (signal?.aborted !== true) unlisten = onAbort(child, options);
      },
      take: (message) => {
        if (message.kind === 'result') finish(() => resolve(message.value));
        else if (message.kind === 'error') finish(() => reject(errorFromChild(message, signal)));
      },
    };
    asked.push(request);
    if (asked.length === 1) request.begin();
    void ending.promise.then((error) => {
      finish(() => reject(signal?.aborted ? cancelled(options) : error));
    });
    child.send({ request: value }, (error) => {
      if (error === null) return;
      // The channel of a dying child closes before its end is reported, which a core dump holds up; one that hangs would leave the request waiting.
      const other = setTimeout(() => finish(() => reject(ending.soFar())), options.graceMs ?? GRACE_MS);
      void ending.promise.then(() => clearTimeout(other));
    });
  });
}

async function close(child: ChildProcess, ending: Ending, graceMs: number): Promise<void> {
  if (ending.error() !== undefined) return;
  // Not disconnect(): after it Node never reports the child's close.
  if (child.connected) child.send({ end: true }, () => {});
  const killer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  await ending.promise;
  clearTimeout(killer);
}
