import { dirname, isAbsolute, join } from 'node:path';
import { openFile } from '../../../base/files/byte-source.js';
import { sha256, sha256OfFileInPieces } from '../../../base/files/digest.js';
import { publishFile } from '../../../base/files/publish.js';
import * as is from '../../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../../base/options/option.js';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { TrtforgeError } from '../../../errors.js';
import { inPhase, type WorkContext } from '../../../events.js';
import { isSampleRate, resample } from '../../../formats/audio/audio.js';
import { type FrontEnd, firstFrames, logMel, nemoFrontEnd } from '../../../formats/audio/log-mel.js';
import { readAudio } from '../../../formats/audio/read-audio.js';
import { tensorFrom } from '../../../formats/tensor/tensor.js';
import { type RecogniserOptions, recogniserOptions, speechOptions } from '../../../quality/tasks/options.js';
import type { OpenRecogniser, Recogniser, RecogniserFacts } from '../../../quality/tasks/task.js';
import { latencyOf } from '../run/evaluate.js';
import type { Variant } from '../run/variant.js';
import { readManifest, type Spoken } from '../wer/manifest.js';
import type { Utterance } from '../wer/transcripts.js';
import { scoreUtterances } from '../wer/wer.js';
import type { RecogniserResult } from './result.js';

export const recogniserRequestOptions = {
  /** The description of the models: the `model_meta.json` of a bundle. */
  meta: needed(is.text),
  /** TSV with `utt_id`, `wav_path` and `ref_text`. */
  manifest: needed(is.text, {
    flags: '--manifest <file>',
    describe: 'TSV with utt_id, wav_path and ref_text',
    required: '--manifest FILE',
  }),
  ...speechOptions,
  /** Folder for transcripts.tsv, scores.tsv and metrics.json. */
  output: optional(is.text, {
    flags: '-o, --output <folder>',
    describe: 'transcripts.tsv, scores.tsv and metrics.json',
    writes: true,
  }),
  /** Which variant of a comparison it is, for metrics.json. */
  variant: optional(is.object<Variant>()),
  open: needed(is.object<RecogniserOptions>(recogniserOptions)),
};

export interface EvaluateRecogniserRequest extends OptionsOf<typeof recogniserRequestOptions> {}

/** An utterance and the file of its audio. */
interface Recording extends Spoken {
  readonly path: string;
}

/** An evaluation with its manifest read and checked. */
interface DecidedRecogniser {
  readonly recordings: readonly Recording[];
  readonly kind: Recogniser;
}

/** Reads the manifest and finds every file of it. Throws TF_USAGE where no recogniser takes the meta file, TF_EVAL_DATA (manifest), TF_FILE_NOT_FOUND. */
export function decideRecogniser(
  { meta, manifest, audioDir = dirname(manifest) }: EvaluateRecogniserRequest,
  recognisers: readonly Recogniser[],
): DecidedRecogniser {
  const recordings = readManifest(manifest).map((spoken): Recording => {
    const { audio } = spoken;
    if (audio === null)
      throw new TrtforgeError('TF_EVAL_DATA', `The manifest ${manifest} has no column "wav_path".`);
    const path = isAbsolute(audio) ? audio : join(audioDir, audio);
    openFile(path).close();
    return { ...spoken, path };
  });
  const kind = recognisers.find((each) => each.accepts(meta));
  if (kind !== undefined) return { recordings, kind };
  throw new TrtforgeError('TF_USAGE', `${meta} does not describe a recogniser.`, {
    remedy: 'Pass the model_meta.json of a bundle.',
  });
}

/**
 * Transcribes the audio of a manifest and scores the words. Throws what `decideRecogniser` throws, TF_EVAL_DATA (no list of labels, features that are not log-mel), TF_AUDIO_INVALID, and what running throws.
 */
export async function evaluateRecogniser(
  request: EvaluateRecogniserRequest,
  recognisers: readonly Recogniser[],
  context: WorkContext = {},
): Promise<RecogniserResult> {
  const { meta, manifest, output } = request;
  const { recordings, kind } = decideRecogniser(request, recognisers);
  const recogniser = await kind.open(meta, request.open, context);
  try {
    const frontEnd = frontEndOf(meta, recogniser.facts);
    const { utterances, ...times } = await inPhase('transcribe', context.emit, () =>
      transcribe(recogniser, frontEnd, recordings, context),
    );
    const scored = scoreUtterances(
      manifest,
      output === undefined ? utterances : await withAudio(utterances, recordings),
      request.normalizer ?? 'none',
      output && join(output, 'scores.tsv'),
    );
    const { facts } = recogniser;
    const files = await Promise.all(
      facts.files.map(async (file) => ({ file, sha256: await sha256OfFileInPieces(file) })),
    );
    const result: RecogniserResult = {
      schema: 'trtforge.eval-recogniser/1',
      meta,
      manifest,
      ...scored,
      run: {
        files,
        backend: facts.backend,
        streaming: facts.streaming !== null,
        frontEnd: { ...frontEnd },
        ...times,
      },
      output: output ?? null,
    };
    if (output !== undefined) {
      const rows = utterances.map(({ id, hypothesis }) => `${id}\t${hypothesis ?? ''}\n`);
      publishFile(join(output, 'transcripts.tsv'), rows.join(''));
      const metrics = request.variant === undefined ? result : { ...result, variant: request.variant };
      publishFile(join(output, 'metrics.json'), `${JSON.stringify(metrics, null, 2)}\n`);
    }
    return result;
  } finally {
    await recogniser.close();
  }
}

