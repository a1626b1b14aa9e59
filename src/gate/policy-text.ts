import { type Document, isNode, LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import { TrtforgeError } from '../errors.js';
import { didYouMean } from '../system/nearest-word.js';
import { readText } from '../system/read-text.js';
import { schemaFault } from '../system/schema-fault.js';
import {
  limitSchema,
  type PolicyFile,
  policyFileSchema,
  regressionSchema,
  selectorSchema,
  waiverSchema,
  writtenCheckSchema,
} from './policy-schema.js';

/** A policy file's content, and the line at which each check and waiver begins. */
export interface PolicyText {
  readonly policy: PolicyFile;
  lineOf(kind: 'checks' | 'waivers', index: number): number | null;
}

const LARGEST_BYTES = 4 << 20;

/** Reads and checks one policy file. Errors: TF_GATE_POLICY_INVALID (with the line), TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export function readPolicyText(path: string): PolicyText {
  return parsePolicyText(readText(path, LARGEST_BYTES, 'TF_GATE_POLICY_INVALID'), path);
}

/** The same of a text; `path` is for messages. */
export function parsePolicyText(text: string, path: string): PolicyText {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, logLevel: 'error' });
  const fault = document.errors[0];
  if (fault !== undefined)
    throw new TrtforgeError(
      'TF_GATE_POLICY_INVALID',
      `${path} is not YAML, line ${fault.linePos?.[0].line ?? 1}: ${fault.message.split('\n')[0]?.replace(/ at line.*$/, '')}.`,
    );
  const checked = policyFileSchema.safeParse(contentOf(document, path));
  const line = (place: readonly PropertyKey[]) => lineAt(document, lines, place);
  if (!checked.success) throw firstProblem(checked.error, path, line);
  return { policy: checked.data, lineOf: (kind, index) => line([kind, index]) };
}

function contentOf(document: Document, path: string): unknown {
  try {
    return document.toJS();
  } catch (cause) {
    // Aliases without an anchor, or so many that they would fill the memory.
    throw new TrtforgeError('TF_GATE_POLICY_INVALID', `${path} cannot be read: ${String(cause)}.`, { cause });
  }
}

function firstProblem(
  error: z.ZodError,
  path: string,
  lineOf: (place: readonly PropertyKey[]) => number | null,
): TrtforgeError {
  const { place, unknownKey, why } = schemaFault(error);
  const line = lineOf(unknownKey === null ? place : [...place, unknownKey]);
  const where = `${path}${line === null ? '' : `, line ${line}`}${place.length === 0 ? '' : `, ${place.join('.')}`}`;
  const hint = unknownKey === null ? '' : didYouMean(unknownKey, keysAt(place));
  return new TrtforgeError('TF_GATE_POLICY_INVALID', `${where}: ${why}.${hint}`);
}

/** The keys that an object of the policy may have, by where it stands. */
function keysAt(place: readonly PropertyKey[]): readonly string[] {
  const [section, , part, inner] = place;
  if (section === 'waivers') return Object.keys(waiverSchema.shape);
  if (section === 'results') return Object.keys(selectorSchema.shape);
  if (section !== 'checks') return Object.keys(policyFileSchema.shape);
  if (part === undefined) return Object.keys(writtenCheckSchema.shape);
  if (part === 'result') return Object.keys(selectorSchema.shape);
  if (part === 'regression')
    return inner === undefined ? Object.keys(regressionSchema.shape) : ['relative', 'absolute'];
  return Object.keys(limitSchema.shape);
}

/** The line of the innermost part of a place that is in the file. */
function lineAt(document: Document, lines: LineCounter, place: readonly PropertyKey[]): number | null {
  for (let length = place.length; length > 0; length--) {
    const node: unknown = document.getIn(place.slice(0, length), true);
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
  }
  return null;
}
