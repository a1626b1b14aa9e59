import { z } from 'zod';
import { identityDocumentSchema, sha256Schema } from '../../engines/identity/recipe.js';
import { missSchema } from '../../engines/store/result.js';
import { engineSignatureSchema } from '../../engines/store/signature-schema.js';
import { healSchema } from '../../report/forge-result.js';
import { targetEntrySchema, targetNameSchema } from './engines-file-schema.js';

const exitCode = z.literal([0, 1, 2, 3, 4, 5]);

/** Of everything else in the document, by the key of the machine that wrote it. */
const signature = engineSignatureSchema.optional();

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
  /** What `heal` added to the options, what it costs, and the page of the run that found it, from the plan's folder; absent where it added nothing. */
  healed: healSchema.pick({ raised: true, prices: true }).extend({ page: z.string() }).optional(),
  recipe: identityDocumentSchema.shape.recipe,
  target: identityDocumentSchema.shape.target,
  /** The target's name in the engines file. */
  on: targetNameSchema,
  /** The policy that a build has to pass, from the plan's folder, and the digest of all that it asks; null for none. */
  gate: z.object({ path: z.string(), digest: sha256Schema }).nullable(),
  state: z.enum(['have', 'missing']),
  /** Why it is missing; null for one that is there. */
  why: missSchema.nullable(),
});

/** The engines that a fleet has and those it lacks: a document in its store. */
export const fleetPlanSchema = z.object({
  schema: z.literal('trtforge.fleet-plan/1'),
  /** The start of the digest of everything in it but times and states (`planId`): planning the same again replaces the document. */
  id: z.string().regex(/^[0-9a-f]{32}$/),
  /** When, by the clock of the machine that planned. */
  made: z.string(),
  store: z.string(),
  /** Of the engines file; where a task runs. */
  folder: z.string(),
  targets: z.record(targetNameSchema, targetEntrySchema),
  jobs: z.array(jobSchema),
  signature,
});

/** The work of a task on an engine: a document in the store, by the engine's identity; the last one counts. */
export const workRecordSchema = z.object({
  schema: z.literal('trtforge.fleet-record/1'),
  identity: sha256Schema,
  name: z.string(),
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
  signature,
});

export const fleetWorkSchema = z.object({
  schema: z.literal('trtforge.fleet-work/1'),
  plan: z.string(),
  jobs: z.array(workRecordSchema),
  exitCode,
});

/** Every engine of a plan as it stands now: what `fleet status` gives and the page shows. */
export const fleetStatusSchema = z.object({
  schema: z.literal('trtforge.fleet-status/1'),
  version: z.string(),
  plan: z.string(),
  address: z.string(),
  at: z.string(),
  outcome: z.enum(['pass', 'fail', 'inconclusive']),
  jobs: z.array(
    z.object({
      index: z.int(),
      name: z.string(),
      identity: sha256Schema,
      /** The model's path, and of a bundle the component. */
      model: z.string(),
      precision: z.string(),
      on: z.string(),
      state: z.enum(['have', 'running', 'queued', 'undecided', 'refused', 'failed', 'missing']),
      /** In a sentence each; of an engine that is there only why its record does not count. */
      why: z.array(z.string()),
      bytes: z.int().nullable(),
      buildMs: z.number().nullable(),
      /** By the clock of the machine that built it. */
      builtAt: z.string().nullable(),
      check: workRecordSchema.shape.check,
      gate: workRecordSchema.shape.gate.unwrap().shape.outcome.nullable(),
      node: z.string().nullable(),
      gpu: z.string().nullable(),
    }),
  ),
  /** Who was asked what runs, and of those that did not answer why; null for an answer. */
  schedulers: z.array(z.object({ name: z.string(), why: z.string().nullable() })),
});

export interface FleetStatus extends z.infer<typeof fleetStatusSchema> {}
export interface FleetPlan extends z.infer<typeof fleetPlanSchema> {}
export type FleetJob = z.infer<typeof jobSchema>;
export type WorkRecord = z.infer<typeof workRecordSchema>;
export interface FleetWork extends z.infer<typeof fleetWorkSchema> {}
