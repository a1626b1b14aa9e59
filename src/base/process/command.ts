import { type ChildProcess, spawn } from 'node:child_process';
import { resolve as resolvePath } from 'node:path';
import { noMoreFiles, systemErrorCode } from '../../errors.js';
import { GRACE_MS, throwIfCancelled } from './cancel.js';

/** The outcome of a short command. A command that is absent or hangs is an outcome, not an error: the caller has another way or reports it. */
export interface CommandOutcome {
  readonly outcome: 'ended' | 'absent' | 'timed-out' | 'failed';
  /** Null unless it ended by itself. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export type CommandRunner = (
  command: string,
  args: readonly string[],
  options: {
    readonly timeoutMs: number;
    readonly environment?: NodeJS.ProcessEnv;
    /** Ends it (SIGKILL), as `failed`. */
    readonly signal?: AbortSignal | undefined;
    /** Its standard input; default: nothing. */
    readonly input?: string;
  },
) => Promise<CommandOutcome>;

/** More output than any question asked here has an answer for; the rest is dropped. */
const MAX_OUTPUT_BYTES = 4 << 20;

/**
 * Runs a short command without a shell, in the root folder, because programs load code from their working folder (`python3 -m pip`: `pip.py`);
 * kills it (SIGKILL) after `timeoutMs`. Never rejects.
 */
export const runCommand: CommandRunner = (command, args, { timeoutMs, environment, signal, input }) =>
  new Promise((resolve) => {
    const child = spawn(command.includes('/') ? resolvePath(command) : command, args, {
      cwd: '/',
      stdio: 'pipe',
      env: environment ?? process.env,
      ...{ signal, killSignal: 'SIGKILL' },
    });
    try {
      withStreams(child);
    } catch {
      return resolve({ outcome: 'failed', exitCode: null, stdout: '', stderr: '' });
    }
    // One that ends before it has read all of it is judged by how it ended.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    const stdout = collectText(child.stdout);
    const stderr = collectText(child.stderr);
    let isLate = false;
    const finish = (outcome: CommandOutcome['outcome'], exitCode: number | null) => {
      clearTimeout(timer);
      resolve({ outcome, exitCode, stdout: stdout(), stderr: stderr() });
    };
    const end = () => {
      child.kill('SIGKILL');
      // A grandchild may hold the pipes open; the question is answered all the same.
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const timer = setTimeout(() => {
      isLate = true;
      end();
    }, timeoutMs);
    child.on('error', (error) => {
      const isAbsent = systemErrorCode(error) === 'ENOENT';
      if (!isAbsent) end();
      finish(isAbsent ? 'absent' : 'failed', null);
    });
    child.on('close', (exitCode) => finish(isLate ? 'timed-out' : 'ended', exitCode));
  });

/** The child. Throws TF_FILE_UNREADABLE where the limit of open files left Node none for its pipes: it has no streams then, whatever its type says. */
export function withStreams<C extends ChildProcess>(child: C): C {
  if ((child.stdout as unknown) !== undefined) return child;
  child.on('error', () => {});
  throw noMoreFiles('EMFILE');
}

/** Reads a stream; then gives its text. */
export function collectText(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    if (bytes < MAX_OUTPUT_BYTES) chunks.push(chunk);
    bytes += chunk.length;
  });
  return () => Buffer.concat(chunks).toString();
}

/**
 * The environment with these folders first in LD_LIBRARY_PATH. An empty item would be the working folder, from which no library is loaded: none is written
 * and none is passed on.
 */
export function withLoaderPath(env: NodeJS.ProcessEnv, folders: readonly string[] = []): NodeJS.ProcessEnv {
  const items = [...folders, ...(env.LD_LIBRARY_PATH ?? '').split(':')].filter((item) => item !== '');
  const { LD_LIBRARY_PATH: _, ...others } = env;
  return items.length === 0 ? others : { ...others, LD_LIBRARY_PATH: items.join(':') };
}

/**
 * A watcher in the program's own process group: when the pipe it reads from ends, because this process is gone however it went, it kills the group.
 * The shell then becomes the program itself, so the child's number is the program's.
 */
const WATCHED = '{ read -r _ <&3; kill -KILL 0; } </dev/null >/dev/null 2>&1 & exec 3<&-; exec "$0" "$@"';

/** A program in a process group of its own; whatever it starts ends with it. */
export interface ProcessGroup {
  readonly child: ChildProcess;
  /** Asks every process of the group to end, and kills those that have not after `graceMs` (default 5 s). Once: later calls change nothing. */
  stop(graceMs?: number): void;
}

/** Starts a program without input in a process group of its own, which ends when this process ends, even by SIGKILL. */
export function startGroup(
  program: string,
  args: readonly string[],
  options: { readonly environment: NodeJS.ProcessEnv; readonly folder?: string },
): ProcessGroup {
  const child = withStreams(
    spawn('/bin/sh', ['-c', WATCHED, program, ...args], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      env: options.environment,
      cwd: options.folder,
    }),
  );
  const signal = (name: NodeJS.Signals) => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, name);
    } catch {
      // Every process of the group has ended.
    }
  };
  let killer: NodeJS.Timeout | undefined;
  // The watcher outlives the program, and so may what the program started.
  child.on('exit', () => signal('SIGKILL'));
  child.on('close', () => clearTimeout(killer));
  const stop = (graceMs = GRACE_MS) => {
    if (killer !== undefined) return;
    signal('SIGTERM');
    killer = setTimeout(() => signal('SIGKILL'), graceMs);
  };
  return { child, stop };
}

interface ShellOptions {
  /** Then it is stopped as if cancelled, and its outcome is `timed-out`. */
  readonly timeoutMs: number;
  readonly environment: NodeJS.ProcessEnv;
  readonly signal: AbortSignal | undefined;
  /** For the error's sentence: "checking a candidate". */
  readonly doing: string;
}

/**
 * Runs a user's shell line in the working folder, in a process group of its own: a Ctrl-C in the terminal reaches it through `signal` alone, and ends all that
 * it started. Throws TF_CANCELLED, once the line has ended.
 */
export async function runShellLine(
  line: string,
  { timeoutMs, environment, signal, doing }: ShellOptions,
): Promise<CommandOutcome> {
  throwIfCancelled(signal, doing);
  const { child, stop } = startGroup('/bin/sh', ['-c', line], { environment });
  const [stdout, stderr] = [collectText(child.stdout!), collectText(child.stderr!)];
  let isLate = false;
  const onAbort = () => stop();
  const timer = setTimeout(() => {
    isLate = true;
    stop();
  }, timeoutMs);
  signal?.addEventListener('abort', onAbort, { once: true });
  const exitCode = await new Promise<number | null>((resolve) => {
    child.on('error', () => resolve(null));
    child.on('close', resolve);
    // A process that left the group may hold the pipes open.
    child.on('exit', () => {
      if (!isLate && signal?.aborted !== true) return;
      child.stdout?.destroy();
      child.stderr?.destroy();
    });
  });
  clearTimeout(timer);
  signal?.removeEventListener('abort', onAbort);
  throwIfCancelled(signal, doing);
  return {
    outcome: isLate ? 'timed-out' : 'ended',
    exitCode: isLate ? null : exitCode,
    stdout: stdout(),
    stderr: stderr(),
  };
}
