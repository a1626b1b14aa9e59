import { realpathSync } from 'node:fs';
import type { z } from 'zod';
import { canonicalJson, sha256 } from '../../base/files/digest.js';
import type { identityDocumentSchema } from './recipe.js';

export type IdentityDocument = z.infer<typeof identityDocumentSchema>;

/** SHA-256 of the canonical JSON of the document, as 64 hex digits. */
export const identityDigest = (document: IdentityDocument): string => sha256(canonicalJson(document));

/** A field in which two documents differ: `recipe.profiles.0.x.max`. Undefined where a side has no such field. */
export interface FieldDifference {
  readonly field: string;
  readonly a: unknown;
  readonly b: unknown;
}

/** Differences between two documents, in the order of the paths. A list of plain values is one value; so is an object that the other side lacks. */
export function* differencesOf(a: unknown, b: unknown, field = ''): Generator<FieldDifference> {
  if (!isNested(a) || !isNested(b)) {
    if (JSON.stringify(a) !== JSON.stringify(b)) yield { field, a, b };
    return;
  }
  for (const key of [...new Set([...Object.keys(a), ...Object.keys(b)])].sort())
    yield* differencesOf(a[key], b[key], field === '' ? key : `${field}.${key}`);
}

/** The start of an identity, by which people tell engines apart. */
export const shortIdentity = (digest: string): string => digest.slice(0, 12);

const isNested = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && (!Array.isArray(value) || value.some(isNested));

/** The identities that an engine should have: the expected one, and that of its place in a store (`by-identity/xx/ID/`), also behind links. */
export function identitiesOf(planPath: string, expected?: string): readonly string[] {
  const places = [planPath, resolved(planPath)].flatMap(
    (path) => /(?:^|\/)by-identity\/([0-9a-f]{2})\/(\1[0-9a-f]{62})\/[^/]+$/.exec(path)?.[2] ?? [],
  );
  return expected === undefined ? places : [expected, ...places];
}

function resolved(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}
