import { type ChildProcess, spawn } from 'node:child_process';

/**
 * A watcher in trtexec's own process group: when the pipe it reads from ends, because this process is gone however it went, it kills the group.
 * The shell then becomes trtexec itself, so the child's number is trtexec's.
 */
const WATCHED = '{ read -r _ <&3; kill -KILL 0; } </dev/null >/dev/null 2>&1 & exec 3<&-; exec "$0" "$@"';

/** A program in a process group of its own; whatever it starts ends with it. */
export interface ProcessGroup {
  readonly child: ChildProcess;
  /** Sends a signal to every process of the group; a group that is gone is no error. */
  signal(signal: NodeJS.Signals): void;
}

/** Starts a program without input in a process group of its own, which ends when this process ends, even by SIGKILL. */
export function startGroup(
  program: string,
  args: readonly string[],
  options: { readonly environment: NodeJS.ProcessEnv; readonly folder?: string | undefined },
): ProcessGroup {
  const child = spawn('/bin/sh', ['-c', WATCHED, program, ...args], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    env: options.environment,
    ...(options.folder === undefined ? {} : { cwd: options.folder }),
  });
  const signal = (name: NodeJS.Signals) => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, name);
    } catch {
      // Every process of the group has ended.
    }
  };
  // The watcher outlives trtexec, and so may what trtexec started.
  child.on('exit', () => signal('SIGKILL'));
  return { child, signal };
}
