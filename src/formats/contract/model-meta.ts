import { z } from 'zod';
import { readText } from '../../base/files/files.js';
import { parseJson } from '../../base/files/json.js';
import { faultText } from '../../base/text/schema-error.js';
import { didYouMean } from '../../base/text/suggest-name.js';
import { TrtforgeError } from '../../errors.js';
import { type FirstAndRest, firstAndRestOf } from './contract.js';

/** Real files are some hundred KiB, most of it the labels. */
const LARGEST_META = 16 << 20;

const count = z.int().nonnegative().nullish();
const words = z.custom<readonly string[]>(
  (value) => Array.isArray(value) && value.every((word) => typeof word === 'string'),
  'is not a list of texts',
);

/** One number for every chunk, or that of the first and that of the rest. */
const frames = z
  .union([z.int().nonnegative(), z.tuple([z.int().nonnegative(), z.int().nonnegative()])])
  .transform(firstAndRestOf);
const someFrames = frames.refine(({ first, rest }) => first > 0 && rest > 0, 'is not a number of frames');

/** NeMo's `streaming_cfg` of a cache-aware encoder. */
const streamingSchema = z.looseObject({
  chunk_size: someFrames,
  shift_size: someFrames,
  pre_encode_cache_size: frames.default({ first: 0, rest: 0 }),
  sampling_frames: frames.default({ first: 1, rest: 1 }),
});

/** `model_meta.json` as exporters write it: any field may be missing or null, and there may be more of them. */
const metaSchema = z.looseObject({
  model_name: z.string().nullish(),
  sample_rate: count,
  labels: words.nullish(),
  blank_id: count,
  tokenizer_vocab_size: count,
  joint_vocab_size: count,
  duration_values: z.array(z.int().nonnegative()).nullish(),
  torch_version: z.string().nullish(),
  tensor_layout_contract: z.record(z.string(), z.unknown()).nullish(),
  features: z.looseObject({ type: z.string().nullish(), n_mels: count }).nullish(),
  streaming: streamingSchema.nullish(),
});

/** The chunks of an utterance's frames for a streaming encoder. */
export interface UtteranceChunks {
  /** Frames of a chunk that no chunk before it began with. */
  readonly chunk: FirstAndRest;
  /** Frames from the begin of a chunk to that of the next. */
  readonly shift: FirstAndRest;
  /** Frames before the chunk that go in front of it. */
  readonly before: FirstAndRest;
  /** Fewest frames that are worth a chunk: what is left with fewer at the end is not fed. */
  readonly fewest: FirstAndRest;
}

/** The content of a meta file; null where the file leaves it open. */
export interface BundleMeta {
  readonly path: string;
  readonly modelName: string | null;
  /** Mel bins of the features. */
  readonly mels: number | null;
  readonly sampleRate: number | null;
  /** The settings of the features, by the exporter's names. */
  readonly features: Readonly<Record<string, unknown>>;
  /** A label for each token. */
  readonly labels: readonly string[] | null;
  /** Tokens without the blank. */
  readonly vocabulary: number | null;
  /** As stated, or where a label reads like the blank. */
  readonly blankId: number | null;
  /** Where labels read like the blank; empty where none does. */
  readonly blankLabels: readonly number[];
  /** Fields about decoding that the file does not state. */
  readonly unstated: readonly string[];
  /** Frames that a decoder may advance after a token, one per duration logit; null for none known. */
  readonly durations: readonly number[] | null;
  /** Logits of the joint network: tokens, blank, durations. */
  readonly jointWidth: number | null;
  /** By the field of `tensor_layout_contract`: `encoder_input` to the tensors it names. */
  readonly layouts: ReadonlyMap<string, readonly Layout[]>;
  readonly streaming: UtteranceChunks | null;
  /** Contradictions within the file, found without touching any engine. */
  readonly warnings: readonly string[];
}

/** Spellings of the blank among the labels in tokenizers and recipes. */
const BLANK = /^(?:<(?:blk|blank|b|eps)>|\[(?:blk|blank)\]|∅|ε)$/i;

/** Reads a `model_meta.json`. Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_BUNDLE_META_INVALID. */
export function readMeta(path: string): BundleMeta {
  return parseMeta(readText(path, LARGEST_META, 'TF_BUNDLE_META_INVALID'), path);
}

/** The same from text; `path` is for messages. */
export function parseMeta(text: string, path: string): BundleMeta {
  const json = parseJson(text, LARGEST_META, (why, cause) => invalid(path, why, cause));
  const parsed = metaSchema.safeParse(json);
  if (!parsed.success) throw invalid(path, faultText(parsed.error));
  const { data } = parsed;
  const labels = data.labels ?? null;
  const blankLabels = (labels ?? []).flatMap((label, at) => (BLANK.test(label.trim()) ? [at] : []));
  const vocabulary =
    data.tokenizer_vocab_size ?? (labels === null ? null : labels.length - Math.min(1, blankLabels.length));
  const durations = data.duration_values ?? null;
  const { streaming } = data;
  return {
    path,
    modelName: data.model_name ?? null,
    mels: data.features?.n_mels ?? null,
    sampleRate: data.sample_rate ?? null,
    features: data.features ?? {},
    labels,
    vocabulary,
    blankId: data.blank_id ?? blankLabels[0] ?? null,
    blankLabels,
    unstated: (['blank_id', 'tokenizer_vocab_size', 'duration_values'] as const).filter(
      (field) => (data[field] ?? null) === null,
    ),
    durations,
    jointWidth:
      data.joint_vocab_size ??
      (vocabulary === null || durations === null ? null : vocabulary + 1 + durations.length),
    layouts: layoutsOf(data.tensor_layout_contract ?? {}),
    streaming: streaming
      ? {
          chunk: streaming.chunk_size,
          shift: streaming.shift_size,
          before: streaming.pre_encode_cache_size,
          fewest: streaming.sampling_frames,
        }
      : null,
    warnings: [
      ...misspelt(data, metaSchema, ''),
      ...misspelt(data.features ?? {}, metaSchema.shape.features.unwrap().unwrap(), 'features.'),
      ...labelWarnings(labels?.length ?? null, data.tokenizer_vocab_size ?? null),
    ],
  };
}

