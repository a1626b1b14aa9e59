import { TrtforgeError } from '../../errors.js';
import type { Passport } from '../identity/passport.js';
import { targetText } from '../identity/target.js';
import type { EngineSignature } from './signature-schema.js';
import type { EngineSummary } from './store.js';

/** The entry in a listing of an engine whose passport was read. */
export const summaryOf = (passport: Passport, signature: EngineSignature | null): EngineSummary => ({
  identity: passport.identity.digest,
  name: passport.name,
  model: passport.identity.document.model,
  target: targetText(passport.identity.document.target),
  precision: passport.identity.document.recipe.precision,
  bytes: passport.plan.bytes,
  builtAt: passport.built.at,
  buildMs: passport.built.ms,
  signedBy: signature?.keyId ?? null,
  problem: null,
});

/** The same of one that could not be read. Rethrows every error but a TrtforgeError. */
export function brokenSummary(identity: string, error: unknown): EngineSummary {
  if (!(error instanceof TrtforgeError)) throw error;
  return {
    identity,
    name: null,
    model: null,
    target: null,
    precision: null,
    bytes: null,
    builtAt: null,
    buildMs: null,
    signedBy: null,
    problem: { code: error.code, reason: error.message },
  };
}
