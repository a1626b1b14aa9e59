import { closeSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeIfAllowed } from '../../../base/files/files.js';
import { makeScratch } from '../../../base/files/folders.js';
import { writeFailed } from '../../../base/files/publish.js';
import { systemErrorCode, TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import type { EngineBinding, SessionFacts } from './engine-interface.js';
import type { EngineSessionOptions } from './options.js';

/** A tensor on its way to another process: its bytes with the message, or at the beginning of a file. */
interface SentTensor {
  readonly name: string;
  readonly dtype: Tensor['dtype'];
  readonly shape: readonly number[];
  readonly content: Uint8Array | { readonly file: string; readonly bytes: number };
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
      return [makeScratch('tensors', place)];
    } catch {
      return [];
    }
  });
  return {
    folders,
    remove: () => {
      for (const folder of folders) removeIfAllowed(folder);
    },
  };
}

interface OpenFile {
  readonly path: string;
  readonly descriptor: number;
}

/** Leaves tensors for another process. A file is written again once its reader has read it: a new one costs five times the copy, for its pages. */
export class TensorSender {
  readonly #folders: readonly string[];
  readonly #free: OpenFile[] = [];
  readonly #unread = new Map<string, OpenFile>();
  #made = 0;

  constructor(folders: readonly string[]) {
    this.#folders = folders;
  }

  /** Throws TF_WRITE_FAILED when no place has room. */
  send(tensors: NamedTensors): readonly SentTensor[] {
    return [...tensors].map(([name, { dtype, shape, bytes }]) => ({
      name,
      dtype,
      shape,
      content: bytes.length <= IN_MESSAGE ? bytes : { file: this.#leave(bytes), bytes: bytes.length },
    }));
  }

  /** The other process has read these files. */
  release(files: readonly string[]): void {
    for (const path of files) {
      const file = this.#unread.get(path);
      if (file === undefined) continue;
      this.#unread.delete(path);
      this.#free.push(file);
    }
  }

  close(): void {
    for (const { descriptor } of [...this.#free, ...this.#unread.values()]) closeSync(descriptor);
  }

  #leave(bytes: Uint8Array): string {
    let failure: unknown = new Error('no folder for temporary files');
    const tried = [() => this.#free.pop(), ...this.#folders.map((folder) => () => this.#make(folder))];
    for (const open of tried) {
      let file: OpenFile | undefined;
      try {
        file = open();
        if (file === undefined) continue;
        writeAll(file.descriptor, bytes);
        this.#unread.set(file.path, file);
        return file.path;
      } catch (cause) {
        if (file !== undefined) discard(file);
        failure = cause;
        if (systemErrorCode(cause) !== 'ENOSPC') break;
      }
    }
    throw writeFailed(this.#folders[0] ?? tmpdir(), failure);
  }

  #make(folder: string): OpenFile {
    const path = join(folder, `${process.pid}-${this.#made++}`);
    return { path, descriptor: openSync(path, 'w') };
  }
}

function discard({ path, descriptor }: OpenFile): void {
  closeSync(descriptor);
  rmSync(path, { force: true });
}

function writeAll(descriptor: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(descriptor, bytes, done, bytes.length - done, done);
}

/** Takes tensors that another process sent. Its files stay open. */
export class TensorReceiver {
  readonly #open = new Map<string, number>();
  readonly #memory: Map<string, Uint8Array> | null;

  /** With `reuse` the next tensor in the same file overwrites the bytes of the one before. */
  constructor({ reuse }: { readonly reuse: boolean }) {
    this.#memory = reuse ? new Map() : null;
  }

  receive(tensors: readonly SentTensor[]): NamedTensors {
    return new Map(
      tensors.map(({ name, dtype, shape, content }): [string, Tensor] => [
        name,
        { dtype, shape, bytes: content instanceof Uint8Array ? content : this.#read(content) },
      ]),
    );
  }

  close(): void {
    for (const descriptor of this.#open.values()) closeSync(descriptor);
  }

  #read({ file, bytes }: { readonly file: string; readonly bytes: number }): Uint8Array {
    const descriptor = this.#open.get(file) ?? openSync(file, 'r');
    this.#open.set(file, descriptor);
    const kept = this.#memory?.get(file);
    const content = kept?.length === bytes ? kept : new Uint8Array(bytes);
    this.#memory?.set(file, content);
    for (let done = 0; done < bytes; ) {
      const read = readSync(descriptor, content, done, bytes - done, done);
      if (read === 0) throw new TrtforgeError('TF_INTERNAL', `${file} ends after ${done} of ${bytes} bytes.`);
      done += read;
    }
    return content;
  }
}

/** The files among what was sent, for `release`. */
export const filesOf = (tensors: readonly SentTensor[]): readonly string[] =>
  tensors.flatMap(({ content }) => (content instanceof Uint8Array ? [] : [content.file]));

/** The calls of `supervised-engine.ts` on its child process, and the answers. Plain data: it crosses between processes. */
export type EngineChildCall =
  | {
      readonly kind: 'open';
      readonly planPath: string;
      readonly options: Omit<EngineSessionOptions, keyof WorkContext | 'contexts' | 'memory'>;
      /** Where large tensors are left for each other. */
      readonly folders: readonly string[];
    }
  | {
      readonly kind: 'run';
      readonly inputs: readonly SentTensor[];
      /** Files of earlier outputs that have been read. */
      readonly read: readonly string[];
      readonly profile: number | undefined;
      readonly iterations: number;
    };

export interface EngineOpened {
  readonly backend: string;
  readonly inputs: readonly EngineBinding[];
  readonly outputs: readonly EngineBinding[];
  readonly facts: SessionFacts;
}

export interface EngineRan {
  readonly outputs: readonly SentTensor[];
  /** One per iteration: from host memory to host memory, milliseconds. The first also makes buffers. */
  readonly ms: readonly number[];
  readonly cudaGraphFallbacks: readonly string[];
}
