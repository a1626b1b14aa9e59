import { closeSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '../../../base/files/folders.js';
import { writeFailed } from '../../../base/files/publish.js';
import { assertNotInput } from '../../../base/files/user-files.js';

/** A log being written while its program runs. Not published by rename like other files: a log is read while it grows, and all of it is true at any time. */
export interface LogFile {
  write(lines: readonly string[]): void;
  close(): void;
}

/** Begins a log, in place of an older one of that name. Errors: TF_WRITE_FAILED, here and when writing. */
export function beginLog(path: string): LogFile {
  const guarded = <T>(action: () => T): T => {
    try {
      return action();
    } catch (cause) {
      throw writeFailed(path, cause);
    }
  };
  const descriptor = guarded(() => {
    assertNotInput(path);
    makeFolder(dirname(path));
    return openSync(path, 'w', 0o666);
  });
  let isOpen = true;
  return {
    write: (lines) => {
      const bytes = Buffer.from(`${lines.join('\n')}\n`);
      for (let done = 0; done < bytes.length; )
        done += guarded(() => writeSync(descriptor, bytes, done, bytes.length - done));
    },
    close: () => {
      if (isOpen) closeSync(descriptor);
      isOpen = false;
    },
  };
}
