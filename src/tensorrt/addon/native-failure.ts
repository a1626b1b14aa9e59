import { catalogue, type ErrorCode, TrtforgeError } from '../../errors.js';
import type { NativeJob } from './native-job.js';

/** What the compiled module throws: a plain Error that carries `code` and `details`. */
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
    ...(details === undefined ? {} : { details }),
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