/** The layout of the logits of a joint network: first those of tokens and the blank, then one for each duration. */
export interface LogitFacts {
  readonly tokenLogits: number;
  readonly blankId: number;
  /** Empty for a plain transducer. */
  readonly durations: readonly number[];
}

/** The same of a network of `width` logits (null: not known), or why it cannot be decoded. */
export function logitsOf(meta: BundleMeta, width: number | string | null | undefined): LogitFacts | string {
  const logits = typeof width === 'number' ? width : meta.jointWidth;
  if (logits === null) return 'neither the meta file nor the joint network states the number of logits';
  // Logits beyond the vocabulary and its blank are durations 0, 1, 2, …
  const beyond = meta.vocabulary === null ? 0 : Math.max(0, logits - meta.vocabulary - 1);
  const durations = meta.durations ?? Array.from({ length: beyond }, (_, duration) => duration);
  const tokenLogits = logits - durations.length;
  const blankId = meta.blankId ?? tokenLogits - 1;
  if (blankId >= tokenLogits) return `its blank ${blankId} is outside the ${tokenLogits} token logits`;
  return { tokenLogits, blankId, durations };
}

/** Fields that are not read and have nearly the name of one that is, and that the file lacks. */
function misspelt(stated: object, { shape }: z.ZodObject, within: string): readonly string[] {
  const missing = Object.keys(shape).filter((key) => !Object.keys(stated).includes(key));
  return Object.keys(stated).flatMap((key) => {
    const meant = key in shape ? '' : didYouMean(key, missing);
    return meant === '' ? [] : [`The field "${within}${key}" of the meta file is not read.${meant}`];
  });
}

/** Labels turn ids into text and are in no engine; some exporters count the blank among them. */
function labelWarnings(labels: number | null, vocabulary: number | null): readonly string[] {
  if (labels === null || vocabulary === null || labels === vocabulary || labels === vocabulary + 1) return [];
  return [`The file lists ${labels} labels and states the tokenizer_vocab_size ${vocabulary}.`];
}

function layoutsOf(contract: Readonly<Record<string, unknown>>): ReadonlyMap<string, readonly Layout[]> {
  return new Map(
    Object.entries(contract).flatMap(([field, layout]) => {
      if (layout === null) return [];
      // Lists and objects are the same contract with quotes.
      const text = typeof layout === 'string' ? layout : JSON.stringify(layout).replaceAll('"', '');
      return [[field, parseLayouts(text)] as const];
    }),
  );
}

const invalid = (path: string, why: string, cause?: unknown) =>
  new TrtforgeError('TF_BUNDLE_META_INVALID', `${path} is not the meta file of a bundle: ${why}.`, { cause });

/** One tensor of a layout contract: `audio_signal: [B, n_mels, T]`. */
export interface Layout {
  /** null where the text has only dimensions. */
  readonly name: string | null;
  /** As written: symbols, numbers, sums (`vocab + 1 + durations`). */
  readonly dims: readonly string[];
}

/** Longer texts are prose. */
const LONGEST = 10_000;

/**
 * Reads the free text in which exporters describe tensors: every `[…]`, with the word before it as the tensor's name. Best effort: what is not
 * understood is skipped: the text is not binding.
 */
export function parseLayouts(text: string): readonly Layout[] {
  const found = text
    .slice(0, LONGEST)
    .matchAll(/(?:([A-Za-z_][\w./-]{0,200})\s{0,9}[:=]?\s{0,9})?\[([^[\]]{0,500})\]/g);
  return [...found].map(([, name, dims = '']) => ({
    name: name ?? null,
    dims: dims.trim() === '' ? [] : dims.split(',').map((dim) => dim.trim()),
  }));
}

/** The role of an axis, by its name. */
export type AxisRole = 'batch' | 'time' | 'tokens';

/** `B` and `batch` are the batch; `T`, `T_out` and `time` are time; `U` and `token_len` are tokens. undefined for any other word. */
export function roleOfAxisName(word: string): AxisRole | undefined {
  if (/^(?:b|n|bs|batch(?:_?size)?)$/i.test(word)) return 'batch';
  if (/^(?:t|t_\w+|time\w*|frames?|n_frames|t_len|seq(?:_len)?|.*_time)$/i.test(word)) return 'time';
  if (/^(?:u|u_\w+|tokens?|token_len|target_len(?:gth)?|labels?_len)$/i.test(word)) return 'tokens';
  return undefined;
}

/** Words of a layout that a model names too, on another axis. Only what either side names once is compared: `B` and `batch` are one name. */
export function movedAxes(
  dims: readonly string[],
  shape: readonly (number | string | null)[],
): readonly string[] {
  const nameOf = (word: number | string | null): string | null =>
    typeof word !== 'string' || /^\d+$/.test(word) ? null : (roleOfAxisName(word) ?? word.toLowerCase());
  const [layout, model] = [dims.map(nameOf), shape.map(nameOf)];
  return dims.filter((_, axis) => {
    const name = layout[axis] ?? null;
    const isOnce = [layout, model].every((names) => names.filter((each) => each === name).length === 1);
    return name !== null && isOnce && model.indexOf(name) !== axis;
  });
}
