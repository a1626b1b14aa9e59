import { z } from 'zod';
import type { Passport } from '../engine/passport-file.js';
import { targetText } from '../engine/target.js';
import { verifyEngine } from '../engine/verify-engine.js';
import { TrtforgeError } from '../errors.js';
import { missSchema } from './build-result-schema.js';
import type { EngineStore, StoredEntry } from './store.js';

const entrySchema = z.object({
  identity: z.string(),
  engine: z.string(),
  /** null where the passport cannot be read; `problem` says why. */
  name: z.string().nullable(),
  target: z.string().nullable(),
  precision: z.string().nullable(),
  bytes: z.int().nullable(),
  builtAt: z.string().nullable(),
  buildMs: z.number().nullable(),
  problem: z.object({ code: z.string(), reason: z.string() }).nullable(),
});
type CacheEntry = z.infer<typeof entrySchema>;

export const cacheListSchema = z.object({
  schema: z.literal('trtforge.cache-list/1'),
  store: z.string(),
  engines: z.array(entrySchema),
  bytes: z.int(),
});
export type CacheList = z.infer<typeof cacheListSchema>;

export const cacheVerifySchema = z.object({
  schema: z.literal('trtforge.cache-verify/1'),
  store: z.string(),
  sound: z.int(),
  engines: z.array(entrySchema),
  exitCode: z.literal([0, 1]),
});
export type CacheVerification = z.infer<typeof cacheVerifySchema>;

export const cacheWhySchema = z.object({
  schema: z.literal('trtforge.cache-why/1'),
  store: z.string(),
  identity: z.string(),
  name: z.string(),
  /** Path of the engine that would be loaded; null when it would be built. */
  engine: z.string().nullable(),
  why: z.array(missSchema),
});
export type CacheWhy = z.infer<typeof cacheWhySchema>;

export const cacheClearSchema = z.object({
  schema: z.literal('trtforge.cache-clear/1'),
  store: z.string(),
  removed: z.int(),
});
export type CacheClearing = z.infer<typeof cacheClearSchema>;

/** What a store holds, the newest first. */
export async function listCache(store: EngineStore): Promise<CacheList> {
  const engines = (await store.list()).map(entryOf);
  engines.sort((a, b) => ((a.builtAt ?? '') < (b.builtAt ?? '') ? 1 : -1));
  const bytes = engines.reduce((sum, { bytes: size }) => sum + (size ?? 0), 0);
  return { schema: 'trtforge.cache-list/1', store: store.place, engines, bytes };
}

/** Reads every plan of a store and holds it against its passport. `exitCode` is 1 when one does not agree. */
export async function verifyCache(store: EngineStore): Promise<CacheVerification> {
  const engines = (await store.list()).map((entry) => entryOf(verified(entry)));
  const sound = engines.filter(({ problem }) => problem === null).length;
  return {
    schema: 'trtforge.cache-verify/1',
    store: store.place,
    sound,
    engines,
    exitCode: sound === engines.length ? 0 : 1,
  };
}

function verified(entry: StoredEntry): StoredEntry {
  if (entry.problem !== null) return entry;
  try {
    const passport = verifyEngine(entry.planPath);
    if (passport.identity.digest === entry.identity) return entry;
    const reason = `The passport beside ${entry.planPath} is that of another identity.`;
    return { ...entry, problem: { code: 'TF_PASSPORT_INVALID', reason } };
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    return { ...entry, problem: { code: error.code, reason: error.message } };
  }
}

const entryOf = ({ identity, planPath, passport, problem }: StoredEntry): CacheEntry => ({
  identity,
  engine: planPath,
  ...passportFields(passport),
  problem,
});

const passportFields = (passport: Passport | null) => ({
  name: passport?.name ?? null,
  target: passport === null ? null : targetText(passport.identity.document.target),
  precision: passport?.identity.document.recipe.precision ?? null,
  bytes: passport?.plan.bytes ?? null,
  builtAt: passport?.built.at ?? null,
  buildMs: passport?.built.ms ?? null,
});
