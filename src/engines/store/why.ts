import type { z } from 'zod';
import type { ErrorCode } from '../../errors.js';
import { isNamedAfter } from '../identity/engine-name.js';
import { differencesOf, type IdentityDocument } from '../identity/identity.js';
import type { Passport } from '../identity/passport.js';
import type { LocalStore } from './local.js';
import type { missSchema } from './result.js';
import type { EngineSummary, NotFound } from './store.js';

/** Why a source did not give the engine. */
export type Miss = z.infer<typeof missSchema>;

/** Passports read to find the nearest engine; a store may have thousands. */
const MOST_READ = 64;

export const plainMiss = (from: string, code: ErrorCode | null, reason: string): Miss => ({
  from,
  code,
  reason,
  nearest: null,
  differences: [],
});

/** The problem of the engine that is there, or the model's nearest engine and the fields that differ, or that there is none of the model. */
export async function explainStoreMiss(
  from: string,
  store: LocalStore,
  { identity, model }: Wanted,
  { code, reason }: NotFound,
): Promise<Miss> {
  const miss = plainMiss(from, code, reason);
  if (code !== null) return miss;
  const same = await store.ofModel(identity.model);
  if (same.length === 0) return { ...miss, reason: noneOfModel(store.place, await store.list(), model.name) };
  const passports = await Promise.all(
    same.slice(0, MOST_READ).map(({ identity }) => store.passport(identity)),
  );
  return withNearest(miss, identity, passports);
}

/** A miss with the nearest engine among passports of the same model, the one with the fewest differences; without one it stays as it is. */
export function withNearest(
  miss: Miss,
  wanted: IdentityDocument,
  passports: readonly (Passport | undefined)[],
): Miss {
  const [nearest] = passports
    .filter((passport) => passport?.identity.document.model === wanted.model)
    .flatMap((passport) => {
      if (passport === undefined) return [];
      const { digest, document } = passport.identity;
      const differences = Array.from(differencesOf(wanted, document), ({ field, a, b }) => ({
        field,
        wanted: a,
        stored: b,
      }));
      return [{ nearest: { identity: digest, name: passport.name }, differences }];
    })
    .sort((a, b) => a.differences.length - b.differences.length);
  return { ...miss, ...nearest };
}

/** A model that was changed or trained on keeps its name: then the store has engines of the name, and none of the content. */
function noneOfModel(place: string, engines: readonly EngineSummary[], modelName: string): string {
  const none = `${place} has no engine of this model`;
  const namesakes = engines.filter(({ name }) => name !== null && isNamedAfter(name, modelName)).length;
  if (namesakes === 0) return none;
  return `${none}; ${namesakes === 1 ? 'the one' : `the ${namesakes}`} named ${modelName} there ${namesakes === 1 ? 'is' : 'are'} of another content`;
}

/** The engine that is requested, and the name of its model. */
export interface Wanted {
  readonly identity: IdentityDocument;
  readonly model: { readonly name: string };
}
