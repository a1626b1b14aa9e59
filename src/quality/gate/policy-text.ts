import type { z } from 'zod';
import { didYouMean } from '../../base/text/nearest-word.js';
import { schemaFault } from '../../base/text/schema-error.js';
import { parseYaml, readYaml, type YamlFile } from '../../base/text/yaml.js';
import { TrtforgeError } from '../../errors.js';
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

/** Reads and checks one policy file. Errors: TF_GATE_POLICY_INVALID (with the line), TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export const readPolicyText = (path: string): PolicyText =>
  checked(readYaml(path, 'TF_GATE_POLICY_INVALID'), path);

/** The same of a text; `path` is for messages. */
export const parsePolicyText = (text: string, path: string): PolicyText =>
  checked(parseYaml(text, path, 'TF_GATE_POLICY_INVALID'), path);

function checked({ content, lineOf }: YamlFile, path: string): PolicyText {
  const parsed = policyFileSchema.safeParse(content);
  if (!parsed.success) throw firstProblem(parsed.error, path, lineOf);
  return { policy: parsed.data, lineOf: (kind, index) => lineOf([kind, index]) };
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
