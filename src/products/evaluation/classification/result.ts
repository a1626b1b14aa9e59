import { z } from 'zod';
import { metricSchema } from '../../../quality/tasks/task.js';
import { findingSchema } from '../findings.js';
import { candidateSchema } from '../run/candidate.js';
import { imageRunSchema } from '../run/images.js';
import { variantSchema } from '../run/variant.js';

/** The result of `trtforge eval classify`. */
export const classificationResultSchema = z.object({
  schema: z.literal('trtforge.eval-classify/1'),
  /** In metrics.json of a comparison: which variant it is. */
  variant: variantSchema.optional(),
  truth: z.string(),
  imagesDir: z.string(),
  /** Shares of images whose label is the class of the highest score, or among the five highest. */
  top1: z.number(),
  top5: z.number(),
  images: z.number(),
  classes: z.number(),
  /** By label: how many images it has, and the share with it at the top. */
  perClass: z.array(z.object({ label: z.string(), images: z.number(), top1: z.number() })),
  /** Pairs that were taken for one another, the most frequent first; at most 50. */
  confusion: z.array(z.object({ label: z.string(), taken: z.string(), count: z.number() })),
  /** SHA-256 over names of images and labels. */
  dataDigest: z.string(),
  comparabilityKey: z.string(),
  metrics: z.array(metricSchema),
  candidate: candidateSchema,
  preprocess: z.string(),
  run: imageRunSchema,
  warnings: z.array(findingSchema),
});
export interface ClassificationResult extends z.infer<typeof classificationResultSchema> {}
