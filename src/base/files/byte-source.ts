import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
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

/** Opens a regular file for positioned reads. Throws TF_FILE_NOT_FOUND or TF_FILE_UNREADABLE. */
export function openFile(path: string): ByteSource & { readonly stats: Stats } {
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

/** All bytes of a file of at most `largest`; a larger one is rejected with `code`. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export function readWhole(path: string, largest: number, code: ErrorCode): Buffer {
  const source = openFile(path);
  try {
    if (source.size > largest)
      throw new TrtforgeError(code, `${path} has ${source.size} bytes, more than ${largest}.`);
    const bytes = Buffer.alloc(source.size);
    return bytes.subarray(0, source.read(bytes, 0, source.size));
  } finally {
    source.close();
  }
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
