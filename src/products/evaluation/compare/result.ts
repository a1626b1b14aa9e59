import { z } from 'zod';
import { ExitCode } from '../../../errors.js';
import { worstSampleSchema } from '../../../quality/verify/result.js';
import { comparedTasks, notRunSchema, variantSchema } from '../run/variant.js';
import { figuresSchema } from './figures.js';

/** The result of `trtforge compare-backends` and `compare-backends repair`; `comparison.json` of a run root. */
export const comparisonSchema = z.object({
  schema: z.literal('trtforge.compare-backends/1'),
  version: z.string(),
  /** The run root. */
  root: z.string(),
  task: z.enum(comparedTasks),
  /** The metric that is compared: `mAP_50_95`, `top1`, `wer`. */
  metric: z.string(),
  variants: z.array(
    variantSchema.omit({ schema: true, task: true }).extend({
      /** In the run root. */
      folder: z.string(),
      /** `kept`: its figures were there already. */
      status: z.enum(['run', 'kept', 'not-run']),
      error: notRunSchema.shape.error.nullable(),
      figures: figuresSchema.nullable(),
    }),
  ),
  /** Files of the run root that should state a variant and cannot be read. */
  damaged: z.array(z.object({ file: z.string(), error: notRunSchema.shape.error })),
  /** The variant that others are compared with; null where none has figures. */
  reference: z.string().nullable(),
  /** The metric of every other variant with the same comparability key. */
  accuracy: z.array(
    z.object({
      variant: z.string(),
      reference: z.string(),
      metric: z.string(),
      value: z.number(),
      of: z.number(),
      /** The loss against the reference, in the metric's unit; below zero where it is better. */
      drop: z.number(),
      /** The drop over the reference's value; null where that is 0. */
      relativeDrop: z.number().nullable(),
    }),
  ),
  /** Median of candidates over that of FP16 on the same back end and machine. */
  latency: z.array(
    z.object({
      variant: z.string(),
      reference: z.string(),
      medianMs: z.number(),
      of: z.number(),
      /** 0.75: it takes 75 % of the time. */
      share: z.number(),
    }),
  ),
  /** Of speech: where a variant heard other words than the reference, at most 12 utterances of each, those with the most first. Absent in results of versions before. */
  texts: z
    .array(z.object({ variant: z.string(), differ: z.int(), samples: z.array(worstSampleSchema) }))
    .optional(),
  /** Variants that are not compared with each other, and why. */
  notCompared: z.array(z.object({ variant: z.string(), reference: z.string(), why: z.string() })),
  warnings: z.array(z.string()),
  /** The command line that made it; null where a program called the library. */
  repeat: z.string().nullable(),
  exitCode: z.literal(Object.values(ExitCode)),
});
export interface Comparison extends z.infer<typeof comparisonSchema> {}
export type ComparedVariant = Comparison['variants'][number];
