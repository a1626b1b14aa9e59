import type { Passport } from '../engine/passport-file.js';
import type { ErrorCode } from '../errors.js';

/** An engine where a store keeps it. */
export interface StoredEngine {
  readonly identity: string;
  readonly planPath: string;
  readonly passport: Passport;
  /** The readable way to the same file; null where the store cannot make links. */
  readonly readablePath: string | null;
}

export type Lookup =
  | { readonly found: true; readonly engine: StoredEngine }
  /** `code` is null when the engine is simply not there, else what is wrong with the one that is. */
  | { readonly found: false; readonly code: ErrorCode | null; readonly reason: string };

/**
 * A place where engines are kept by identity. Local folders implement it; so can object stores, and a store that asks several in turn.
 * A store never hands out an engine whose passport, header, size or digest do not agree.
 */
export interface EngineStore {
  /** What `buildOrLoad` calls an engine that came from here. */
  readonly kind: 'local' | 'remote';
  /** For people: a folder or an address. */
  readonly place: string;
  get(identity: string, signal?: AbortSignal): Promise<Lookup>;
  /** Keeps a checked engine, moving the plan out of `pendingPlanPath` or copying it from there. Throws TF_WRITE_FAILED. */
  put(pendingPlanPath: string, passport: Passport, signal?: AbortSignal): Promise<StoredEngine>;
  /** What is kept, sound or not, in no order. Reads passports, not plans. */
  list(signal?: AbortSignal): Promise<readonly StoredEntry[]>;
  /** False when there was nothing. */
  remove(identity: string): Promise<boolean>;
}

/** One entry of a listing; `passport` is null when it cannot be read, `problem` says why. */
export interface StoredEntry {
  readonly identity: string;
  readonly planPath: string;
  readonly passport: Passport | null;
  readonly problem: { readonly code: ErrorCode; readonly reason: string } | null;
}
