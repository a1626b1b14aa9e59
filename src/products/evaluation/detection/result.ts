import { z } from 'zod';
import { boxLayouts, boxScales } from '../../../quality/predictions/box-format.js';
import { cocoResultSchema } from '../coco/result.js';
import { candidateSchema } from '../run/candidate.js';
import { imageRunSchema } from '../run/images.js';

/** The run behind detections: the candidate, the recognised form of its outputs, and all that decides a detection. */
export const detectorRunSchema = z.object({
  candidate: candidateSchema,
  head: z.object({
    kind: z.string(),
    scores: z.string(),
    /** Whether overlapping boxes were suppressed. */
    needsNms: z.boolean(),
    /** Names of the outputs that have scores and boxes. */
    outputs: z.object({ scores: z.string(), boxes: z.string() }),
    /** Of a head with masks, which are not scored: the output of their prototypes, and the axis of the other on which the weights are. */
    masks: z.object({ prototypes: z.string(), axis: z.literal([1, 2]) }).optional(),
    /** The meaning of the four numbers of a box; `distances` are from its anchor. */
    boxes: z.object({
      layout: z.enum([...boxLayouts, 'distances']),
      scale: z.enum(boxScales),
      /** Forms that the values do not exclude either: the usual one of the head was taken. */
      alsoFits: z.array(z.string()),
      /** So many boxes decided, and so many of them do not fit. */
      count: z.int(),
      misfits: z.int(),
    }),
    /** The facts by which it was recognised. */
    reason: z.string(),
  }),
  labels: z.object({ count: z.number(), from: z.string() }),
  settings: z.object({
    preprocess: z.string(),
    /** Width and height of the network's input. */
    imgsz: z.tuple([z.number(), z.number()]),
    conf: z.number(),
    iou: z.number(),
    maxDet: z.number(),
    preNmsTopk: z.number(),
    agnosticNms: z.boolean(),
    multiLabel: z.boolean(),
  }),
  warmupRuns: z.number(),
  skipLatency: z.number(),
  ...imageRunSchema.shape,
});
export interface DetectorRun extends z.infer<typeof detectorRunSchema> {}

/** The result of `trtforge eval detector`: the scores of `eval coco`, and the run behind them. */
export const detectorResultSchema = cocoResultSchema.omit({ detections: true }).extend({
  schema: z.literal('trtforge.eval-detector/1'),
  imagesDir: z.string(),
  run: detectorRunSchema,
  /** The folder with metrics.json and detections.json; null: none was requested. */
  output: z.string().nullable(),
});
export interface DetectorResult extends z.infer<typeof detectorResultSchema> {}
