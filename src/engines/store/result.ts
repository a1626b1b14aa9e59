import { z } from 'zod';

const differenceSchema = z.object({
  /** `recipe.profiles.0.x.max`, `target.version`. */
  field: z.string(),
  /** As JSON values; absent where one side has no such field. */
  wanted: z.unknown().optional(),
  stored: z.unknown().optional(),
});

/** Why a source did not give the engine. */
export const missSchema = z.object({
  /** `local`, `layer` (a read-only store below it) or `remote`. */
  from: z.string(),
  /** null when the engine was simply not there; else what was wrong with the one that was. */
  code: z.string().nullable(),
  reason: z.string(),
  /** The nearest engine of the same model; null where there is none of it. */
  nearest: z.object({ identity: z.string(), name: z.string() }).nullable(),
  differences: z.array(differenceSchema),
});

const problemSchema = z.object({ code: z.string(), reason: z.string() }).nullable();

const entrySchema = z.object({
  identity: z.string(),
  /** Path or object key of the plan; null where the entry of a bucket cannot be read. */
  engine: z.string().nullable(),
  /** null where the passport cannot be read; `problem` states why. */
  name: z.string().nullable(),
  target: z.string().nullable(),
  precision: z.string().nullable(),
  bytes: z.int().nullable(),
  builtAt: z.string().nullable(),
  buildMs: z.number().nullable(),
  /** Id of the key that signed it; null for an engine that is not signed. */
  signedBy: z.string().nullable(),
  problem: problemSchema,
});
export type CacheEntry = z.infer<typeof entrySchema>;

export const cacheListSchema = z.object({
  schema: z.literal('trtforge.cache-ls/1'),
  store: z.string(),
  engines: z.array(entrySchema),
  bytes: z.int(),
  /** `problem`: what is in the place of their folder. */
  timingCaches: z.object({ count: z.int(), bytes: z.int(), problem: problemSchema }),
  /** 1 where an engine or the timing caches have a problem. */
  exitCode: z.literal([0, 1]),
});
export type CacheList = z.infer<typeof cacheListSchema>;

export const cacheVerifySchema = z.object({
  schema: z.literal('trtforge.cache-verify/1'),
  store: z.string(),
  verified: z.int(),
  engines: z.array(entrySchema),
  exitCode: z.literal([0, 1, 4]),
});
export type CacheVerification = z.infer<typeof cacheVerifySchema>;

export const cacheWhySchema = z.object({
  schema: z.literal('trtforge.cache-why/1'),
  store: z.string(),
  identity: z.string(),
  name: z.string(),
  /** Path or object key of the engine that would be loaded; null when it would be built. */
  engine: z.string().nullable(),
  /** `local`, `layer` or `remote`; null when it would be built. */
  from: z.string().nullable(),
  /** The rule by which it serves; null when it would be built. */
  rule: z.string().nullable(),
  /**
   * With the builder flag `refit` the engine of the same recipe that would be refitted in place of a build; null for none. `isCompared`: its graph is that of the model, which is
   * known before the conversion only where there is none.
   */
  refits: z.object({ engine: z.string(), identity: z.string(), isCompared: z.boolean() }).nullable(),
  /** The rules' decisions on the other engines of this model. */
  others: z.array(
    z.object({
      identity: z.string(),
      name: z.string(),
      serves: z.boolean(),
      rule: z.string(),
      reason: z.string(),
    }),
  ),
  why: z.array(missSchema),
});
export type CacheWhy = z.infer<typeof cacheWhySchema>;

export const cacheClearSchema = z.object({
  schema: z.literal('trtforge.cache-clear/1'),
  store: z.string(),
  /** Engines. */
  removed: z.int(),
  /** Readable names of what went, timing caches too; the identity where a name cannot be read. */
  names: z.array(z.string()),
});
export type CacheClearing = z.infer<typeof cacheClearSchema>;

export const cacheGcSchema = z.object({
  schema: z.literal('trtforge.cache-gc/1'),
  store: z.string(),
  maxBytes: z.int(),
  /** Identities of engines and names of timing caches, the least recently used first. */
  removed: z.array(z.string()),
  bytesBefore: z.int(),
  bytesAfter: z.int(),
  /** Over the limit all the same, because it is in use. */
  excessBytes: z.int(),
});
export type CacheCollection = z.infer<typeof cacheGcSchema>;

export const cacheImportSchema = z.object({
  schema: z.literal('trtforge.cache-import/1'),
  store: z.string(),
  /** Engines with a passport: they serve builds from now on. */
  engines: z.array(z.object({ from: z.string(), identity: z.string(), name: z.string() })),
  /** Without a passport, damaged or not trusted. */
  rejected: z.array(z.object({ from: z.string(), code: z.string(), reason: z.string() })),
  exitCode: z.literal([0, 1]),
});
export type CacheImport = z.infer<typeof cacheImportSchema>;

export const cacheExportSchema = z.object({
  schema: z.literal('trtforge.cache-export/1'),
  store: z.string(),
  to: z.string(),
  engines: z.array(z.object({ identity: z.string(), name: z.string(), path: z.string(), bytes: z.int() })),
  /** Engines of the store that are damaged or not trusted: not written, and the exit code is 1. */
  rejected: z.array(z.object({ identity: z.string(), code: z.string(), reason: z.string() })),
  bytes: z.int(),
  exitCode: z.literal([0, 1]),
});
export type CacheExport = z.infer<typeof cacheExportSchema>;

export const cacheKeygenSchema = z.object({
  schema: z.literal('trtforge.cache-keygen/1'),
  keyId: z.string(),
  privateKey: z.string(),
  publicKey: z.string(),
});
export type CacheKeys = z.infer<typeof cacheKeygenSchema>;

export const cacheSignSchema = z.object({
  schema: z.literal('trtforge.cache-sign/1'),
  store: z.string(),
  keyId: z.string(),
  signed: z.array(z.object({ identity: z.string(), name: z.string() })),
});
export type CacheSigning = z.infer<typeof cacheSignSchema>;
