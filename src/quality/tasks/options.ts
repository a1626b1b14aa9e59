import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../base/options/option.js';
import { openOptions } from '../../engines/runtime/back-end.js';

export const recogniserOptions = {
  ...openOptions,
  /** The folder of built engines, `NAME.engine`; default: the models are run. */
  engines: optional(is.text, {
    flags: '--engines <folder>',
    describe: 'run the engines in it, NAME.engine, in place of the models',
  }),
};

export interface RecogniserOptions extends OptionsOf<typeof recogniserOptions> {}

/** The methods that make texts comparable, by name. */
export const textNormalizers = {
  none: 'words between spaces, as they are',
  seed: 'upper case, punctuation removed',
  'whisper-en': "Whisper's English normaliser",
};

export type NormalizerId = keyof typeof textNormalizers;

export const imagesOption = {
  flags: '--images <folder>',
  describe: 'the folder of the images, JPEG, PNG or WebP',
} as const;

/** Options that decide words besides the models and their data. */
export const speechOptions = {
  /** Where relative `wav_path` begin; default the manifest's folder. */
  audioDir: optional(is.text, {
    flags: '--audio-dir <folder>',
    describe: "where relative wav_path begin (default: the manifest's folder)",
  }),
  /** Default `none`. */
  normalizer: optional(is.text, {
    flags: '--normalizer <name>',
    describe: `how texts are made comparable: ${Object.entries(textNormalizers)
      .map(([id, summary]) => `${id} (${summary})`)
      .join(' · ')}`,
    choices: Object.keys(textNormalizers),
    default: 'none',
  }),
};

/** The data that a model is scored on, by the metric of their task. */
export const scorerOptions = {
  /** COCO instances, a TSV of images and labels, or a manifest of utterances. */
  data: needed(is.text, {
    flags: '--data <file>',
    describe:
      'what the task scores: COCO instances (JSON), a TSV of image and label, or a manifest of utterances',
  }),
  imagesDir: optional(is.text, imagesOption),
  maxImages: optional(is.whole(1), {
    flags: '--max-images <n>',
    describe: 'score only this many images, those of the lowest ids or names (default: all)',
  }),
  labels: optional(is.text, {
    flags: '--labels <file>',
    describe: 'names of the classes (default: those of the model)',
  }),
  /** The model_meta.json of the bundle that the model is part of: for words. */
  bundle: optional(is.text, {
    flags: '--bundle <meta>',
    describe: 'utterances: the model_meta.json of the bundle that MODEL is part of',
  }),
  ...speechOptions,
};
