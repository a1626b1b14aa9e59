import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';

/** The thread of `HashFollower`: hashes a file as far as it is told to, then gives the digest. */
const READ_BYTES = 1 << 20;

const { path } = workerData as { readonly path: string };
const file = openSync(path, 'r');
const hash = createHash('sha256');
const buffer = Buffer.allocUnsafe(READ_BYTES);
let done = 0;

parentPort?.on('message', (message: { readonly end: number } | { readonly last: true }) => {
  if ('end' in message) {
    while (done < message.end) {
      const count = readSync(file, buffer, 0, Math.min(READ_BYTES, message.end - done), done);
      if (count === 0) throw new Error(`${path} is shorter than what was written to it.`);
      hash.update(buffer.subarray(0, count));
      done += count;
    }
    return;
  }
  closeSync(file);
  parentPort?.postMessage(hash.digest('hex'));
  parentPort?.close();
});
