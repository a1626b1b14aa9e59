import type { OpenContext } from '../../engines/runtime/back-end.js';
import type { Recogniser } from './recogniser.js';
import type { Metric } from './task.js';

/** The methods that make texts comparable, by name. */
export const textNormalizers = {
  none: 'words between spaces, as they are',
  seed: 'upper case, punctuation removed',
  'whisper-en': "Whisper's English normaliser",
};
export type NormalizerId = keyof typeof textNormalizers;

/** The metric of a task over data of its own. */
export interface Scorer extends Omit<Metric, 'value'> {
  /** `coco`, `classify`, `wer`. */
  readonly task: string;
  /** SHA-256 over data and settings. */
  digest(): Promise<string>;
  /** The metric of a model; null where nothing was scored. Throws what the evaluation throws. */
  score(model: string): Promise<number | null>;
}

export interface ScorerRequest {
  readonly model: string;
  /** COCO instances, a TSV of images and labels, or a manifest of utterances. */
  readonly data: string;
  readonly imagesDir?: string | undefined;
  /** Default: as the passport of an engine states, else `yolo` for detectors, `imagenet` for classifiers. */
  readonly preprocess?: string | undefined;
  readonly imgsz?: number | undefined;
  readonly maxImages?: number | undefined;
  readonly labels?: string | undefined;
  readonly audioDir?: string | undefined;
  readonly normalizer: string;
  /** The model_meta.json of the bundle that the model is part of: for words. */
  readonly bundle?: string | undefined;
}

/** The metric of the task that the data are for. Throws TF_USAGE for images without a folder, and for words without the bundle or with another one. */
export type ScorerOf = (
  request: ScorerRequest,
  recognisers: readonly Recogniser[],
  context: OpenContext,
) => Scorer;
