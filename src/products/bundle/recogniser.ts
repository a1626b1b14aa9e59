import { basename, dirname, join } from 'node:path';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { changedModel } from '../../engines/plan/context-model.js';
import { passportHere } from '../../engines/run/run-file.js';
import type { OpenedSession } from '../../engines/runtime/back-end.js';
import { openSession, openTogether } from '../../engines/runtime/open-session.js';
import type { Session } from '../../engines/runtime/session.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import type { FirstAndRest } from '../../formats/contract/contract.js';
import { type BundleMeta, readMeta, type UtteranceChunks } from '../../formats/contract/model-meta.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import type { RecogniserOptions } from '../../quality/tasks/options.js';
import type { OpenRecogniser, Recogniser, RecogniserFacts, Transcript } from '../../quality/tasks/task.js';
import { checkBundle, featuresOf, rejectMismatches } from './check-bundle.js';
import { type Component, locateComponents, readComponent, usualComponents } from './component.js';
import { openDecoder, smallestShapes } from './open-decoder.js';
import { encode, encoderStates, FRAME_AXIS, window } from './transducer.js';
import { GreedyDecoder, type TokenDecoder } from './transducer-decoder.js';

/** Axis of the mel bins in features. */
const BIN_AXIS = 1;

/** A transducer bundle, by its `model_meta.json`: encoder, predictor and joint network, decoded greedily as NeMo does. */
export const recogniser: Recogniser = {
  id: 'bundle',
  accepts: (path) => /meta\.json$/i.test(basename(path)),
  open: openBundle,
};

/** Opens a transducer bundle for a program, by its `model_meta.json`; `features` of `transcribe` are [1, mel bins, frames] in float32. Throws what `recogniser.open` throws. */
export const openRecogniser = (
  meta: string,
  options: RecogniserOptions = {},
  context: WorkContext = {},
): Promise<OpenRecogniser> => openBundle(meta, options, context);

/**
 * Opens the models beside a meta file, or engines built from them. Throws TF_BUNDLE_META_INVALID, TF_BUNDLE_COMPONENT_MISSING, TF_BUNDLE_MISMATCH for models
 * that contradict each other or cannot be decoded, and what opening sessions throws.
 */
async function openBundle(
  path: string,
  { engines, ...options }: RecogniserOptions,
  context: WorkContext,
): Promise<OpenRecogniser> {
  const meta = readMeta(path);
  const components = locateComponents(path, dirname(path), usualComponents).map(readComponent);
  rejectMismatches(meta, checkBundle(meta, components));
  const [encoder] = components;
  if (encoder === undefined) throw new TrtforgeError('TF_INTERNAL', `${path} has no encoder.`);
  const fileOf = ({ name, onnx }: Component) =>
    engines === undefined ? onnx : join(engines, `${name}.engine`);
  if (engines !== undefined)
    for (const component of components) await assertBuiltFrom(component.onnx, fileOf(component), context);
  // One step is too little work to share among threads.
  const single = engines === undefined ? { threads: 1, ...options } : options;
  const [decoder, session] = await openTogether<[TokenDecoder, OpenedSession]>([
    openDecoder(path, context, (each) => openSession(fileOf(each), single, context)),
    openSession(fileOf(encoder), options, context),
  ]);
  try {
    assertScheduled(session, meta);
    assertLabelled(decoder, meta);
    const { blankId, durations } = decoder.facts;
    const facts: RecogniserFacts = {
      features: {
        count: meta.mels ?? rowsOf(encoder),
        sampleRate: meta.sampleRate,
        settings: meta.features,
      },
      vocabulary: meta.labels,
      blankId,
      durations,
      streaming: encoderStates(session).length === 0 ? null : meta.streaming,
      files: components.map(fileOf),
      backend: session.backend,
    };
    return new OpenBundle(facts, session, decoder, context);
  } catch (error) {
    await Promise.all([session.close(), decoder.close()]);
    throw error;
  }
}

/** Throws TF_BUNDLE_MISMATCH for an engine of another model, signed or not: every engine of the bundle has a model here. */
async function assertBuiltFrom(onnx: string, engine: string, context: WorkContext): Promise<void> {
  const passport = passportHere(engine);
  const changed = passport && (await changedModel(engine, passport, context, onnx));
  if (changed !== null)
    throw new TrtforgeError('TF_BUNDLE_MISMATCH', changed, {
      remedy: 'Build the bundle again: trtforge bundle build META --outdir FOLDER',
    });
}

