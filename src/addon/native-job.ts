import { cancelled } from '../base/process/cancel.js';
import { catalogue, type ErrorCode, TrtforgeError } from '../errors.js';

export interface NativeJob<T> {
  /** Rejects with a TrtforgeError. */
  readonly done: Promise<T>;
  /** Asks the library to stop at its next progress step. 8.6 has no progress monitor: there only killing the process stops a build that runs. */
  cancel(): void;
}

/**
 * Events of the library while it works. `severity` is the library's: 0 internal error to 4 verbose. Phases are the outer ones; phases `inside` them
 * are reported ten times a second: an inner phase at its start (step -1) or after one of its steps.
 */
export type NativeEvent =
  | { readonly type: 'log'; readonly severity: number; readonly message: string }
  | { readonly type: 'phase-start'; readonly phase: string; readonly steps: number }
  | { readonly type: 'step'; readonly phase: string; readonly step: number }
  | { readonly type: 'inside'; readonly phase: string; readonly step: number; readonly steps: number }
  | { readonly type: 'phase-end'; readonly phase: string };

const running = new Set<NativeJob<unknown>>();
let watching = false;

/** The job itself. Node does not end before the addon's work is over, so work that still runs at `process.exit` is asked to stop. */
export function endWithProcess<T>(job: NativeJob<T>): NativeJob<T> {
  if (!watching) {
    process.once('exit', () => {
      for (const one of running) one.cancel();
    });
    watching = true;
  }
  running.add(job);
  const over = () => void running.delete(job);
  job.done.then(over, over);
  return job;
}

/**
 * Waits for work of the addon. Aborting asks it to stop and still waits until it has: memory it uses is its own until then.
 * What it gave all the same is handed to `discard`. Throws TF_CANCELLED; `doing` completes "Cancelled while …".
 */
export async function finished<T>(
  job: NativeJob<T>,
  signal: AbortSignal | undefined,
  doing: string,
  discard: (value: T) => void = () => {},
): Promise<T> {
  if (signal === undefined) return job.done;
  const cancel = () => job.cancel();
  if (signal.aborted) cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const value = await job.done;
    if (!signal.aborted) return value;
    discard(value);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
  throw cancelled({ doing, signal });
}

/** The error of the compiled module: a plain Error that carries `code` and `details`. */
interface NativeFailure extends Error {
  readonly code: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

const isNativeFailure = (error: unknown): error is NativeFailure =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code in catalogue;

/** A failure of the compiled module as the TrtforgeError of its code; anything else as it is. */
export function toTrtforgeError(error: unknown): unknown {
  if (!isNativeFailure(error)) return error;
  const { code, message, details } = error;
  return new TrtforgeError(code as ErrorCode, message, {
    cause: error,
    details,
  });
}

const rethrow = (error: unknown): never => {
  throw toTrtforgeError(error);
};

export function rethrown<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    return rethrow(error);
  }
}

/** A job whose failure is a TrtforgeError, and whose result is what `convert` makes of the compiled module's. */
export function convertedJob<T, R>(native: NativeJob<T>, convert: (result: T) => R): NativeJob<R> {
  return { done: native.done.then(convert, rethrow), cancel: () => native.cancel() };
}

export const jobOf = <T>(native: NativeJob<T>): NativeJob<T> => convertedJob(native, (result) => result);
