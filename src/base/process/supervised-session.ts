import type { ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { TrtforgeError } from '../../errors.js';
import { cancelled } from './cancel.js';
import {
  type ChildMessage,
  type ChildWork,
  deathOf,
  errorFromChild,
  forkModule,
  lastLines,
  notStarted,
  onAbort,
} from './supervise.js';

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

const GRACE_MS = 5000;

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
