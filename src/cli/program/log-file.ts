import { openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '../../base/files/folders.js';
import { writeFailed } from '../../base/files/publish.js';
import type { FileKind } from '../../base/files/user-files.js';
import type { WorkEvent } from '../../events.js';
import { toJson } from '../output.js';

/** The kind of file that a log is, by its first bytes: `{"time": …`. */
export const LOG_KINDS: readonly FileKind[] = ['JSON (time)'];

/** A line of a log that is no event: what was run, and how it ended. */
type Frame =
  | { readonly type: 'start'; readonly version: string; readonly commandLine: string }
  | {
      readonly type: 'end';
      readonly exitCode: number;
      readonly error: { readonly code: string; readonly message: string } | null;
    };

/**
 * Begins the log of one command: JSON lines with a time, each event as `--events` prints it. A line that finds no room later stops no work.
 * Throws TF_WRITE_FAILED.
 */
export function openLogFile(path: string): (line: WorkEvent | Frame) => void {
  const file = beginFile(path);
  return (line) => {
    try {
      writeSync(file, `${toJson({ time: new Date().toISOString(), ...line }, 0)}\n`);
    } catch {
      // As with progress that nobody can read.
    }
  };
}

function beginFile(path: string): number {
  try {
    makeFolder(dirname(path));
    return openSync(path, 'w', 0o666);
  } catch (cause) {
    throw writeFailed(path, cause);
  }
}
