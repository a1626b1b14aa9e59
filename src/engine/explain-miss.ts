import type { IdentityDocument } from './identity.js';

export interface Difference {
  /** `recipe.profiles.0.x.max`, `target.version`, `model`. */
  readonly field: string;
  /** As JSON values; undefined (absent in JSON) where one side has no such field. */
  readonly wanted?: unknown;
  readonly stored?: unknown;
}

export interface MissExplanation<T> {
  /** The stored engine with the fewest differences. */
  readonly nearest: T;
  readonly differences: readonly Difference[];
}

/**
 * Why none of the stored identities is the wanted one: the nearest and what differs. An engine of the same model is nearer than one of
 * another model whatever else differs. undefined when nothing is stored.
 */
export function explainMiss<T>(
  wanted: IdentityDocument,
  stored: Iterable<{ readonly document: IdentityDocument; readonly engine: T }>,
): MissExplanation<T> | undefined {
  let best: { readonly weight: number; readonly explanation: MissExplanation<T> } | undefined;
  for (const { document, engine } of stored) {
    const differences = compareDocuments(wanted, document);
    const weight = differences.length + (document.model === wanted.model ? 0 : 1000);
    if (best === undefined || weight < best.weight) {
      best = { weight, explanation: { nearest: engine, differences } };
    }
  }
  return best?.explanation;
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