/** Throws TF_BUNDLE_MISMATCH for an encoder with states where the meta file does not state how to cut an utterance for it. */
function assertScheduled(encoder: Session, { path, streaming }: BundleMeta): void {
  const states = encoderStates(encoder).map(({ name }) => name);
  if (states.length === 0 || streaming !== null) return;
  throw new TrtforgeError(
    'TF_BUNDLE_MISMATCH',
    `The encoder has states (${states.join(', ')}), and ${path} does not state its chunks.`,
    {
      remedy:
        'Add to the meta file: "streaming": {"chunk_size": [41, 48], "shift_size": [17, 24], "pre_encode_cache_size": [0, 9]}, with the numbers of the encoder.',
    },
  );
}

/** Throws TF_BUNDLE_MISMATCH for labels that are not one for each token, with the blank among them or, where it is the last, without. */
function assertLabelled(
  { facts: { tokenLogits, blankId } }: TokenDecoder,
  { path, labels }: BundleMeta,
): void {
  if (labels === null || labels.length === tokenLogits) return;
  if (labels.length === tokenLogits - 1 && blankId === tokenLogits - 1) return;
  throw new TrtforgeError(
    'TF_BUNDLE_MISMATCH',
    `${path} has ${labels.length} labels for a joint network of ${tokenLogits - 1} tokens and the blank ${blankId}.`,
    { remedy: 'Use the labels of the tokenizer that the model was trained with.' },
  );
}

function rowsOf(encoder: Component): number | null {
  const rows = featuresOf(encoder)?.shape?.[BIN_AXIS];
  return typeof rows === 'number' ? rows : null;
}

class OpenBundle implements OpenRecogniser {
  readonly facts: RecogniserFacts;
  readonly #encoder: Session;
  readonly #decoder: TokenDecoder;
  readonly #signal: AbortSignal | undefined;

  constructor(facts: RecogniserFacts, encoder: Session, decoder: TokenDecoder, { signal }: WorkContext) {
    this.facts = facts;
    this.#encoder = encoder;
    this.#decoder = decoder;
    this.#signal = signal;
  }

  async transcribe(features: Tensor): Promise<Transcript> {
    const { features: rows, streaming, vocabulary, blankId } = this.facts;
    const [batch, count, frames = 0] = features.shape;
    if (features.shape.length !== 3 || batch !== 1 || (rows.count !== null && count !== rows.count))
      throw new TrtforgeError(
        'TF_SESSION_INPUT',
        `The features are [${features.shape.join(', ')}]; they must be [1, ${rows.count ?? 'rows'}, frames].`,
      );
    const { facts, models } = this.#decoder;
    const smallest = smallestShapes(this.#encoder);
    const decoder = await GreedyDecoder.begin(models, facts);
    const tokens: number[] = [];
    const timings = { encodeMs: 0, decodeMs: 0, chunks: 0 };
    let states: NamedTensors = new Map();
    for (const { from, size } of streaming === null ? whole(frames) : chunksOf(frames, streaming)) {
      throwIfCancelled(this.#signal, 'transcribing');
      const started = performance.now();
      const piece = window(features, FRAME_AXIS, from, size);
      const encoded = await encode(this.#encoder, piece, size, facts.timeAxis, { states, smallest });
      states = encoded.states;
      const ready = performance.now();
      const decisions = await decoder.through(encoded);
      decoder.leave(encoded.steps);
      tokens.push(...decisions.flatMap(({ token }) => (token === blankId ? [] : [token])));
      timings.encodeMs += ready - started;
      timings.decodeMs += performance.now() - ready;
      timings.chunks++;
    }
    return { tokens, text: vocabulary === null ? null : textOf(tokens, vocabulary), timings };
  }

  async close(): Promise<void> {
    await this.#encoder.close();
    await this.#decoder.close();
  }
}

/** A piece of the features; frames before their begin are zeros. */
interface Chunk {
  readonly from: number;
  readonly size: number;
}

const whole = (frames: number): readonly Chunk[] => (frames === 0 ? [] : [{ from: 0, size: frames }]);

/**
 * The chunks of an utterance, as NeMo cuts it (`CacheAwareStreamingAudioBuffer`): each is `shift` after the one before and has earlier frames in front; a rest
 * that is too short for a step is not fed.
 */
function* chunksOf(frames: number, { chunk, shift, before, fewest }: UtteranceChunks): Generator<Chunk> {
  let place: keyof FirstAndRest = 'first';
  for (let begin = 0; begin < frames; begin += shift[place], place = 'rest') {
    const own = Math.min(chunk[place], frames - begin);
    if (own < fewest[place]) return;
    yield { from: begin - before[place], size: before[place] + own };
  }
}

/** SentencePiece's way: `▁` begins a word; pieces follow one another without a space. */
const textOf = (tokens: readonly number[], vocabulary: readonly string[]): string =>
  tokens
    .map((token) => vocabulary[token] ?? '')
    .join('')
    .replaceAll('▁', ' ')
    .trim();
