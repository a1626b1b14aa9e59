import { type Document, isNode, Lexer, LineCounter, Parser, parseDocument } from 'yaml';
import type { z } from 'zod';
import { type ErrorCode, TrtforgeError } from '../../errors.js';
import { readText } from '../files/files.js';
import { schemaFault } from './schema-error.js';
import { didYouMean } from './suggest-name.js';

/** A YAML (or JSON) file's content, and where its parts are. */
export interface YamlFile {
  readonly content: unknown;
  /** The line of the innermost part of a place that is in the file. */
  lineOf(place: readonly PropertyKey[]): number | null;
}

const LARGEST_BYTES = 1 << 20;
/** The parser compares every key of a mapping with every other, and every anchor with every node: tokens bound its time to a second or two. */
const MOST_TOKENS = 100_000;
const MOST_ANCHORS_AND_ALIASES = 100;
/** The parser's second half recurses; where the stack ends inside a regular expression, V8 ends the process. */
const DEEPEST = 100;

/** Reads a file that people write: at most 1 MiB, 100,000 tokens, 100 levels, 100 anchors and aliases. Errors: `code`, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export const readYaml = (path: string, code: ErrorCode): YamlFile =>
  parseYaml(readText(path, LARGEST_BYTES, code), path, code);

/** The problem to correct first where a schema rejects a file's content, with its line; `keysAt` has the keys that an object at a place may have. */
export function firstProblem(
  error: z.ZodError,
  { path, code, lineOf }: Pick<YamlFile, 'lineOf'> & { readonly path: string; readonly code: ErrorCode },
  keysAt: (place: readonly PropertyKey[]) => readonly string[],
): TrtforgeError {
  const { place, unknownKey, why } = schemaFault(error);
  const line = lineOf(unknownKey === null ? place : [...place, unknownKey]);
  const where = [path, line === null ? '' : `line ${line}`, place.join('.')].filter(Boolean).join(', ');
  const hint = unknownKey === null ? '' : didYouMean(unknownKey, keysAt(place));
  return new TrtforgeError(code, `${where}: ${why}.${hint}`);
}

/** The same of a text; `path` is for messages. `uniqueKeys: false`: the last of equal keys counts, as in yaml-cpp. */
export function parseYaml(
  text: string,
  path: string,
  code: ErrorCode,
  { uniqueKeys = true }: { readonly uniqueKeys?: boolean } = {},
): YamlFile {
  const invalid = (why: string, cause?: unknown) =>
    new TrtforgeError(code, `${path} cannot be read${why}.`, { cause });
  if (text.length > LARGEST_BYTES) throw invalid(`: it is larger than ${LARGEST_BYTES} bytes`);
  const excess = excessOf(text);
  if (excess !== null) throw invalid(`: it has more than ${excess}`);
  const lines = new LineCounter();
  try {
    // Pretty errors copy the line for each of them, which is quadratic; the first one's place is enough.
    const quiet = { prettyErrors: false, logLevel: 'error' } as const;
    const document = parseDocument(text, { lineCounter: lines, uniqueKeys, ...quiet });
    const fault = document.errors[0];
    if (fault !== undefined)
      throw invalid(`, line ${lines.linePos(fault.pos[0]).line || 1}: ${fault.message.replace(/\.$/, '')}`);
    return { content: document.toJS(), lineOf: (place) => lineAt(document, lines, place) };
  } catch (cause) {
    if (cause instanceof TrtforgeError) throw cause;
    // Aliases without an anchor, or so many that they would fill the memory.
    throw invalid(`: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
}

function excessOf(text: string): string | null {
  let tokens = 0;
  let references = 0;
  const parser = new Parser();
  for (const token of new Lexer().lex(text)) {
    if (/^[&*]/.test(token) && ++references > MOST_ANCHORS_AND_ALIASES)
      return `${MOST_ANCHORS_AND_ALIASES} anchors and aliases`;
    if (++tokens > MOST_TOKENS) return `${MOST_TOKENS} tokens`;
    for (const _ of parser.next(token));
    if (parser.stack.length > DEEPEST) return `${DEEPEST} levels`;
  }
  return null;
}

function lineAt(document: Document, lines: LineCounter, place: readonly PropertyKey[]): number | null {
  for (let length = place.length; length > 0; length--) {
    const node: unknown = document.getIn(place.slice(0, length), true);
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
  }
  return null;
}
