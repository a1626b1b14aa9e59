import type { z } from 'zod';
import type { ErrorCode } from '../../errors.js';
import { isNamedAfter } from '../identity/engine-name.js';
import type { IdentityDocument } from '../identity/identity.js';
import type { Passport } from '../identity/passport-file.js';
import type { missSchema } from './build-result-schema.js';
import type { LocalStore } from './local.js';
import type { EngineSummary } from './store.js';

/** Why a source did not give the engine. */
export type Miss = z.infer<typeof missSchema>;
type Difference = Miss['differences'][number];

/** The engine that was asked for, and what its model is called. */
export interface Wanted {
  readonly wanted: IdentityDocument;
  readonly modelName: string;
}

/** Passports read to find the nearest engine; a store may hold thousands. */
const MOST_READ = 64;

export const plainMiss = (from: string, code: ErrorCode | null, reason: string): Miss => ({
  from,
  code,
  reason,
  nearest: null,
  differences: [],
});

/** A miss in words: what is wrong with the engine that is there, or the nearest of the model that is and the fields that differ, or that there is none of it. */
export async function explainStoreMiss(
  from: 'local' | 'layer',
  store: LocalStore,
  { wanted, modelName }: Wanted,
  answer: { readonly code: ErrorCode | null; readonly reason: string },
): Promise<Miss> {
  const miss = plainMiss(from, answer.code, answer.reason);
  if (answer.code !== null) return miss;
  const same = await store.ofModel(wanted.model);
  if (same.length === 0) return { ...miss, reason: noneOfModel(store.place, await store.list(), modelName) };
  const passports = await Promise.all(
    same.slice(0, MOST_READ).map(({ identity }) => store.passport(identity)),
  );
  return withNearest(miss, wanted, passports);
}

/** The same with passports at hand. */
export function withNearest(
  miss: Miss,
  wanted: IdentityDocument,
  passports: readonly (Passport | undefined)[],
): Miss {
  const entries = passports.flatMap((engine) =>
    engine === undefined ? [] : [{ document: engine.identity.document, engine }],
  );
  const explained = explainMiss(wanted, entries);
  if (explained === undefined) return miss;
  const { nearest, differences } = explained;
  return {
    ...miss,
    nearest: { identity: nearest.identity.digest, name: nearest.name },
    differences: [...differences],
  };
}

/** A model that was changed or trained on keeps its name: then the store has engines of the name, and none of the content. */
function noneOfModel(place: string, engines: readonly EngineSummary[], modelName: string): string {
  const none = `${place} has no engine of this model`;
  const namesakes = engines.filter(({ name }) => name !== null && isNamedAfter(name, modelName)).length;
  if (namesakes === 0) return none;
  return `${none}; ${namesakes === 1 ? 'the one' : `the ${namesakes}`} named ${modelName} there ${namesakes === 1 ? 'is' : 'are'} of another content`;
}

interface MissExplanation<T> {
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
