import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { readText } from '../../base/files/files.js';
import { parseJson, pythonJson } from '../../base/files/json.js';
import { TrtforgeError } from '../../errors.js';
import { valuesAt } from './field-path.js';
import { matchesGlob } from './glob.js';
import type { Selector } from './policy-schema.js';

/** A result that the gate was passed. */
export interface GateInput {
  readonly name: string;
  readonly path: string;
  /** `trtforge.bench/1`; null for JSON without a schema, which only its name can select. */
  readonly schema: string | null;
  readonly content: Readonly<Record<string, unknown>>;
}

/** No result comes near this; reading something bigger as JSON would take the machine's memory. */
const LARGEST_BYTES = 256 << 20;

/**
 * Reads results from `FILE` or `NAME=FILE`; the default name is the file's without `.json`. Bare NaN and Infinity, as Python writes them, are
 * numbers. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_GATE_RESULT_INVALID, TF_USAGE for two results of one name.
 */
export function readResults(files: readonly string[]): readonly GateInput[] {
  const results = files.map(readResult);
  const names = new Set<string>();
  for (const { name, path } of results) {
    if (names.has(name))
      throw new TrtforgeError('TF_USAGE', `Two results are called "${name}"; the second is ${path}.`, {
        remedy: `Pass each under a name of its own: ${name}-2=${path}.`,
      });
    names.add(name);
  }
  return results;
}

function readResult(text: string): GateInput {
  const named = existsSync(text) ? null : /^([A-Za-z0-9][\w.-]*)=(.+)$/s.exec(text);
  const path = named?.[2] ?? text;
  const content = parseResult(readText(path, LARGEST_BYTES, 'TF_GATE_RESULT_INVALID'), path);
  const name = named?.[1] ?? basename(path).replace(/\.json$/i, '');
  return { name, path, schema: typeof content.schema === 'string' ? content.schema : null, content };
}

function parseResult(text: string, path: string): Readonly<Record<string, unknown>> {
  const invalid = (what: string, cause?: unknown) =>
    new TrtforgeError('TF_GATE_RESULT_INVALID', `${path} is ${what}.`, { cause });
  if (text.trim() === '')
    throw invalid('empty: what should have written it failed, or its output went elsewhere');
  const unreadable = (why: string, cause?: unknown) => invalid(`not a result: ${why}`, cause);
  const content = parseJson(text, LARGEST_BYTES, unreadable, pythonJson);
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw invalid('JSON, but no object, so no result');
  return content as Readonly<Record<string, unknown>>;
}

/** Whether a selector means this result. */
export function isSelected({ name, schema, content }: GateInput, selector: Selector): boolean {
  if (selector.schema !== undefined && !(schema !== null && matchesGlob(schema, selector.schema)))
    return false;
  if (selector.name !== undefined && !matchesGlob(name, selector.name)) return false;
  return Object.entries(selector.where ?? {}).every(([path, wanted]) =>
    valuesAt(content, path).some(({ value }) => value === wanted),
  );
}
