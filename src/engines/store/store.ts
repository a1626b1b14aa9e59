import { type ErrorCode, TrtforgeError } from '../../errors.js';
import type { IdentityDocument } from '../identity/identity.js';
import type { Passport } from '../identity/passport.js';
import { targetText } from '../identity/target.js';
import type { EngineSignature } from './signature-schema.js';

/** An engine where a store keeps it. */
export interface StoredEngine {
  readonly identity: string;
  readonly planPath: string;
  readonly passport: Passport;
  /** null for an engine that nobody signed. */
  readonly signature: EngineSignature | null;
  /** The readable way to the same file; null where the store cannot make links. */
  readonly readablePath: string | null;
}

/** A hit of a store, whose engines are `E`. */
export interface StoreHit<E> {
  readonly found: true;
  readonly engine: E;
  /** `exact`, or the rule of `engines/store/compatibility.ts` by which another identity serves. */
  readonly rule: string;
}

/** `code` is null when the engine is simply not there, else what is wrong with the one that is. */
export interface NotFound {
  readonly found: false;
  readonly code: ErrorCode | null;
  readonly reason: string;
}

/** A store that can be asked for engines: a folder or a bucket. */
export interface EngineSource<E> {
  readonly place: string;
  /** The engine of this very identity. */
  get(identity: string, signal?: AbortSignal): Promise<StoreHit<E> | NotFound>;
  /** One of another identity that may serve (`compatibility.ts`); undefined when none may. */
  findCompatible(wanted: IdentityDocument, signal?: AbortSignal): Promise<StoreHit<E> | undefined>;
}

/** One engine of a listing; facts are null when its passport cannot be read, and `problem` states why. */
export interface EngineSummary {
  readonly identity: string;
  readonly name: string | null;
  /** Digest of the model's content. */
  readonly model: string | null;
  readonly target: string | null;
  readonly precision: string | null;
  /** Of the plan. */
  readonly bytes: number | null;
  readonly builtAt: string | null;
  readonly buildMs: number | null;
  /** Id of the key that signed it, which a listing does not check. */
  readonly signedBy: string | null;
  readonly problem: { readonly code: string; readonly reason: string } | null;
}

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
