import type { IdentityDocument } from './identity.js';

export interface Difference {
  /** `recipe.profiles.0.x.max.0`, `target.version`, `model`. */
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

/** Leaves that differ between two documents, in the order of their paths. */
export function compareDocuments(wanted: IdentityDocument, stored: IdentityDocument): readonly Difference[] {
  const [left, right] = [leaves(wanted), leaves(stored)];
  return [...new Set([...left.keys(), ...right.keys()])]
    .sort()
    .filter((field) => left.get(field) !== right.get(field))
    .map((field) => ({ field, wanted: left.get(field), stored: right.get(field) }));
}

function leaves(value: unknown, path = '', found = new Map<string, unknown>()): Map<string, unknown> {
  if (typeof value !== 'object' || value === null) found.set(path, value);
  else {
    for (const [key, item] of Object.entries(value))
      leaves(item, path === '' ? key : `${path}.${key}`, found);
  }
  return found;
}
