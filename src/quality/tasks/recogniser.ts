import type { OpenContext, OpenOptions } from '../../engines/runtime/back-end.js';
import type { UtteranceChunks } from '../../formats/contract/model-meta.js';
import type { Tensor } from '../../formats/tensor/tensor.js';

export interface RecogniserFacts {
  /** The parameters of the features, as far as they are stated. */
  readonly features: {
    /** Rows of the features: mel bins. */
    readonly count: number | null;
    readonly sampleRate: number | null;
    /** By the names of the exporter: `n_fft`, `hop_length`, `normalize`, … */
    readonly settings: Readonly<Record<string, unknown>>;
  };
  /** A label for each token id; null where there is no list. */
  readonly vocabulary: readonly string[] | null;
  readonly blankId: number;
  /** Frames of encoder output that each duration logit stands for; empty for a plain transducer. */
  readonly durations: readonly number[];
  /** null: the encoder takes whole utterances. */
  readonly streaming: UtteranceChunks | null;
  /** The files that are open, the encoder first. */
  readonly files: readonly string[];
  /** The back end that runs the encoder, for reports. */
  readonly backend: string;
}

export interface Transcript {
  /** Ids without blanks. */
  readonly tokens: readonly number[];
  /** null without a vocabulary. */
  readonly text: string | null;
  readonly timings: { readonly encodeMs: number; readonly decodeMs: number; readonly chunks: number };
}

/** Models that are open and turn features into tokens. */
export interface OpenRecogniser {
  readonly facts: RecogniserFacts;
  /** Takes the features of one utterance, [1, rows, frames]. Throws TF_SESSION_INPUT for others, TF_CANCELLED, and what running throws. */
  transcribe(features: Tensor): Promise<Transcript>;
  close(): Promise<void>;
}

export interface RecogniserOptions extends OpenOptions {
  /** The folder of built engines, `NAME.engine`; default: the models are run. */
  readonly engines?: string;
}

/** Something that opens models which turn speech features into tokens; products bring theirs (`Product.recognisers`). */
export interface Recogniser {
  readonly id: string;
  /** Whether a path describes such models, by its name. */
  accepts(path: string): boolean;
  open(path: string, options: RecogniserOptions, context: OpenContext): Promise<OpenRecogniser>;
}
