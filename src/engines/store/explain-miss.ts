import type { IdentityDocument } from '../identity/identity.js';

export interface Difference {
  /** `recipe.profiles.0.x.max`, `target.version`. */
  readonly field: string;
  /** As JSON values; undefined (absent in JSON) where one side has no such field. */
  readonly wanted?: unknown;
  readonly stored?: unknown;
}

export interface MissExplanation<T> {
  /** The stored engine of this model with the fewest differences. */
  readonly nearest: T;
  readonly differences: readonly Difference[];
}

/**
 * Why none of the stored identities is the wanted one: the nearest of the same model and what differs. undefined when no engine of this model is stored:
 * how one of another model differs tells nothing.
 */
export function explainMiss<T>(
  wanted: IdentityDocument,
  stored: Iterable<{ readonly document: IdentityDocument; readonly engine: T }>,
): MissExplanation<T> | undefined {
  let best: MissExplanation<T> | undefined;
  for (const { document, engine } of stored) {
    if (document.model !== wanted.model) continue;
    const differences = compareDocuments(wanted, document);
    if (best === undefined || differences.length < best.differences.length)
      best = { nearest: engine, differences };
  }
  return best;
}

/** What differs between two documents, in the order of the paths. A list of plain values is one value, and so is an object where the other side has none. */
export function compareDocuments(wanted: IdentityDocument, stored: IdentityDocument): readonly Difference[] {
  return [...differencesAt('', wanted, stored)];
}

function* differencesAt(field: string, wanted: unknown, stored: unknown): Generator<Difference> {
  if (!isNested(wanted) || !isNested(stored)) {
    if (JSON.stringify(wanted) !== JSON.stringify(stored)) yield { field, wanted, stored };
    return;
  }
  for (const key of [...new Set([...Object.keys(wanted), ...Object.keys(stored)])].sort()) {
    yield* differencesAt(field === '' ? key : `${field}.${key}`, wanted[key], stored[key]);
  }
}

const isNested = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && (!Array.isArray(value) || value.some(isNested));
