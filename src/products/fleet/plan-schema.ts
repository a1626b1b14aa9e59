import { z } from 'zod';
import { identityDocumentSchema, sha256Schema } from '../../engines/identity/identity-schema.js';
import { missSchema } from '../../engines/store/build-result-schema.js';
import { targetEntrySchema, targetNameSchema } from './engines-schema.js';

const exitCode = z.int().min(0).max(5);

/** One engine of a fleet. */
export const jobSchema = z.object({
  /** Its place in the plan. */
  index: z.int().nonnegative(),
  identity: sha256Schema,
  /** The readable name of the engine. */
  name: z.string(),
  model: z.object({
    /** Of the model's content. */
    digest: sha256Schema,
    /** Of the model, or of the bundle's meta file, from the plan's folder. */
    path: z.string(),
    /** Of a bundle; else null. */
    component: z.string().nullable(),
  }),
  /** As in the engines file: options of `trtforge build` by their names. */
  options: z.record(z.string(), z.unknown()),
  recipe: identityDocumentSchema.shape.recipe,
  target: identityDocumentSchema.shape.target,
  /** The target's name in the engines file. */
  on: targetNameSchema,
  /** The policy that a build has to pass, from the plan's folder; null for none. */
  gate: z.string().nullable(),
  state: z.enum(['have', 'missing']),
  /** Why it is missing; null for one that is there. */
  why: missSchema.nullable(),
});

/** What a fleet has and what it lacks: a document in its store. */
export const fleetPlanSchema = z.object({
  schema: z.literal('trtforge.fleet-plan/1'),
  /** The start of the digest of everything in it but times and states: planning the same again replaces the document. */
  id: z.string().regex(/^[0-9a-f]{12}$/),
  /** When, by the clock of the machine that planned. */
  made: z.string(),
  store: z.string(),
  /** Of the engines file; where a task runs. */
  folder: z.string(),
  targets: z.record(targetNameSchema, targetEntrySchema),
  jobs: z.array(jobSchema),
});

/** What a task did about an engine: a document in the store, by the engine's identity; the last one counts. */
export const workRecordSchema = z.object({
  schema: z.literal('trtforge.fleet-record/1'),
  identity: sha256Schema,
  plan: z.string(),
  index: z.int().nonnegative(),
  /** `there`: nothing was built. */
  did: z.enum(['there', 'built', 'refused', 'failed']),
  exitCode,
  /** Of an error; null without one. */
  code: z.string().nullable(),
  /** Sentences: of the error, or of what did not pass. */
  reasons: z.array(z.string()),
  /** Of the engine that is in the store. */
  engine: z
    .object({ identity: sha256Schema, name: z.string(), bytes: z.int(), buildMs: z.number() })
    .nullable(),
  /** Of the known answer; null where it did not get so far. */
  check: z.enum(['pass', 'fail', 'inconclusive']).nullable(),
  /** The policy's digest and what it said; null without a policy. */
  gate: z
    .object({ policy: sha256Schema, outcome: z.enum(['pass', 'warn', 'inconclusive', 'fail']) })
    .nullable(),
  node: z.string(),
  gpu: z.string().nullable(),
  /** By the clock of the node. */
  at: z.string(),
  ms: z.number(),
});

export const fleetWorkSchema = z.object({
  schema: z.literal('trtforge.fleet-work/1'),
  plan: z.string(),
  jobs: z.array(workRecordSchema),
  exitCode,
});

export type FleetPlan = z.infer<typeof fleetPlanSchema>;
export type FleetJob = z.infer<typeof jobSchema>;
export type WorkRecord = z.infer<typeof workRecordSchema>;
export type FleetWork = z.infer<typeof fleetWorkSchema>;
