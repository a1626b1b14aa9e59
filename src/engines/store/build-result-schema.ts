import { z } from 'zod';

const differenceSchema = z.object({
  field: z.string(),
  wanted: z.unknown().optional(),
  stored: z.unknown().optional(),
});

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

/** What `trtforge build` gives. */
export const buildResultSchema = z.object({
  schema: z.literal('trtforge.build/1'),
  /** Path of the plan. */
  engine: z.string(),
  /** Path of its passport. */
  passport: z.string(),
  identity: z.string(),
  source: z.enum(['built', 'local', 'remote']),
  /** `exact`, or the rule by which an engine of another identity serves: `version-compatible`, `hardware-compatible`, `several-gpus`, … */
  rule: z.string(),
  /** How long the library took to build the plan, now or when it was built. */
  buildMs: z.number().nonnegative(),
  /** Size of the plan. */
  bytes: z.int().positive(),
  sha256: z.string(),
  name: z.string(),
  /** The readable name in the store; null without one. */
  readablePath: z.string().nullable(),
  target: z.string(),
  /** `tensorrt-rtx 1.7.1.116` */
  library: z.string(),
  precision: z.string(),
  profiles: z.int().nonnegative(),
  /** Why earlier sources did not serve. */
  why: z.array(missSchema),
  /** Of this run, in milliseconds. */
  timings: z.object({
    lookupMs: z.number(),
    waitMs: z.number(),
    remoteMs: z.number(),
    buildMs: z.number(),
    keepMs: z.number(),
    uploadMs: z.number(),
  }),
  warnings: z.array(z.string()),
});
