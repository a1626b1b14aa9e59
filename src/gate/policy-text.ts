import { type Document, isNode, LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import { TrtforgeError } from '../errors.js';
import { readText } from '../system/read-text.js';
import { didYouMean } from './nearest-word.js';
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
  const issues = error.issues.map(deepest);
  // A misspelt key is also a missing one; the misspelling is what to correct.
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  const unknown = issue?.code === 'unrecognized_keys' ? (issue.keys[0] ?? '') : null;
  const place = issue?.path ?? [];
  const line = lineOf(unknown === null ? place : [...place, unknown]);
  const where = `${path}${line === null ? '' : `, line ${line}`}${place.length === 0 ? '' : `, ${place.join('.')}`}`;
  if (unknown !== null)
    return new TrtforgeError(
      'TF_GATE_POLICY_INVALID',
      `${where}: there is no «${unknown}» here.${didYouMean(unknown, keysAt(place))}`,
    );
  return new TrtforgeError('TF_GATE_POLICY_INVALID', `${where}: ${complaint(issue)}.`);
}

/** What zod says of a value, as a sentence about a file. */
function complaint(issue: z.core.$ZodIssue | undefined): string {
  const { message = 'this is not valid' } = issue ?? {};
  const types = /^Invalid input: expected (.+), received (.+)$/.exec(message);
  if (types === null) return message;
  return types[2] === 'undefined' ? 'it is missing' : `${types[1]} is expected here, not ${types[2]}`;
}

/** Of a union's complaints the one that got furthest: the branch that was meant. */
function deepest(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== 'invalid_union') return issue;
  const inner = issue.errors
    .flat()
    .map((each) => ({ ...deepest(each), path: [...issue.path, ...each.path] }))
    .find((each) => each.code === 'unrecognized_keys' || each.path.length > issue.path.length);
  return inner ?? issue;
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