/** Samples of a transform, a window or a hop; models have up to 2,048. */
const LARGEST_SETTING = 2 ** 16;

/** The front end that the meta file states; what it leaves open is NeMo's for these models. */
function frontEndOf(meta: string, { features, vocabulary }: RecogniserFacts): FrontEnd {
  if (vocabulary === null)
    throw new TrtforgeError('TF_EVAL_DATA', `${meta} has no labels, so tokens cannot become text.`, {
      remedy: 'Add "labels", the text of every token, to it.',
    });
  const { settings } = features;
  // NeMo reads a window of null as none, and fails in its transform.
  const { type, window, normalize } = settings;
  const notComputed = (what: string) =>
    new TrtforgeError('TF_EVAL_DATA', `${meta} has features ${what}, which trtforge does not compute.`, {
      remedy: 'Known: log-mel as NeMo computes it, with a Hann window, over a power of two of samples.',
    });
  if (typeof type === 'string' && !/mel/i.test(type)) throw notComputed(`of type "${type}"`);
  if (window !== undefined && !(typeof window === 'string' && /^hann/i.test(window)))
    throw notComputed(`with the window ${JSON.stringify(window)}`);
  const whole = (name: string, otherwise: number): number => {
    const value = settings[name] ?? otherwise;
    if (typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= LARGEST_SETTING)
      return value;
    throw notComputed(`with ${name} ${JSON.stringify(value)}`);
  };
  const rate = features.sampleRate ?? nemoFrontEnd.rate;
  if (!isSampleRate(rate)) throw notComputed(`of ${rate} samples a second`);
  const fftSize = whole('n_fft', nemoFrontEnd.fftSize);
  if (!Number.isInteger(Math.log2(fftSize))) throw notComputed(`with n_fft ${fftSize}`);
  const size = whole('win_length', Math.min(nemoFrontEnd.window, fftSize));
  if (size > fftSize) throw notComputed(`with win_length ${size} above n_fft ${fftSize}`);
  const { preemph = nemoFrontEnd.preemphasis } = settings;
  if (preemph !== null && typeof preemph !== 'number')
    throw notComputed(`with preemph ${JSON.stringify(preemph)}`);
  return {
    ...nemoFrontEnd,
    rate,
    mels: features.count ?? nemoFrontEnd.mels,
    fftSize,
    window: size,
    hop: whole('hop_length', nemoFrontEnd.hop),
    preemphasis: preemph ?? 0,
    normalize: normalizationOf(normalize, notComputed),
  };
}

/** Without one it is that of NeMo's models; null is none, as in NeMo. */
function normalizationOf(
  normalize: unknown,
  notComputed: (what: string) => TrtforgeError,
): FrontEnd['normalize'] {
  if (normalize === undefined || normalize === 'per_feature') return 'per-feature';
  if (normalize === null || normalize === false || /^(?:na|none)$/i.test(String(normalize))) return 'none';
  throw notComputed(`with normalize ${JSON.stringify(normalize)}`);
}

/** The utterances of these recordings with their files, for scores that name them. */
async function withAudio(utterances: readonly Utterance[], recordings: readonly Recording[]) {
  const heard: Utterance[] = [];
  for (const [at, utterance] of utterances.entries()) {
    const { path } = recordings[at]!;
    heard.push({ ...utterance, audio: { path, sha256: await sha256OfFileInPieces(path) } });
  }
  return heard;
}

async function transcribe(
  recogniser: OpenRecogniser,
  frontEnd: FrontEnd,
  recordings: readonly Recording[],
  { emit, signal }: WorkContext,
) {
  const utterances: Utterance[] = [];
  const times: number[] = [];
  let [audioSeconds, resampled, frontEndMs, encodeMs, decodeMs] = [0, 0, 0, 0, 0];
  const begun = performance.now();
  for (const { id, reference, path } of recordings) {
    throwIfCancelled(signal, 'transcribing');
    const started = performance.now();
    const recorded = await readAudio(path);
    if (recorded.rate !== frontEnd.rate) resampled++;
    const { buffer, byteOffset, byteLength } = recorded.samples;
    const sound = `${recorded.rate} ${sha256(new Uint8Array(buffer, byteOffset, byteLength))}`;
    const { samples } = resample(recorded, frontEnd.rate);
    audioSeconds += recorded.samples.length / recorded.rate;
    const features = logMel(samples, frontEnd);
    const { mels, frames, valid } = features;
    // A stream is fed the frame behind the valid ones too, as NeMo does; whole utterances end with the last valid one.
    const width = recogniser.facts.streaming === null ? valid : frames;
    const kept = firstFrames(features, width);
    frontEndMs += performance.now() - started;
    const { text, timings } = await recogniser.transcribe(tensorFrom('float32', [1, mels, width], kept));
    times.push(timings.encodeMs + timings.decodeMs);
    encodeMs += timings.encodeMs;
    decodeMs += timings.decodeMs;
    utterances.push({ id, reference, hypothesis: text, sound });
    emit?.({ type: 'progress', phase: 'transcribe', done: utterances.length, total: recordings.length });
  }
  const seconds = (performance.now() - begun) / 1000;
  return {
    utterances,
    audioSeconds,
    resampled,
    frontEndMs,
    encodeMs,
    decodeMs,
    latency: latencyOf(times),
    speed: audioSeconds / seconds,
  };
}
