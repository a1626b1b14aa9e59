import { type Difference, explainMiss } from '../engine/explain-miss.js';
import type { IdentityDocument } from '../engine/identity.js';
import type { Passport } from '../engine/passport-file.js';
import type { ErrorCode } from '../errors.js';
import type { LocalStore } from './local.js';
import type { EngineSummary } from './store.js';

/** Why a source did not give the engine. */
export interface Miss {
  /** `local`, `layer` or `remote`. */
  readonly from: string;
  /** null when the engine was simply not there. */
  readonly code: ErrorCode | null;
  readonly reason: string;
  /** The nearest engine the source has, and what differs. */
  readonly nearest: { readonly identity: string; readonly name: string } | null;
  readonly differences: readonly Difference[];
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

/** A miss in words: what is wrong with the engine that is there, or the nearest that is and the fields that differ. */
export async function explainStoreMiss(
  from: 'local' | 'layer',
  store: LocalStore,
  wanted: IdentityDocument,
  answer: { readonly code: ErrorCode | null; readonly reason: string },
): Promise<Miss> {
  const miss = plainMiss(from, answer.code, answer.reason);
  if (answer.code !== null) return miss;
  const passports = await Promise.all(
    candidates(await store.list(), wanted).map(({ identity }) => store.passport(identity)),
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

/** Engines of the same model, else the newest of any. */
function candidates(engines: readonly EngineSummary[], wanted: IdentityDocument): readonly EngineSummary[] {
  const sound = engines
    .filter(({ problem }) => problem === null)
    .sort((a, b) => ((a.builtAt ?? '') < (b.builtAt ?? '') ? 1 : -1));
  const same = sound.filter(({ model }) => model === wanted.model);
  return (same.length > 0 ? same : sound).slice(0, MOST_READ);
}
