import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Who holds something: enough to ask later, from any process of the same machine, whether that process still lives. */
export interface ProcessMark {
  readonly pid: number;
  /** Start of the process in kernel ticks, so that a reused pid is not taken for it; null where /proc is absent. */
  readonly startTicks: string | null;
  /** Boot and pid namespace: pids mean something only where these agree. */
  readonly machine: string;
  /** For messages only. */
  readonly host: string;
}

/** The mark of this process. */
export function ownMark(): ProcessMark {
  return { pid: process.pid, startTicks: startTicks(process.pid), machine: machineId(), host: hostname() };
}

/** `dead` and `alive` are certain; `unknown` for processes of other machines and containers. */
export function stateOf(mark: ProcessMark): 'alive' | 'dead' | 'unknown' {
  if (mark.machine !== machineId()) return 'unknown';
  try {
    process.kill(mark.pid, 0);
  } catch (error) {
    // EPERM: it lives and belongs to another user.
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return 'dead';
  }
  const now = startTicks(mark.pid);
  return mark.startTicks !== null && now !== null && now !== mark.startTicks ? 'dead' : 'alive';
}

/** True for plain data of that form; readers of other processes' files check with it. */
export function isProcessMark(value: unknown): value is ProcessMark {
  if (typeof value !== 'object' || value === null) return false;
  const mark = value as Partial<ProcessMark>;
  return (
    Number.isSafeInteger(mark.pid) &&
    (mark.pid ?? 0) > 0 &&
    (mark.startTicks === null || typeof mark.startTicks === 'string') &&
    typeof mark.machine === 'string' &&
    typeof mark.host === 'string'
  );
}

function machineId(): string {
  const boot = attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
  const namespace = attempt(() => readlinkSync('/proc/self/ns/pid'));
  return boot === null ? `host:${hostname()}` : `${boot}/${namespace ?? ''}`;
}

/** Field 22 of /proc/PID/stat; the command name before it may hold spaces and parentheses. A zombie counts as gone. */
function startTicks(pid: number): string | null {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (fields === undefined) return null;
  return fields[0] === 'Z' ? 'zombie' : (fields[19] ?? null);
}

function attempt<T>(action: () => T): T | null {
  try {
    return action();
  } catch {
    return null;
  }
}
