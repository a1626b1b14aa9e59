import { TrtforgeError } from '../../errors.js';

/** TF_CANCELLED with the signal's reason as its cause; `doing` completes "Cancelled while …". */
export const cancelled = ({ doing, signal }: { readonly doing: string; readonly signal?: AbortSignal }) =>
  new TrtforgeError('TF_CANCELLED', `Cancelled while ${doing}.`, { cause: signal?.reason });

/** Throws `cancelled` once the signal is aborted. */
export function throwIfCancelled(signal: AbortSignal | undefined, doing: string): void {
  if (signal?.aborted) throw cancelled({ doing, signal });
}

/** Waits `ms` milliseconds, or less when the signal is aborted: then throws TF_CANCELLED. */
export function sleep(ms: number, signal: AbortSignal | undefined, doing: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      try {
        throwIfCancelled(signal, doing);
        resolve();
      } catch (error) {
        reject(error);
      }
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end, { once: true });
    if (signal?.aborted) end();
  });
}

/** Time that a program has to end after it was asked to, before its whole process group is killed. */
export const GRACE_MS = 5000;
