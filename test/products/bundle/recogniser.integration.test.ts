import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { modelFamilies } from '../../../examples/models/catalogue.js';
import { openOrtSession } from '../../../src/engines/runtime/onnxruntime/ort-session.js';
import { attribute, buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { randomStream } from '../../../src/formats/tensor/random.js';
import { integerTensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { bundle } from '../../../src/products/bundle/product.js';
import { encode, type TransducerFacts } from '../../../src/products/bundle/transducer.js';
import { decode } from '../../../src/products/bundle/transducer-decoder.js';
import type { OpenRecogniser } from '../../../src/quality/tasks/task.js';
import { changeMeta, writeBundle } from '../../support/bundle.js';
import { describeWith } from '../../support/needs.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-recogniser-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function normal(name: string, shape: readonly number[], scale = 1) {
  const stream = randomStream(7, name);
  const values = Float32Array.from(
    { length: shape.reduce((a, b) => a * b, 1) },
    () => scale * stream.normal(),
  );
  return tensorFrom('float32', shape, values);
}
const features = (frames: number) => normal('features', [1, 128, frames]);

/** An encoder of one step a frame, from the frame and the one before; a streaming one keeps that as its state. */
async function writeEncoder(meta: string, kind: 'whole' | 'streaming'): Promise<void> {
  const graph = new GraphBuilder('encoder');
  graph.input('audio_signal', 'float32', ['B', 128, 'T']);
  graph.input('length', 'int64', ['B']);
  graph.initializer('weight', normal('weight', [32, 128, 2], 0.1));
  if (kind === 'streaming') {
    graph.input('cache_last_time', 'float32', ['B', 128, 1]);
    for (const [name, value] of Object.entries({ from: -1, to: 1_000_000, axis: 2 }))
      graph.initializer(name, integerTensor('int64', [1], [value]));
    graph.node('Concat', {
      inputs: ['cache_last_time', 'audio_signal'],
      outputs: ['frames'],
      attributes: { axis: attribute.int(2) },
    });
    graph.node('Slice', {
      inputs: ['audio_signal', 'from', 'to', 'axis'],
      outputs: ['cache_last_time_out'],
    });
    graph.output('cache_last_time_out', 'float32', ['B', 128, 1]);
  }
  graph.node('Conv', {
    inputs: [kind === 'whole' ? 'audio_signal' : 'frames', 'weight'],
    outputs: ['encoder_output'],
    attributes: { pads: attribute.ints(kind === 'whole' ? [1, 0] : [0, 0]) },
  });
  graph.node('Identity', { inputs: ['length'], outputs: ['encoded_lengths'] });
  graph.output('encoder_output', 'float32', ['B', 32, 'T']);
  graph.output('encoded_lengths', 'int64', ['B']);
  await writeModel(buildModel(graph), join(dirname(meta), 'encoder.onnx'), { externalData: 'never' });
}

async function open(meta: string): Promise<OpenRecogniser> {
  const [recogniser] = await bundle.recognisers!();
  expect([recogniser!.accepts(meta), recogniser!.accepts('encoder.onnx')]).toEqual([true, false]);
  return recogniser!.open(meta, {}, {});
}

describeWith('onnxruntime', 'a bundle as a recogniser', () => {
  let meta: string;
  let labels: readonly string[];
  beforeAll(async () => {
    meta = await writeBundle(mkdtempSync(join(root, 'bundle-')));
    labels = JSON.parse(readFileSync(meta, 'utf8')).labels;
  });

  test('turns the features of an utterance into what greedy decoding finds', async () => {
    const recogniser = await open(meta);
    const { tokens, text, timings } = await recogniser.transcribe(features(256));
    expect(recogniser.facts).toMatchObject({
      features: { count: 128, sampleRate: 16_000, settings: { n_fft: 512, hop_length: 160 } },
      vocabulary: labels,
      blankId: 32,
      durations: [0, 1, 2, 3, 4],
      streaming: null,
      files: ['encoder', 'predictor', 'joint'].map((name) => join(dirname(meta), `${name}.onnx`)),
      backend: expect.stringContaining('ONNX Runtime'),
    });
    await recogniser.close();
    const facts: TransducerFacts = {
      tokenLogits: 33,
      blankId: 32,
      durations: [0, 1, 2, 3, 4],
      smallest: { predictor: new Map(), joint: new Map() },
      timeAxis: 2,
      tokenAxis: 2,
    };
    const [encoder, predictor, joint] = await Promise.all(
      ['encoder', 'predictor', 'joint'].map((name) => openOrtSession(join(dirname(meta), `${name}.onnx`))),
    );
    const encoded = await encode(encoder!, features(256), 256, 2);
    const decisions = await decode({ predictor: predictor!, joint: joint! }, encoded, facts);
    await Promise.all([encoder, predictor, joint].map((session) => session!.close()));
    expect(tokens).toEqual(decisions.flatMap(({ token }) => (token === 32 ? [] : [token])));
    expect(tokens.length).toBeGreaterThan(0);
    expect(text?.replaceAll(' ', '')).toBe(tokens.map((token) => labels[token]!.replace('▁', '')).join(''));
    expect(text!.split(' ').length).toBe(
      tokens.filter((token, at) => at === 0 || labels[token]!.startsWith('▁')).length,
    );
    expect(timings).toEqual({ encodeMs: expect.any(Number), decodeMs: expect.any(Number), chunks: 1 });
  });

  test('finds the same in chunks, its state fed back, as in whole utterances', async () => {
    const whole = await writeBundle(mkdtempSync(join(root, 'whole-')));
    await writeEncoder(whole, 'whole');
    const streaming = await writeBundle(mkdtempSync(join(root, 'streaming-')));
    await writeEncoder(streaming, 'streaming');
    changeMeta(streaming, { streaming: { chunk_size: [2, 3], shift_size: [2, 3] } });
    const transcripts = [];
    for (const each of [whole, streaming]) {
      const recogniser = await open(each);
      transcripts.push(await recogniser.transcribe(features(60)));
      await recogniser.close();
    }
    const [expected, inChunks] = transcripts;
    expect(inChunks!.tokens).toEqual(expected!.tokens);
    expect(expected!.tokens.length).toBeGreaterThan(5);
    expect([expected!.timings.chunks, inChunks!.timings.chunks]).toEqual([1, 21]);
  });

  test('streams through the example’s encoder with caches, three steps a chunk', async () => {
    const streaming = await writeBundle(mkdtempSync(join(root, 'example-')));
    const { write } = modelFamilies['streaming-encoder']!;
    const [encoder] = await write('tiny', mkdtempSync(join(root, 'encoder-')), { seed: 1, external: false });
    copyFileSync(encoder!, join(dirname(streaming), 'encoder.onnx'));
    changeMeta(streaming, {
      streaming: { chunk_size: [41, 48], shift_size: [17, 24], pre_encode_cache_size: [0, 9] },
    });
    const recogniser = await open(streaming);
    const { tokens, timings } = await recogniser.transcribe(features(41 + 24 * 7));
    await recogniser.close();
    expect(timings.chunks).toBe(9);
    expect(tokens.length).toBeGreaterThan(0);
  });

  test('rejects features of another shape, and has nothing to report of none', async () => {
    const recogniser = await open(meta);
    await expect(recogniser.transcribe(normal('few', [1, 80, 16]))).rejects.toMatchObject({
      code: 'TF_SESSION_INPUT',
    });
    expect(await recogniser.transcribe(features(0))).toMatchObject({
      tokens: [],
      text: '',
      timings: { chunks: 0 },
    });
    await recogniser.close();
  });
});
