import { createHash } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson, sha256 } from '../../base/files/digest.js';
import type { OptionsOf } from '../../base/options/option.js';
import { faultText } from '../../base/text/schema-error.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import type { UtteranceChunks } from '../../formats/contract/model-meta.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import type { outcomeSchema } from '../verify/result.js';
import type { RecogniserOptions, scorerOptions } from './options.js';

/** One figure of a task; `value` is null where nothing was scored. */
export const metricSchema = z.object({
  name: z.string(),
  value: z.number().nullable(),
  /** `share` from 0 to 1, or what is counted. */
  unit: z.string(),
  higherIsBetter: z.boolean(),
});
export type Metric = z.infer<typeof metricSchema>;

/** One set of inputs with what is true of it. Its tensors may be overwritten once it has been taken, which may be after the next one was asked for. */
export interface Sample {
  /** Its place in the data, from 0: the number of a chunk, of an image. */
  readonly index: number;
  readonly inputs: NamedTensors;
  /** The expected outputs: recorded ones, labels. */
  readonly reference: NamedTensors;
}

/** The part that every task result has, whatever its `details` are. */
export const taskIdentitySchema = z.object({
  /** Id and revision of the kind of task. */
  task: z.string(),
  revision: z.number(),
  samples: z.number(),
  /** SHA-256 over index, inputs and what is scored of the reference, of all samples, in order. */
  dataDigest: z.string(),
  /** SHA-256 over task, revision, settings and data: only metrics with equal keys are compared. */
  comparabilityKey: z.string(),
  metrics: z.array(metricSchema),
});
export type TaskIdentity = z.infer<typeof taskIdentitySchema>;

export interface TaskResult<R = unknown> extends TaskIdentity {
  readonly outcome: z.infer<typeof outcomeSchema>;
  /** In the schema of the kind. */
  readonly details: R;
}

/** Samples go in, one after another with the outputs for them; metrics come out. The caller owns samples and sessions. */
export interface Task<R = unknown> {
  /** Scores the outputs of one sample; null where the candidate returned none, which is counted, not skipped. */
  take(sample: Sample, outputs: NamedTensors | null): Promise<void>;
  result(): TaskResult<R>;
  close(): Promise<void>;
}

/** A kind of task, by what registers it: `tokens`, `argmax`. */
export interface TaskKind<S = unknown, R = unknown> {
  readonly id: string;
  /** Goes up when the same samples and outputs may score differently. */
  readonly revision: number;
  readonly summary: string;
  readonly settings: z.ZodType<S>;
  readonly details: z.ZodType<R>;
  /** Compiled module that exports the kind as `taskKind`: a child process, which takes no functions, imports it. null for the kinds of this room. */
  readonly module: URL | null;
  open(settings: S, context: WorkContext): Promise<Task<R>>;
}

/**
 * Opens a task of one of some kinds. Throws TF_USAGE for an id that none has and for settings that its schema rejects, and what opening the kind throws.
 */
export async function openTask(
  kinds: readonly TaskKind[],
  id: string,
  settings: unknown,
  context: WorkContext,
): Promise<Task> {
  const kind = kinds.find((each) => each.id === id);
  if (kind === undefined)
    throw new TrtforgeError('TF_USAGE', `No kind of task is called ${id}.`, {
      remedy: `Available: ${kinds.map((each) => each.id).join(', ') || 'none'}.`,
      details: { task: id, known: kinds.map((each) => each.id) },
    });
  const parsed = kind.settings.safeParse(settings);
  if (!parsed.success)
    throw new TrtforgeError(
      'TF_USAGE',
      `The settings of the task ${id} are not valid: ${faultText(parsed.error)}.`,
    );
  return kind.open(parsed.data, context);
}

/** The kinds behind `TaskKind.module`, in another process. */
export const loadTaskKinds = (modules: readonly string[]): Promise<readonly TaskKind[]> =>
  Promise.all(modules.map(async (module) => ((await import(module)) as { taskKind: TaskKind }).taskKind));

/** Identity of a score over data whose digest is known. `settings` is what decides the score besides: contents by their digests, no paths. */
export const taskIdentity = (
  { id, revision }: Pick<TaskKind, 'id' | 'revision'>,
  settings: unknown,
  samples: number,
  dataDigest: string,
): Omit<TaskIdentity, 'metrics'> => ({
  task: id,
  revision,
  samples,
  dataDigest,
  comparabilityKey: sha256(canonicalJson({ task: id, revision, settings, dataDigest })),
});

/** Identity of the samples that a task took. */
export class SampleDigest {
  readonly #hash = createHash('sha256');
  #samples = 0;

  /** `scored` names what counts of the reference; default all of it. A stream also records states, far larger than what is scored. */
  take({ index, inputs, reference }: Sample, scored?: readonly string[]): void {
    this.#samples++;
    this.#hash.update(`sample ${index}\n`);
    this.#add('input', inputs);
    const counts = [...reference].filter(([name]) => scored?.includes(name) ?? true);
    this.#add('reference', counts);
  }

  /** As `taskIdentity`, of the samples so far. */
  identity(
    { id, revision }: Pick<TaskKind, 'id' | 'revision'>,
    settings: unknown,
  ): Omit<TaskIdentity, 'metrics'> {
    return taskIdentity({ id, revision }, settings, this.#samples, this.#hash.copy().digest('hex'));
  }

  #add(what: string, tensors: Iterable<readonly [string, Tensor]>): void {
    for (const [name, { dtype, shape, bytes }] of [...tensors].sort(([a], [b]) => (a < b ? -1 : 1))) {
      this.#hash.update(`${what} ${JSON.stringify(name)} ${dtype} ${shape.join('x')}\n`);
      this.#hash.update(bytes);
    }
  }
}

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

/** Something that opens models which turn speech features into tokens; products bring theirs (`Product.recognisers`). */
export interface Recogniser {
  readonly id: string;
  /** Whether a path describes such models, by its name. */
  accepts(path: string): boolean;
  open(path: string, options: RecogniserOptions, context: WorkContext): Promise<OpenRecogniser>;
}

/** The metric of a task over data of its own. */
export interface Scorer extends Omit<Metric, 'value'> {
  /** `coco`, `classify`, `wer`. */
  readonly task: string;
  /** SHA-256 over data and settings. */
  digest(): Promise<string>;
  /** The metric of a model; null where nothing was scored. Throws what the evaluation throws. */
  score(model: string): Promise<number | null>;
}

/** The metric of the task that the data are for. Throws TF_USAGE for images without a folder, and for words without the bundle or with another one. */
export type ScorerOf = (
  request: ScorerRequest,
  recognisers: readonly Recogniser[],
  context: WorkContext,
) => Scorer;

interface ScorerRequest extends OptionsOf<typeof scorerOptions> {
  readonly model: string;
  /** Default: as the passport of an engine states, else `yolo` for detectors, `imagenet` for classifiers. */
  readonly preprocess?: string | undefined;
  readonly imgsz?: number | undefined;
}
