import { randomUUID } from 'node:crypto';
import { lutimesSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { lstatIfThere, readJson, removeIfAllowed } from '../../../base/files/files.js';
import { systemErrorCode } from '../../../errors.js';

/**
 * The subject of a claim: the right to build an identity, a plan that a process uses, or a folder of unpublished work. One file, one owner; the file
 * is created when it is not there yet, its time is the owner's heartbeat where the kind has one, and a process that finds its owner dead removes it.
 */
export type ClaimKind = 'build' | 'use' | 'pending';

/** Who made a claim: enough to find out later, from any process of the same machine, whether that process still lives. */
export interface Owner {
  readonly pid: number;
  /** Start of the process in kernel ticks, so that a reused pid is not taken for it; null where /proc is absent. */
  readonly startTicks: string | null;
  /** Boot and pid namespace: pids mean something only where these agree. */
  readonly machine: string;
  /** For messages only. */
  readonly host: string;
}

/** A claim as it is found. */
export interface Claim {
  readonly path: string;
  /** Differs from claim to claim; null in a file that is not a valid claim (cut short by a crash, of another kind). */
  readonly token: string | null;
  readonly owner: Owner | null;
  /** Changes with every heartbeat, and when another file takes its place. */
  readonly beat: string;
  /** In milliseconds since 1970, by the clock of the file system. */
  readonly mtimeMs: number;
}

/** More than any claim has. */
export const LARGEST_CLAIM = 4096;

/** Claims whose owner cannot be checked (another machine, a damaged file) count for this long where nobody watches their heartbeat. */
const UNKNOWN_KEEP_MS = 24 * 3600 * 1000;

/** Creates a claim of this process; returns its token, undefined where the path is taken. Throws system errors. */
export function createClaim(path: string, kind: ClaimKind): string | undefined {
  const token = randomUUID();
  try {
    writeFileSync(path, JSON.stringify({ token, kind, owner: thisProcess() }), { flag: 'wx' });
    return token;
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') return undefined;
    removeIfAllowed(path);
    throw error;
  }
}

/** The claim at a path; undefined where there is none. A link, a folder or a FIFO is `odd`: no process of ours makes those, and nobody's claim. */
export function readClaim(path: string, kind: ClaimKind): Claim | 'odd' | undefined {
  const stats = lstatIfThere(path);
  if (stats === undefined) return undefined;
  if (!stats.isFile()) return 'odd';
  const { token, owner } = contentOf(readJson(path, LARGEST_CLAIM), kind);
  return { path, token, owner, beat: `${stats.mtimeNs} ${stats.ino}`, mtimeMs: Number(stats.mtimeMs) };
}

/** Whether the owner is dead for certain, or cannot be checked and the claim is more than a day old; `since` is the age's begin where it is not the file's time. */
export function isAbandoned(claim: Claim | undefined, since: number, now = Date.now()): boolean {
  const state = claim === undefined || claim.owner === null ? 'unknown' : stateOf(claim.owner);
  return state === 'dead' || (state === 'unknown' && now - since > UNKNOWN_KEEP_MS);
}

/** Touches the claim. A file that is gone is no error: what is claimed may be cleared at any time. */
export function beat(path: string): void {
  try {
    lutimesSync(path, new Date(), new Date());
  } catch {
    // Another process may do the same work meanwhile, which costs work and harms nothing.
  }
}

/** `process 1234 on host`, for messages. */
export const describeOwner = (owner: Owner | null): string =>
  owner === null ? 'an unknown process' : `process ${owner.pid} on ${owner.host}`;

/** Whose heartbeats stopped, by the watcher's own monotonic clock, so that clocks of machines need not agree. */
export class HeartbeatWatch {
  readonly #expiryMs: number;
  readonly #seen = new Map<string, { readonly beat: string; readonly at: number }>();

  constructor(expiryMs: number) {
    this.#expiryMs = expiryMs;
  }

  /** Whether `beat` has been the same for longer than the expiry since it was first seen. */
  hasStopped(name: string, beat: string): boolean {
    const now = performance.now();
    const seen = this.#seen.get(name);
    if (seen === undefined || seen.beat !== beat) {
      this.#seen.set(name, { beat, at: now });
      return false;
    }
    return now - seen.at > this.#expiryMs;
  }
}

export const thisProcess = (): Owner => ({
  pid: process.pid,
  startTicks: startTicks(process.pid),
  machine: machineId(),
  host: hostname(),
});

/** `dead` and `alive` are certain; `unknown` for processes of other machines and containers. */
export function stateOf(owner: Owner): 'alive' | 'dead' | 'unknown' {
  if (owner.machine !== machineId()) return 'unknown';
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    // EPERM: it lives and belongs to another user.
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return 'dead';
  }
  const now = startTicks(owner.pid);
  return owner.startTicks !== null && now !== null && now !== owner.startTicks ? 'dead' : 'alive';
}

function contentOf(content: unknown, kind: ClaimKind): Pick<Claim, 'token' | 'owner'> {
  const nobody = { token: null, owner: null };
  if (typeof content !== 'object' || content === null) return nobody;
  const { token, kind: found, owner } = content as { token?: unknown; kind?: unknown; owner?: unknown };
  if (typeof token !== 'string' || !/^[0-9a-f-]{36}$/.test(token)) return nobody;
  return found === kind && isOwner(owner) ? { token, owner } : nobody;
}

function isOwner(value: unknown): value is Owner {
  if (typeof value !== 'object' || value === null) return false;
  const owner = value as Partial<Owner>;
  return (
    Number.isSafeInteger(owner.pid) &&
    (owner.pid ?? 0) > 0 &&
    (owner.startTicks === null || typeof owner.startTicks === 'string') &&
    typeof owner.machine === 'string' &&
    typeof owner.host === 'string'
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
