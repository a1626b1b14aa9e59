import * as is from '../../base/options/kinds.js';
import { optional } from '../../base/options/option.js';

/** The options for running networks over images. */
export const imageRunOptions = {
  imgsz: optional(is.whole(16, 8192), {
    flags: '--imgsz <pixels>',
    describe: 'width and height where the model leaves them open (default: those of --preprocess)',
  }),
  warmupRuns: optional(is.whole(0, 10_000), {
    flags: '--warmup-runs <n>',
    describe: 'untimed runs of the first image before the others',
    default: 1,
  }),
  skipLatency: optional(is.whole(0), {
    flags: '--skip-latency <n>',
    describe: 'leave so many of the first times out of the latency',
    default: 0,
  }),
};

/** The options that decide detections besides the model and its data. */
export const detectionOptions = {
  labels: optional(is.text, {
    flags: '--labels <file>',
    describe:
      'names of the classes: one a line, or YAML with "names" (default: the metadata of the ONNX model)',
  }),
  imageIds: optional(is.text, {
    flags: '--image-ids <file>',
    describe: 'run only these images: one id a line, # begins a comment',
  }),
  maxImages: optional(is.whole(1), {
    flags: '--max-images <n>',
    describe: 'run only so many images, those of the lowest ids (default: all)',
  }),
  allowMissing: optional(is.whole(0), {
    flags: '--allow-missing <n>',
    describe:
      'so many images may have no file, or one that cannot be read; what is on them counts as not found',
    default: 0,
  }),
  conf: optional(is.decimal(0, 1), {
    flags: '--conf <score>',
    describe: 'detections of this score or less are dropped',
    default: 0.001,
  }),
  iou: optional(is.decimal(0, 1), {
    flags: '--iou <overlap>',
    describe: 'of two boxes of a class that overlap more, the lower score goes',
    default: 0.7,
  }),
  maxDet: optional(is.whole(1, 100_000), {
    flags: '--max-det <n>',
    describe: 'most detections of an image',
    default: 300,
  }),
  preNmsTopk: optional(is.whole(1, 1_000_000), {
    flags: '--pre-nms-topk <n>',
    describe: 'most candidates of an image that are compared with one another',
    default: 30_000,
  }),
  agnosticNms: optional(is.flag, {
    flags: '--agnostic-nms',
    describe: 'boxes of different classes suppress one another, too',
  }),
  multiLabel: optional(is.flag, {
    flags: '--multi-label',
    describe:
      "each class of a box above --conf counts, not its best class alone: the rule of Ultralytics' val",
  }),
};

/** The options in which two embedding networks may differ. */
export const embeddingOptions = {
  maxImages: optional(is.whole(1), {
    flags: '--max-images <n>',
    describe: 'run only so many images, the first by name (default: all)',
  }),
  minMeanCosine: optional(is.decimal(-1, 1), {
    flags: '--min-mean-cosine <value>',
    describe: 'the mean cosine similarity must not be lower',
    default: 0.995,
  }),
  minCosine: optional(is.decimal(-1, 1), {
    flags: '--min-cosine <value>',
    describe: 'no cosine similarity may be lower',
    default: 0.99,
  }),
  maxMeanL2: optional(is.decimal(0, 2), {
    flags: '--max-mean-l2 <value>',
    describe: 'the mean distance of vectors of length 1 must not be higher',
    default: 0.1,
  }),
};

/** Number of entries that may lack a partner; each verb states what becomes of them. */
export const { allowMissing } = detectionOptions;
