import { TrtforgeError } from '../../../errors.js';
import type { NativeJob } from '../../../tensorrt/addon/native-job.js';

/**
 * Waits for work of the addon. Aborting asks it to stop and still waits until it has: memory it uses is its own until then.
 * What it gave all the same is handed to `discard`. Throws TF_CANCELLED; `doing` completes «Cancelled while …».
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
  throw new TrtforgeError('TF_CANCELLED', `Cancelled while ${doing}.`);
}
