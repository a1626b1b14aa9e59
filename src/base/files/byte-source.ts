import { AsyncLocalStorage } from 'node:async_hooks';
import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { type ErrorCode, systemErrorCode, TrtforgeError } from '../../errors.js';

/** Bytes that can be read at any position: a file, or a buffer in tests. Positions and sizes are in bytes and may exceed 2^32. */
export interface ByteSource {
  readonly path: string;
  readonly size: number;
  /** Reads up to `length` bytes at `position` into `target` and returns how many were there (fewer only at the end). */
  read(target: Uint8Array, position: number, length: number): number;
  close(): void;
}

/** Without O_NONBLOCK a FIFO that nobody writes to holds up the whole process in `open`. */
const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK;

type OpenedFile = ByteSource & { readonly stats: Stats };

/** The files of a run that are opened once, by path: undefined where none was needed yet. */
class KeptFiles {
  readonly #files = new Map<string, OpenedFile | undefined>();
  readonly #opened: OpenedFile[] = [];

  keep(path: string): void {
    const key = resolve(path);
    if (!this.#files.has(key)) this.#files.set(key, undefined);
  }

  has(path: string): boolean {
    return this.#files.has(resolve(path));
  }

  open(path: string): OpenedFile {
    const known = this.#files.get(resolve(path));
    if (known !== undefined && isUnchanged(known)) return known;
    const file = openOnce(path);
    this.#opened.push(file);
    const kept = { ...file, close: () => {} };
    this.#files.set(resolve(path), kept);
    return kept;
  }

  /** Work that goes on after the run opens its files itself. */
  close(): void {
    this.#files.clear();
    for (const file of this.#opened) file.close();
  }
}

const keptFiles = new AsyncLocalStorage<KeptFiles>();

/** Does work during which a file is opened once for all its readers, and again only where it has changed since. */
export async function keepingFiles<T>(paths: readonly string[], work: () => Promise<T>): Promise<T> {
  const kept = new KeptFiles();
  for (const path of paths) kept.keep(path);
  try {
    return await keptFiles.run(kept, work);
  } finally {
    kept.close();
  }
}

/** Adds a file to those that the run at work keeps open; with `among`, only where that one is kept. */
export function keepFile(path: string, among?: string): void {
  const kept = keptFiles.getStore();
  if (among === undefined || kept?.has(among) === true) kept?.keep(path);
}

/** Opens a regular file for positioned reads. Throws TF_FILE_NOT_FOUND or TF_FILE_UNREADABLE. */
export function openFile(path: string): OpenedFile {
  const kept = keptFiles.getStore();
  return kept?.has(path) === true ? kept.open(path) : openOnce(path);
}

/** Any write moves ctime, also one that sets mtime back; a file that took the place of another has its own number. */
const isUnchanged = ({ path, stats }: OpenedFile): boolean => {
  const now = statSync(path, { throwIfNoEntry: false });
  return (['dev', 'ino', 'size', 'mtimeMs', 'ctimeMs'] as const).every((key) => stats[key] === now?.[key]);
};

function openOnce(path: string): OpenedFile {
  const descriptor = orUnreadable(path, () => openSync(path, READ_ONLY));
  const stats = orUnreadable(path, () => fstatSync(descriptor));
  if (!stats.isFile()) {
    closeSync(descriptor);
    throw new TrtforgeError('TF_FILE_UNREADABLE', `${path} is not a regular file.`);
  }
  let isOpen = true;
  return {
    path,
    size: stats.size,
    stats,
    read: (target, position, length) => {
      // The system may have given the number to another file since.
      if (!isOpen) throw new TrtforgeError('TF_INTERNAL', `${path} was read after it was closed.`);
      let done = 0;
      while (done < length) {
        const count = orUnreadable(path, () =>
          readSync(descriptor, target, done, length - done, position + done),
        );
        if (count === 0) break;
        done += count;
      }
      return done;
    },
    close: () => {
      if (isOpen) closeSync(descriptor);
      isOpen = false;
    },
  };
}

/** Closes what was opened when work on it is through, also where that is a promise. */
export function closing<R extends { close(): unknown }, T>(opened: R, work: (opened: R) => T): T {
  let result: T;
  try {
    result = work(opened);
  } catch (error) {
    opened.close();
    throw error;
  }
  if (result instanceof Promise) return result.finally(() => opened.close()) as T;
  opened.close();
  return result;
}

/** All bytes of a file of at most `largest`; a larger one is rejected with `code`. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export function readWhole(path: string, largest: number, code: ErrorCode): Buffer {
  return closing(openFile(path), (source) => {
    if (source.size > largest)
      throw new TrtforgeError(code, `${path} has ${source.size} bytes, more than ${largest}.`);
    const bytes = Buffer.alloc(source.size);
    return bytes.subarray(0, source.read(bytes, 0, source.size));
  });
}

/** The same interface over bytes in memory. */
export function bytesSource(path: string, bytes: Uint8Array): ByteSource {
  return {
    path,
    size: bytes.length,
    read: (target, position, length) => {
      const part = bytes.subarray(position, position + length);
      target.set(part);
      return part.length;
    },
    close: () => {},
  };
}

function orUnreadable<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (cause) {
    if (systemErrorCode(cause) === 'ENOENT') {
      throw new TrtforgeError('TF_FILE_NOT_FOUND', `${path} does not exist.`, { cause });
    }
    throw new TrtforgeError(
      'TF_FILE_UNREADABLE',
      `${path} cannot be read (${systemErrorCode(cause) ?? String(cause)}).`,
      { cause },
    );
  }
}
