import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../base/options/option.js';
import { type OpenOptions, openOptions } from '../../engines/runtime/back-end.js';
import { imagesOption } from '../../quality/tasks/options.js';

/** The options for running networks over images. */
export const imageRunOptions = {
  imgsz: optional(is.whole(16, 8192), {
    flags: '--imgsz <pixels>',
    describe: 'width and height where the model leaves them open (default: those of --preprocess)',
  }),
  warmupRuns: needed(is.whole(0, 10_000), {
    flags: '--warmup-runs <n>',
    describe: 'untimed runs of the first image before the others',
    default: 1,
  }),
  skipLatency: needed(is.whole(0), {
    flags: '--skip-latency <n>',
    describe: 'leave this many of the first times out of the latency',
    default: 0,
  }),
};

/** The request of every evaluation over images. */
export const imageRequestOptions = {
  imagesDir: needed(is.text, { ...imagesOption, required: '--images FOLDER' }),
  /** The preparation of images, by its name. */
  preprocess: needed(is.text),
  ...imageRunOptions,
  /** Width and height of the input where the model leaves them open. */
  imgsz: needed(is.whole(16, 8192)),
  open: needed(is.object<OpenOptions>(openOptions)),
};

export interface ImageRequest extends OptionsOf<typeof imageRequestOptions> {}

/** A network with names of its classes. */
export const labelledOptions = {
  /** An engine or an ONNX model. */
  model: needed(is.text),
  /** The model whose metadata name the classes, too; default `model`. An engine has none. */
  namedBy: optional(is.text),
  /** A file with the names of the classes: one a line, or YAML. */
  labels: optional(is.text, {
    flags: '--labels <file>',
    describe: 'names of the classes: one a line, or YAML with "names"',
  }),
};

export type Labelled = OptionsOf<typeof labelledOptions>;

/** The options that decide detections besides the model and its data. */
export const detectionOptions = {
  /** A file with the names of the classes; default: the metadata of the model. */
  labels: optional(is.text, {
    flags: '--labels <file>',
    describe:
      'names of the classes: one a line, or YAML with "names" (default: the metadata of the ONNX model)',
  }),
  /** A file with the ids of the images to run, one a line. */
  imageIds: optional(is.text, {
    flags: '--image-ids <file>',
    describe: 'run only these images: one id a line, # begins a comment',
  }),
  /** So many images of the lowest ids. */
  maxImages: optional(is.whole(1), {
    flags: '--max-images <n>',
    describe: 'run only this many images, those of the lowest ids (default: all)',
  }),
  /** Up to this many images may be missing or unreadable; default none. */
  allowMissing: optional(is.whole(0), {
    flags: '--allow-missing <n>',
    describe:
      'this many images may have no file, or one that cannot be read; what is on them counts as not found',
    default: 0,
  }),
  conf: needed(is.decimal(0, 1), {
    flags: '--conf <score>',
    describe: 'detections of this score or less are dropped',
    default: 0.001,
  }),
  iou: needed(is.decimal(0, 1), {
    flags: '--iou <overlap>',
    describe: 'of two boxes of a class that overlap more, the lower score goes',
    default: 0.7,
  }),
  maxDet: needed(is.whole(1, 100_000), {
    flags: '--max-det <n>',
    describe: 'most detections of an image',
    default: 300,
  }),
  preNmsTopk: needed(is.whole(1, 1_000_000), {
    flags: '--pre-nms-topk <n>',
    describe: 'most candidates of an image that are compared with one another',
    default: 30_000,
  }),
  agnosticNms: needed(is.flag, {
    flags: '--agnostic-nms',
    describe: 'boxes of different classes suppress one another, too',
  }),
  multiLabel: needed(is.flag, {
    flags: '--multi-label',
    describe:
      "each class of a box above --conf counts, not its best class alone: the rule of Ultralytics' val",
  }),
};

/** The options in which two embedding networks may differ. */
export const embeddingOptions = {
  maxImages: optional(is.whole(1), {
    flags: '--max-images <n>',
    describe: 'run only this many images, the first by name (default: all)',
  }),
  /** Limits; the first and the last are one for vectors of length 1, both are kept because users state either. */
  minMeanCosine: needed(is.decimal(-1, 1), {
    flags: '--min-mean-cosine <value>',
    describe: 'the mean cosine similarity must not be lower',
    default: 0.995,
  }),
  minCosine: needed(is.decimal(-1, 1), {
    flags: '--min-cosine <value>',
    describe: 'no cosine similarity may be lower',
    default: 0.99,
  }),
  maxMeanL2: needed(is.decimal(0, 2), {
    flags: '--max-mean-l2 <value>',
    describe: 'the mean distance of vectors of length 1 must not be higher',
    default: 0.1,
  }),
};

/** Number of entries that may lack a partner; each verb states what becomes of them. */
export const { allowMissing } = detectionOptions;
