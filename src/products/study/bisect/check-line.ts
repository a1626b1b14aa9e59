import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { sha256OfFile } from '../../../base/files/digest.js';
import { shellQuote } from '../../../base/text/shell-line.js';

/** The judged model, or in its place the engine that was built from it. */
export interface JudgedFiles {
  readonly model: string;
  readonly engine: string | null;
}

const PLACE = /\{(model)?\}/g;

export const hasPlace = (check: string): boolean => check.search(PLACE) >= 0;

/** The check command for a model or an engine; a path keeps its spaces inside of quotes and outside. */
export const checkLine = (check: string, { model, engine }: JudgedFiles): string =>
  check.replace(/'[^']*'|"(?:\\.|[^"\\])*"|\\.|\{(?:model)?\}/gs, (part) =>
    part.replace(PLACE, (_, isModel) => quotedIn(part, resolve(isModel ? model : (engine ?? model)))),
  );

function quotedIn(part: string, path: string): string {
  if (part.startsWith("'")) return path.replaceAll("'", `'\\''`);
  return part.startsWith('"') ? path.replaceAll(/[\\$"`]/g, '\\$&') : shellQuote(path);
}

/** Words of a shell line; text in quotes is one, and what a redirection writes is none. */
const WORDS = />+\s*\S+|'([^']*)'|"([^"]*)"|([^\s'"=;|&<>()]+)/g;

/** Of a larger file size and time are its digest. */
const MOST_READ_BYTES = 64 << 20;

/** The facts that decide the answers of a check command: its text, the working folder, and the files that its arguments name. */
export const checkFacts = (check: string) => ({
  check,
  folder: process.cwd(),
  files: [...check.matchAll(WORDS)].flatMap(([, single, double, bare]) => {
    const word = single ?? double ?? bare ?? '';
    const digest = digestIfFile(word);
    return digest === null ? [] : [[word, digest]];
  }),
});

/** null for what cannot be read as a file, such as the text of a script. */
function digestIfFile(word: string): string | null {
  try {
    const file = statSync(word);
    if (!file.isFile()) return null;
    return file.size > MOST_READ_BYTES ? `${file.size} ${file.mtimeMs}` : sha256OfFile(word);
  } catch {
    return null;
  }
}
