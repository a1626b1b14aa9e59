import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Tensor } from '../../../../src/formats/tensor/tensor.js';
import { bundle } from '../../../../src/products/bundle/product.js';
import {
  type EvaluateRecogniserRequest,
  evaluateRecogniser,
} from '../../../../src/products/evaluation/speech/evaluate-recogniser.js';
import { recogniserResultSchema } from '../../../../src/products/evaluation/speech/result.js';
import { scoreTranscripts } from '../../../../src/products/evaluation/wer/wer.js';
import type { Recogniser, RecogniserFacts } from '../../../../src/quality/tasks/task.js';
import { changeMeta, writeBundle } from '../../../support/bundle.js';
import { describeWith } from '../../../support/needs.js';
import { codeOfWork } from '../../../support/refusal.js';

const sounds = join(import.meta.dirname, '../../../fixtures/audio');
const folder = mkdtempSync(join(tmpdir(), 'trtforge-speech-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MANIFEST = [
  ['utt_id', 'wav_path', 'ref_text'],
  ['a', 'pcm16.wav', 'one two'],
  ['b', 'espeak-rate.wav', 'three'],
]
  .map((row) => `${row.join('\t')}\n`)
  .join('');
const request: EvaluateRecogniserRequest = {
  meta: at('model_meta.json'),
  manifest: at('manifest.tsv'),
  audioDir: sounds,
  normalizer: 'none',
  open: {},
};
beforeAll(() => {
  writeFileSync(at('manifest.tsv'), MANIFEST);
  writeFileSync(at('encoder.onnx'), 'the file that the fake states');
});

const facts: RecogniserFacts = {
  features: { count: 80, sampleRate: 16_000, settings: { n_fft: 512, hop_length: 160, normalize: 'NA' } },
  vocabulary: ['one', 'two'],
  blankId: 2,
  durations: [],
  streaming: null,
  files: [at('encoder.onnx')],
  backend: 'a fake',
};
/** Answers with the texts in turn and keeps the features that it was passed. */
function fake(texts: readonly string[], change: Partial<RecogniserFacts> = {}) {
  const taken: Tensor[] = [];
  const recogniser: Recogniser = {
    id: 'fake',
    accepts: (path) => path.endsWith('meta.json'),
    open: async () => ({
      facts: { ...facts, ...change },
      transcribe: async (features) => {
        taken.push(features);
        return {
          tokens: [],
          text: texts[taken.length - 1]!,
          timings: { encodeMs: 1, decodeMs: 2, chunks: 1 },
        };
      },
      close: async () => {},
    }),
  };
  return { recogniser, taken };
}
const codeOf = (change: Partial<EvaluateRecogniserRequest>, recogniser = fake(['', '']).recogniser) =>
  codeOfWork(evaluateRecogniser({ ...request, ...change }, [recogniser]));

test('features of every utterance go in at the rate of the model, words are scored', async () => {
  const { recogniser, taken } = fake(['one two', 'free']);
  const result = await evaluateRecogniser({ ...request, output: at('run') }, [recogniser]);
  expect(recogniserResultSchema.parse(result)).toEqual(result);
  expect(taken.map(({ shape }) => shape)).toEqual([
    [1, 80, 45],
    [1, 80, 20],
  ]);
  expect(result).toMatchObject({ wer: 1 / 3, substitutions: 1, utterances: 2 });
  expect(result.run).toMatchObject({
    resampled: 1,
    encodeMs: 2,
    decodeMs: 4,
    frontEnd: { normalize: 'none', rate: 16_000 },
    streaming: false,
  });
  expect(result.run.audioSeconds).toBeCloseTo(0.65, 6);
  expect(readFileSync(at('run/transcripts.tsv'), 'utf8')).toBe('a\tone two\nb\tfree\n');
  const scored = scoreTranscripts({ reference: request.manifest, hypothesis: at('run/transcripts.tsv') });
  expect([scored.wer, scored.cer]).toEqual([result.wer, result.cer]);
});

test('other audio is other data, under the same name and with the same words', async () => {
  const keyOf = async (change: (wav: Buffer) => Buffer) => {
    const audioDir = mkdtempSync(at('sounds-'));
    for (const name of ['pcm16.wav', 'espeak-rate.wav'])
      writeFileSync(join(audioDir, name), change(readFileSync(join(sounds, name))));
    const { recogniser } = fake(['one two', 'three']);
    const { dataDigest, comparabilityKey } = await evaluateRecogniser({ ...request, audioDir }, [recogniser]);
    return [dataDigest, comparabilityKey];
  };
  const same = await keyOf((wav) => wav);
  expect(await keyOf((wav) => wav)).toEqual(same);
  const oneSample = await keyOf((wav) => Buffer.concat([wav.subarray(0, -1), Buffer.of(wav.at(-1)! ^ 1)]));
  const otherRate = await keyOf((wav) => {
    const changed = Buffer.from(wav);
    changed.writeUInt32LE(wav.readUInt32LE(24) + 1, 24);
    return changed;
  });
  for (const [at, value] of same.entries())
    expect(new Set([value, oneSample[at], otherRate[at]]).size).toBe(3);
});

test('a stream gets the frame behind the valid ones, too', async () => {
  const both = { first: 1, rest: 1 };
  const { recogniser, taken } = fake(['', ''], {
    streaming: { chunk: both, shift: both, before: both, fewest: both },
  });
  const result = await evaluateRecogniser(request, [recogniser]);
  expect(taken[0]?.shape).toEqual([1, 80, 46]);
  expect(result).toMatchObject({ emptyHypotheses: 2, wer: 1 });
});

test('what cannot be scored has a code', async () => {
  expect(await codeOf({ meta: at('other.json') })).toBe('TF_USAGE');
  expect(await codeOf({}, fake([''], { vocabulary: null }).recogniser)).toBe('TF_EVAL_DATA');
  expect(await codeOf({ audioDir: folder })).toBe('TF_FILE_NOT_FOUND');
  writeFileSync(at('no-audio.tsv'), 'utt_id\tref_text\na\tone\n');
  expect(await codeOf({ manifest: at('no-audio.tsv') })).toBe('TF_EVAL_DATA');
  writeFileSync(at('cut.tsv'), 'utt_id\twav_path\tref_text\na\tcut.wav\tone\n');
  expect(await codeOf({ manifest: at('cut.tsv') })).toBe('TF_AUDIO_INVALID');
});

test.each([
  { type: 'mfcc' },
  { window: 'kaiser' },
  { window: null },
  { window: ['hann'] },
  { n_fft: 400, win_length: 400 },
  { n_fft: 512, win_length: 513 },
  { hop_length: 0 },
  { preemph: 'yes' },
  { normalize: 'all_features' },
  { normalize: { fixed_mean: [0] } },
])('features that are not computed are TF_EVAL_DATA: %j', async (settings) => {
  const features = { ...facts.features, settings };
  expect(await codeOf({}, fake([''], { features }).recogniser)).toBe('TF_EVAL_DATA');
});

test.each([
  [{}, { window: 400, hop: 160, preemphasis: 0.97, normalize: 'per-feature' }],
  [
    { preemph: null, normalize: null, window: 'hann' },
    { preemphasis: 0, normalize: 'none' },
  ],
  [
    { preemph: 0.9, n_fft: 1024, win_length: 551, normalize: 'per_feature' },
    { preemphasis: 0.9, fftSize: 1024, window: 551, normalize: 'per-feature' },
  ],
])('features %j', async (settings, frontEnd) => {
  const features = { ...facts.features, settings };
  const { recogniser } = fake(['', ''], { features });
  expect((await evaluateRecogniser(request, [recogniser])).run.frontEnd).toMatchObject(frontEnd);
});

describeWith('onnxruntime', 'a bundle', () => {
  test('is run end to end, from WAV to words', async () => {
    const meta = await writeBundle(mkdtempSync(at('bundle-')));
    const result = await evaluateRecogniser({ ...request, meta }, (await bundle.recognisers?.()) ?? []);
    expect(result.run).toMatchObject({
      files: { length: 3 },
      backend: expect.stringContaining('ONNX Runtime'),
    });
    expect(result.run.encodeMs).toBeGreaterThan(0);
    expect(result.utterances).toBe(2);
    changeMeta(meta, { labels: null });
    await expect(
      evaluateRecogniser({ ...request, meta }, (await bundle.recognisers?.()) ?? []),
    ).rejects.toMatchObject({ code: 'TF_EVAL_DATA' });
  });
});
