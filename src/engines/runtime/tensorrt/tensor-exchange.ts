import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeFailed } from '../../../base/files/publish.js';
import { systemErrorCode } from '../../../errors.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';

/** A tensor on its way to another process: its bytes with the message, or in a file that the reader removes. */
export interface SentTensor {
  readonly name: string;
  readonly dtype: Tensor['dtype'];
  readonly shape: readonly number[];
  readonly content: Uint8Array | { readonly file: string };
}

/** Bytes up to this travel in the message itself: a file costs more than they do. */
const IN_MESSAGE = 64 << 10;

/** Memory first; it is small in many containers, so what does not fit goes to disk. */
const PLACES = ['/dev/shm', tmpdir()];

/** Where two processes leave large tensors for each other. */
export interface Exchange {
  readonly folders: readonly string[];
  remove(): void;
}

export function openExchange(): Exchange {
  const folders = PLACES.flatMap((place) => {
    try {
      return [mkdtempSync(join(place, `trtforge-tensors-${process.pid}-`))];
    } catch {
      return [];
    }
  });
  return {
    folders,
    remove: () => {
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    },
  };
}

let sent = 0;

/** Throws TF_WRITE_FAILED when no place has room. */
export function sendTensors(tensors: NamedTensors, folders: readonly string[]): readonly SentTensor[] {
  return [...tensors].map(([name, { dtype, shape, bytes }]) => ({
    name,
    dtype,
    shape,
    content: bytes.length <= IN_MESSAGE ? bytes : { file: leave(bytes, folders) },
  }));
}

export function receiveTensors(tensors: readonly SentTensor[]): NamedTensors {
  return new Map(
    tensors.map(({ name, dtype, shape, content }): [string, Tensor] => [
      name,
      { dtype, shape, bytes: content instanceof Uint8Array ? content : take(content.file) },
    ]),
  );
}

function leave(bytes: Uint8Array, folders: readonly string[]): string {
  let failure: unknown = new Error('no folder for temporary files');
  for (const folder of folders) {
    const file = join(folder, `${process.pid}-${sent++}`);
    try {
      writeFileSync(file, bytes);
      return file;
    } catch (cause) {
      rmSync(file, { force: true });
      failure = cause;
      if (systemErrorCode(cause) !== 'ENOSPC') break;
    }
  }
  throw writeFailed(folders[0] ?? tmpdir(), failure);
}

function take(file: string): Uint8Array {
  const bytes = readFileSync(file);
  rmSync(file, { force: true });
  return bytes;
}
