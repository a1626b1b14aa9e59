import { type ErrorCode, TrtforgeError } from '../../errors.js';
import { openFile } from './byte-source.js';

/** A whole text file of at most `largest` bytes; a larger one is rejected with `code`. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export function readText(path: string, largest: number, code: ErrorCode): string {
  const source = openFile(path);
  try {
    if (source.size > largest)
      throw new TrtforgeError(code, `${path} is too large for what it should be (${source.size} bytes).`);
    const bytes = Buffer.alloc(source.size);
    return bytes.toString('utf8', 0, source.read(bytes, 0, source.size));
  } finally {
    source.close();
  }
}

/** More than any document of ours has. */
export const LARGEST_DOCUMENT = 64 << 20;

/** The content of a JSON file of at most `largest` bytes; undefined where there is none that can be read. */
export function readJson(path: string, largest: number = LARGEST_DOCUMENT): unknown {
  try {
    return JSON.parse(readText(path, largest, 'TF_FILE_UNREADABLE'));
  } catch {
    return undefined;
  }
}
