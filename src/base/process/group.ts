import { type ChildProcess, spawn } from 'node:child_process';
import { throwIfCancelled } from './cancel.js';
import { type CommandOutcome, collectText, withStreams } from './command.js';

/** Time that a program has to end after it was asked to, before its whole process group is killed. */
const GRACE_MS = 5000;

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

export interface ShellOptions {
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
