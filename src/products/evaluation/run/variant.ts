import { z } from 'zod';
import { ExitCode } from '../../../errors.js';

/** The tasks that are compared: detections, classes, words. The suffix of every variant's folder. */
export const comparedTasks = ['coco', 'classify', 'wer'] as const;
export type ComparedTaskId = (typeof comparedTasks)[number];

/** One model on one back end, as its metrics.json states it. */
export const variantSchema = z.object({
  schema: z.literal('trtforge.compared-variant/1'),
  /** `fp16-ort-cpu`: label and back end. */
  name: z.string(),
  task: z.enum(comparedTasks),
  /** Its place in the comparison, from 0; the first with figures is what others are compared with. */
  place: z.int().nonnegative(),
  /** The file as passed: the one that was converted, where it was. */
  model: z.string(),
  /** Its types, or the name that it was passed with: `fp32`, `fp16`, `int8`. */
  label: z.string(),
  role: z.enum(['model', 'converted', 'candidate']),
  /** As `--backends` names it: `ort-cuda`, `trt`. */
  backEnd: z.string(),
  /** The processor or GPU that ran it; latencies compare on one only. */
  machine: z.string(),
  /** SHA-256 over content of the model, conversion, back end, data and settings: what is equal is not run again. */
  identity: z.string(),
  /** The part of data and settings: results of others do not lie in one run root. */
  data: z.string(),
});
export interface Variant extends z.infer<typeof variantSchema> {}

/** Why a variant has no figures: `not-run.json` in its folder. */
export const notRunSchema = z.object({
  schema: z.literal('trtforge.not-run/1'),
  variant: variantSchema,
  error: z.object({
    code: z.string(),
    message: z.string(),
    remedy: z.string(),
    exitCode: z.literal(Object.values(ExitCode)),
  }),
});
export type NotRun = z.infer<typeof notRunSchema>;

export const variantFolder = ({ name, task }: Pick<Variant, 'name' | 'task'>): string => `${name}-${task}`;
