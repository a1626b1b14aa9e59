import { existsSync, readdirSync } from 'node:fs';
import { dirname, extname, join, parse } from 'node:path';
import { shellLine } from '../../base/text/shell-line.js';
import { nearestName } from '../../base/text/suggest-name.js';
import { TrtforgeError } from '../../errors.js';

/**
 * The error of a file that is not there, with the line that names the file beside it that has almost its name. `own` are the words of program and verb,
 * which name no file.
 */
export function withNearFile(error: unknown, words: readonly string[], own: number): unknown {
  if (!(error instanceof TrtforgeError) || error.code !== 'TF_FILE_NOT_FOUND') return error;
  const { code, message, details } = error;
  for (const [at, word] of words.entries()) {
    const path = word.replace(/^.*=@?/s, '');
    const found = at >= own && ` ${message} `.includes(` ${path} `) ? nearFile(path) : undefined;
    if (found === undefined) continue;
    const line = words.with(at, word.slice(0, word.length - path.length) + found);
    return new TrtforgeError(code, message, {
      remedy: `Did you mean ${found}? Run: ${shellLine(line)}`,
      details,
      cause: error,
    });
  }
  return error;
}

/** The remedy for a file, or almost the name of one, where a command is expected. */
export function commandForFile(word: string): string | undefined {
  const file = existsSync(word) ? word : nearFile(word);
  const ending = /\.(onnx|engine|plan|trt)$/i.exec(file ?? '')?.[1];
  if (file === undefined || ending === undefined) return undefined;
  return `Files follow a command. Run: ${shellLine(['trtforge', ...(/onnx/i.test(ending) ? [] : ['engine']), 'inspect', file])}`;
}

/** The file of the same folder that has almost this name. */
function nearFile(path: string): string | undefined {
  const folder = dirname(path);
  if (path === '' || existsSync(path) || !existsSync(folder)) return undefined;
  const { base, name, ext } = parse(path);
  const alike = readdirSync(folder).filter((file) => extname(file) === ext || parse(file).name === name);
  const near = nearestName(base, alike);
  return near !== undefined && path.includes('/') ? join(folder, near) : near;
}
