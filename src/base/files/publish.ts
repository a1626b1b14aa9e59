import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { systemErrorCode, TrtforgeError } from '../../errors.js';
import type { ByteSource } from './byte-source.js';
import { writeRemedy } from './files.js';
import { makeFolder } from './folders.js';
import { assertMayReplace, assertNotInput, noteWritten } from './user-files.js';

/** Marks files that a writer has not published; the caller that cleans a folder may remove old ones. */
export const UNPUBLISHED_SUFFIX = '.unpublished';

/** A file being written beside its final place. Until `publish`, nothing at `path` changes; `discard` leaves no trace. */
export interface PendingFile {
  readonly path: string;
  readonly temporaryPath: string;
  /** Bytes written in order so far. */
  readonly position: number;
  write(bytes: Uint8Array): void;
  /** Writes at an absolute position without moving `position` (to fill in a header once its numbers are known). */
  writeAt(bytes: Uint8Array, position: number): void;
  /** fsync, then rename into place, then fsync the folder. */
  publish(): void;
  discard(): void;
}

/** Starts writing `path` through a temporary file in the same folder. Errors: TF_WRITE_FAILED, with the temporary file gone. */
export function beginFile(path: string): PendingFile {
  const folder = dirname(path);
  const temporaryPath = besidePath(path);
  let descriptor: number | undefined;
  let position = 0;

  const discard = () => {
    if (descriptor !== undefined) closeSync(descriptor);
    descriptor = undefined;
    try {
      rmSync(temporaryPath, { force: true });
    } catch {
      // The folder itself is gone or was never one: there is nothing to remove.
    }
  };
  const guarded = <T>(action: () => T): T => {
    try {
      return action();
    } catch (cause) {
      discard();
      throw writeFailed(path, cause);
    }
  };
  const writeAll = (bytes: Uint8Array, at: number) => {
    const target = descriptor;
    if (target === undefined)
      throw new TrtforgeError('TF_INTERNAL', `${path} was written after it was closed.`);
    guarded(() => writeFully(target, bytes, at));
  };

  assertNotInput(path);
  guarded(() => {
    makeFolder(folder);
    descriptor = openSync(temporaryPath, 'wx', 0o666);
  });
  return {
    path,
    temporaryPath,
    get position() {
      return position;
    },
    write: (bytes) => {
      writeAll(bytes, position);
      position += bytes.length;
    },
    writeAt: writeAll,
    publish: () =>
      guarded(() => {
        if (descriptor === undefined) return;
        fsyncSync(descriptor);
        closeSync(descriptor);
        descriptor = undefined;
        moveInto(temporaryPath, path);
        syncFolder(folder);
      }),
    discard,
  };
}

/** Writes all bytes at an absolute position, however many the system takes at a time. Throws Node's system errors. */
function writeFully(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(descriptor, bytes, done, bytes.length - done, position + done);
}

/** Writes a whole file atomically: temporary file, fsync, rename. */
export function publishFile(path: string, content: Uint8Array | string): void {
  const file = beginFile(path);
  file.write(typeof content === 'string' ? Buffer.from(content) : content);
  file.publish();
}

/** Errors of network file systems (sshfs, SMB) that do not rename over a file that exists or is open somewhere. */
const REFUSALS = ['EEXIST', 'EPERM', 'EACCES', 'EBUSY'];

/**
 * Renames a file over what is there, in one step where the file system does that; elsewhere the old file steps aside first, and comes back when
 * the new one cannot take its place. Throws Node's system errors, TF_OUTPUT_IS_INPUT, TF_OUTPUT_OF_OTHER_KIND.
 */
export function moveInto(from: string, to: string): void {
  assertMayReplace(to, from);
  replace(from, to);
  noteWritten(to);
}

function replace(from: string, to: string): void {
  try {
    renameSync(from, to);
    return;
  } catch (error) {
    if (!REFUSALS.includes(systemErrorCode(error) ?? '') || !existsSync(to)) throw error;
  }
  const aside = besidePath(to);
  renameSync(to, aside);
  try {
    renameSync(from, to);
  } catch (error) {
    renameSync(aside, to);
    throw error;
  }
  rmSync(aside, { force: true });
}

/** Renames a file, or copies it where the new name is on another file system; nothing has that name yet. Throws Node's system errors. */
export async function carry(from: string, to: string): Promise<void> {
  try {
    renameSync(from, to);
  } catch (error) {
    if (systemErrorCode(error) !== 'EXDEV') throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  }
}

/** A name of its own in the same folder, for what is not published. */
export const besidePath = (path: string): string =>
  join(
    dirname(path),
    `.${basename(path)}.${process.pid}.${randomBytes(4).toString('hex')}${UNPUBLISHED_SUFFIX}`,
  );

/** Makes renames in a folder durable, where the file system lets a folder be synced. */
export function syncFolder(folder: string): void {
  try {
    const descriptor = openSync(folder, 'r');
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // Some network file systems reject to sync a folder; the rename itself has happened.
  }
}

const WHY_NOT_WRITTEN: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EACCES: 'writing there is not allowed',
  EPERM: 'writing there is not allowed',
  EROFS: 'writing there is not allowed',
  ENOENT: 'no folder can be made there',
  ENOTDIR: 'a part of its path is a file',
  EEXIST: 'a file is where its folder should be',
  EISDIR: 'it is a folder',
  EBUSY: 'it is a folder that is in use',
  EXDEV: 'the folder around it is on another file system',
};

/** The error of a file that could not be written; one that reports it already stays what it is. */
export function writeFailed(path: string, cause: unknown): TrtforgeError {
  if (cause instanceof TrtforgeError) return cause;
  const code = systemErrorCode(cause);
  const why = WHY_NOT_WRITTEN[code ?? ''] ?? code ?? String(cause);
  return new TrtforgeError('TF_WRITE_FAILED', `${path} could not be written: ${why}.`, {
    cause,
    remedy: writeRemedy(code),
    details: { path, systemCode: code ?? null },
  });
}

const COPY_BYTES = 4 << 20;

/** Writes `bytes` bytes of a source, from `offset` on, to a file that is begun. Throws TF_FILE_UNREADABLE where the source became shorter, TF_WRITE_FAILED. */
function copyPart(source: ByteSource, offset: number, bytes: number, file: PendingFile): void {
  const buffer = new Uint8Array(Math.min(COPY_BYTES, bytes));
  for (let done = 0; done < bytes; ) {
    const count = source.read(buffer, offset + done, Math.min(buffer.length, bytes - done));
    if (count === 0)
      throw new TrtforgeError('TF_FILE_UNREADABLE', `${source.path} became shorter while it was read.`);
    file.write(buffer.subarray(0, count));
    done += count;
  }
}

/** The same as the whole file at `path`. */
export function publishPart(path: string, source: ByteSource, offset: number, bytes: number): void {
  const file = beginFile(path);
  try {
    copyPart(source, offset, bytes, file);
    file.publish();
  } catch (error) {
    file.discard();
    throw error;
  }
}
