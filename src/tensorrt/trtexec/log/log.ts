import { openFile } from '../../../base/files/byte-source.js';
import { rawLines } from './lines.js';
import { LogReader } from './reader.js';
import type { TrtexecLog } from './result.js';

/**
 * Reads a log of trtexec (8.6, 9, 10, 11, and tensorrt_rtx), written by anyone: a path, read in constant memory, or its lines. It takes what is
 * there: a log cut short, with two streams interleaved, with `\r\n`, or without a banner gives what it contains and null for the rest.
 * Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE.
 */
export function readTrtexecLog(log: string | Iterable<string>): TrtexecLog {
  if (typeof log !== 'string') return readLines(log);
  const source = openFile(log);
  try {
    return readLines(rawLines(source));
  } finally {
    source.close();
  }
}

function readLines(lines: Iterable<string>): TrtexecLog {
  const reader = new LogReader();
  for (const line of lines) reader.read(line);
  return reader.result();
}
