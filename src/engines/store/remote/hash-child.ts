import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import type { HashChildData, SharedPiece } from './hash-follower.js';

/** The thread of `HashFollower`: hashes a file as far as it is told to, from shared memory where it can, then gives the digest. */
const READ_BYTES = 1 << 20;

const { path, memory, counts } = workerData as HashChildData;
const file = openSync(path, 'r');
const hash = createHash('sha256');
const buffer = Buffer.allocUnsafe(READ_BYTES);
let done = 0;

parentPort?.on('message', (message: SharedPiece | { readonly end: number } | 'last') => {
  if (message === 'last') {
    closeSync(file);
    parentPort?.postMessage({ digest: hash.digest('hex') });
    parentPort?.close();
  } else if ('end' in message) readUntil(message.end);
  else takeOver(message);
});

function readUntil(end: number): void {
  while (done < end) {
    const count = readSync(file, buffer, 0, Math.min(READ_BYTES, end - done), done);
    if (count === 0) throw new Error(`${path} is shorter than what was written to it.`);
    hash.update(buffer.subarray(0, count));
    done += count;
  }
}

function takeOver({ at, offset, length }: SharedPiece): void {
  readUntil(at);
  hash.update(new Uint8Array(memory, offset, length));
  done += length;
  const free = Atomics.add(counts, 0, 1) + 1;
  const wanted = Atomics.load(counts, 1);
  if (wanted === 0 || free < wanted) return;
  Atomics.store(counts, 1, 0);
  parentPort?.postMessage('room');
}
