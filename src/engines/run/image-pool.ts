import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { assertUnbundled } from '../../base/files/folders.js';
import { type ChildMessage, errorFromChild } from '../../base/process/supervise.js';
import { TrtforgeError } from '../../errors.js';
import { loadSharp } from '../../formats/images/image.js';
import type { Preprocessing } from '../../formats/images/preprocess.js';
import type { ImageInput, PreparedImage } from './prepared-image.js';

const THREAD = new URL('../../../dist/engines/run/image-thread.js', import.meta.url);
/** Starting a thread costs about as much as preparing so many images. */
const IMAGES_WORTH_A_THREAD = 8;

/** The data that a thread is started with. */
export interface ImageThreadData {
  readonly input: ImageInput;
  readonly preprocessing: Preprocessing;
}

/** An answer of a thread; one that is no error has a PreparedImage. */
export interface ImageAnswer {
  readonly id: number;
  readonly answer: ChildMessage;
}

interface ImageThreads {
  readonly count: number;
  /** Rejects with what reading an image throws; such a promise that nobody awaits is not an unhandled rejection. */
  prepare(path: string): Promise<PreparedImage>;
  /** Ends the threads; images that are not ready are left. */
  close(): Promise<void>;
}

/**
 * Threads that prepare images, so that resizing does not keep the thread that feeds a session: one a processor core at most. Each decodes on libuv's threads
 * (UV_THREADPOOL_SIZE: one a core in the command line, else 4 by default). Throws TF_DECODER_MISSING.
 */
export async function startImageThreads(
  input: ImageInput,
  preprocessing: Preprocessing,
  images: number,
): Promise<ImageThreads> {
  // sharp's library must be loaded by the main thread first, or it is unloaded with the first thread that ends.
  await loadSharp();
  const count = Math.min(availableParallelism(), Math.ceil(images / IMAGES_WORTH_A_THREAD));
  const workerData: ImageThreadData = { input, preprocessing };
  const waiting = new Map<
    number,
    { readonly resolve: (image: PreparedImage) => void; readonly reject: (error: unknown) => void }
  >();
  let ended: TrtforgeError | undefined;
  const end = (cause: unknown) => {
    ended = new TrtforgeError('TF_INTERNAL', 'A thread that prepares images ended.', { cause });
    for (const { reject } of waiting.values()) reject(ended);
  };
  assertUnbundled('a thread');
  const workers = Array.from({ length: count }, () =>
    new Worker(THREAD, { workerData, execArgv: [] })
      .on('error', end)
      .on('message', ({ id, answer }: ImageAnswer) => {
        const { resolve, reject } = waiting.get(id)!;
        waiting.delete(id);
        if (answer.kind === 'result') resolve(answer.value as PreparedImage);
        else if (answer.kind === 'error') reject(errorFromChild(answer));
      }),
  );
  let sent = 0;
  return {
    count,
    prepare: (path) => {
      if (ended !== undefined) return Promise.reject(ended);
      const id = sent++;
      const prepared = new Promise<PreparedImage>((resolve, reject) => waiting.set(id, { resolve, reject }));
      // A later image's failure is reported when its turn comes.
      prepared.catch(() => {});
      workers[id % count]!.postMessage({ id, path });
      return prepared;
    },
    close: async () => {
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };
}
