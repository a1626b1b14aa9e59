import type { ErrorCode } from '../../errors.js';
import { isNamedAfter } from '../identity/engine-name.js';
import type { IdentityDocument } from '../identity/identity.js';
import type { Passport } from '../identity/passport-file.js';
import { type Difference, explainMiss } from './explain-miss.js';
import type { LocalStore } from './local.js';
import type { EngineSummary } from './store.js';

/** Why a source did not give the engine. */
export interface Miss {
  /** `local`, `layer` or `remote`. */
  readonly from: string;
  /** null when the engine was simply not there. */
  readonly code: ErrorCode | null;
  readonly reason: string;
  /** The nearest engine of the model that the source has, and what differs; null where it has none of this model. */
  readonly nearest: { readonly identity: string; readonly name: string } | null;
  readonly differences: readonly Difference[];
}

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
  return { ...miss, nearest: { identity: nearest.identity.digest, name: nearest.name }, differences };
}

/** A model that was changed or trained on keeps its name: then the store has engines of the name, and none of the content. */
function noneOfModel(place: string, engines: readonly EngineSummary[], modelName: string): string {
  const none = `${place} has no engine of this model`;
  const namesakes = engines.filter(({ name }) => name !== null && isNamedAfter(name, modelName)).length;
  if (namesakes === 0) return none;
  return `${none}; ${namesakes === 1 ? 'the one' : `the ${namesakes}`} named ${modelName} there ${namesakes === 1 ? 'is' : 'are'} of another content`;
}
