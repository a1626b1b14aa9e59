import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { shellLine } from '../base/process/shell-quote.js';
import { nearestName } from '../base/text/suggest-name.js';
import { TrtforgeError } from '../errors.js';

/**
 * The error of a file that is not there, with the line that names the file beside it that has almost its name. `own` are the words of program and verb,
 * which name no file.
 */
export function withNearFile(error: unknown, words: readonly string[], own: number): unknown {
  if (!(error instanceof TrtforgeError) || error.code !== 'TF_FILE_NOT_FOUND') return error;
  const { code, message, details } = error;
  for (const [at, word] of words.entries()) {
    const path = word.replace(/^.*=@?/s, '');
    const folder = dirname(path);
    const isNamed = at >= own && path !== '' && ` ${message} `.includes(` ${path} `);
    if (!isNamed || existsSync(path) || !existsSync(folder)) continue;
    const near = nearestName(basename(path), readdirSync(folder));
    if (near === undefined) continue;
    const found = path.includes('/') ? join(folder, near) : near;
    const line = words.with(at, word.slice(0, word.length - path.length) + found);
    return new TrtforgeError(code, message, {
      remedy: `Did you mean ${found}? Run: ${shellLine(line)}`,
      details,
      cause: error,
    });
  }
  return error;
}
