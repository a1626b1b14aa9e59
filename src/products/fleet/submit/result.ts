import { z } from 'zod';
import type { ExitCode } from '../../../errors.js';
import { fleetStatusSchema } from '../plan-schema.js';
import { kindSchema } from '../schedulers/where.js';

/** The jobs handed over, and to whom. */
export const fleetSubmitSchema = z.object({
  schema: z.literal('trtforge.fleet-submit/1'),
  plan: z.string(),
  /** Of the plan's document. */
  address: z.string(),
  targets: z.array(
    z.object({
      target: z.string(),
      where: kindSchema,
      /** As the scheduler named it; null where none was asked or nothing was sent. */
      job: z.string().nullable(),
      /** Of the plan: what was sent, worked or written. */
      indices: z.array(z.int()),
      /** The file with -o. */
      manifest: z.string().nullable(),
      /** Of work on this machine, how many engines came to what: `6 built, 10 failed`; null elsewhere. */
      did: z.string().nullable(),
      /** `there`: the engine is; else the scheduler has the job. */
      skipped: z.array(z.object({ index: z.int(), why: z.enum(['there', 'queued', 'running']) })),
    }),
  ),
  /** As in `fleet status`. */
  schedulers: fleetStatusSchema.shape.schedulers,
  /** Of the work, where it was done here or by ssh. */
  exitCode: z.int().min(0).max(5),
});
export type FleetSubmit = z.infer<typeof fleetSubmitSchema> & { readonly exitCode: ExitCode };
export type SubmittedTarget = FleetSubmit['targets'][number];
