import { TrtforgeError } from '../../errors.js';

/** Throws TF_CANCELLED once the signal is aborted; `doing` completes "Cancelled while …". */
export function throwIfCancelled(signal: AbortSignal | undefined, doing: string): void {
  if (signal?.aborted) throw new TrtforgeError('TF_CANCELLED', `Cancelled while ${doing}.`);
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
