import { z } from 'zod';
import { ExitCode } from '../../../errors.js';
import { taskIdentitySchema } from '../../../quality/tasks/task.js';
import { findingSchema } from '../findings.js';

/** From 0 to 1; null where no annotation counts. */
const share = z.number().nullable();

/** Precisions at the 101 recalls 0, 0.01, …, 1, to five decimals. */
const curveSchema = z.array(z.number()).length(101);
export interface PrecisionCurve extends z.infer<typeof curveSchema> {}

/** Average precision (AP) of one category: at overlaps of 0.50 to 0.95 unless the name has one. */
const categoryScoreSchema = z.object({
  id: z.int(),
  name: z.string(),
  /** Without crowds. */
  annotations: z.int(),
  detections: z.int(),
  AP_50_95: share,
  AP_50: share,
  AP_75: share,
  AP_small: share,
  AP_medium: share,
  AP_large: share,
  /** Average recall with 100 detections an image. */
  AR_100: share,
  /** At an overlap of 0.50. */
  precision: curveSchema.nullable(),
});
export interface CategoryScore extends z.infer<typeof categoryScoreSchema> {}

const scoresSchema = z.object({
  /** `COCOeval.stats` of pycocotools, in its order: AP, AP at 0.50 and 0.75, AP small, medium, large, AR with 1, 10, 100, AR small, medium, large; -1 where no annotation counts. */
  stats: z.array(z.number()).length(12),
  perClass: z.array(categoryScoreSchema),
  /** Means over the categories that have annotations, at overlaps of 0.50, 0.75, and over 0.50 to 0.95. */
  precision: z.object({ at50: curveSchema, at75: curveSchema, at50to95: curveSchema }).nullable(),
  /** Detections that count in no figure: those beyond the 100 of highest score of their image and category. */
  beyondLimit: z.int(),
});
export interface DetectionScores extends z.infer<typeof scoresSchema> {}

/** The result of `trtforge eval coco`. `dataDigest` is over the scored part of the truth: images, categories, boxes, areas, crowd flags. */
export const cocoResultSchema = z.object({
  schema: z.literal('trtforge.eval-coco/1'),
  /** The files, as passed. */
  instances: z.string(),
  detections: z.string(),
  ...taskIdentitySchema.omit({ metrics: true }).shape,
  metrics: z.object({
    mAP_50_95: share,
    mAP_50: share,
    mAP_75: share,
    mAP_small: share,
    mAP_medium: share,
    mAP_large: share,
    num_images: z.int(),
    num_detections: z.int(),
  }),
  /** Whether fewer images are scored than the instances have: such a figure says nothing about the whole set. */
  subset: z.boolean(),
  imagesOfInstances: z.int(),
  ...scoresSchema.shape,
  warnings: z.array(findingSchema),
  exitCode: z.literal([ExitCode.pass, ExitCode.inconclusive]),
});
export interface CocoResult extends z.infer<typeof cocoResultSchema> {}
