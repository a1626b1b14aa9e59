import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { mapOf } from '../../../src/engines/runtime/check-inputs.js';
import type { Binding, Session } from '../../../src/engines/runtime/session.js';
import { readMeta } from '../../../src/formats/contract/model-meta.js';
import {
  float32Values,
  integerTensor,
  type NamedTensors,
  numbersOf,
  type Tensor,
  tensorFrom,
} from '../../../src/formats/tensor/tensor.js';
import { recogniser } from '../../../src/products/bundle/recogniser.js';
import { changeMeta, writeBundle } from '../../support/bundle.js';

/** Frames that each call of the encoder got: value of the first row, and the length input. */
const chunks: { readonly frames: readonly number[]; readonly length: number; readonly state: number }[] = [];

const folder = mkdtempSync(join(tmpdir(), 'trtforge-recogniser-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const binding = (name: string, dtype: Binding['dtype'], shape: Binding['shape']): Binding => ({
  name,
  dtype,
  shape,
});
const zeros = (...shape: number[]) =>
  tensorFrom('float32', shape, new Float32Array(shape.reduce((product, size) => product * size, 1)));

/** A streaming encoder that gives as many steps as it gets frames, and whose state counts its calls. */
const encoder = (inputs: NamedTensors): NamedTensors => {
  const audio = inputs.get('audio_signal')!;
  const frames = audio.shape[2]!;
  const [length = 0] = numbersOf(inputs.get('length')!);
  const [state = 0] = numbersOf(inputs.get('cache_last_channel_len')!);
  chunks.push({ frames: [...float32Values(audio).subarray(0, frames)], length, state });
  return new Map<string, Tensor>([
    ['encoder_output', zeros(1, 32, frames)],
    ['encoded_lengths', integerTensor('int64', [1], [length])],
    ['cache_last_channel_len_next', integerTensor('int64', [1], [state + 1])],
  ]);
};

/** The models of the example's bundle, with an encoder that has a state. */
const models: Readonly<Record<string, Omit<Session, 'close' | typeof Symbol.asyncDispose>>> = {
  encoder: {
    backend: 'fake',
    inputs: [
      binding('audio_signal', 'float32', ['B', 128, 'T']),
      binding('length', 'int64', ['B']),
      binding('cache_last_channel_len', 'int64', ['B']),
    ],
    outputs: [
      binding('encoder_output', 'float32', ['B', 32, 'T']),
      binding('cache_last_channel_len_next', 'int64', ['B']),
      binding('encoded_lengths', 'int64', ['B']),
    ],
    run: async (inputs) => encoder(mapOf('inputs', inputs)),
  },
  predictor: {
    backend: 'fake',
    inputs: [binding('y', 'int64', ['B', 'U'])],
    outputs: [binding('g', 'float32', ['B', 16, 'U'])],
    run: async () => new Map([['g', zeros(1, 16, 1)]]),
  },
  joint: {
    backend: 'fake',
    inputs: [
      binding('encoder_output', 'float32', ['B', 32, 'T']),
      binding('predictor_output', 'float32', ['B', 16, 'U']),
    ],
    outputs: [binding('joint_output', 'float32', ['B', 'T', 'U', 38])],
    // All blanks, of duration 1.
    run: async () => {
      const logits = new Float32Array(38);
      logits[32] = 1;
      logits[34] = 1;
      return new Map([['joint_output', tensorFrom('float32', [1, 1, 1, 38], logits)]]);
    },
  },
};
const closed: string[] = [];
vi.mock('../../../src/engines/runtime/onnxruntime/ort-session.js', () => ({
  openOrtSession: vi.fn(async (path: string) => {
    const name = basename(path, '.onnx');
    return { ...models[name], close: async () => void closed.push(name) };
  }),
}));

const streaming = {
  chunk_size: [41, 48],
  shift_size: [17, 24],
  pre_encode_cache_size: [0, 9],
  sampling_frames: [1, 8],
};
const features = (frames: number): Tensor =>
  tensorFrom(
    'float32',
    [1, 128, frames],
    Float32Array.from({ length: 128 * frames }, (_, at) => (at % frames) + 1),
  );

let meta: string;
beforeEach(async () => {
  chunks.length = 0;
  closed.length = 0;
  meta = await writeBundle(mkdtempSync(join(folder, 'bundle-')));
});

describe('a streaming bundle', () => {
  test('gets an utterance in chunks of NeMo’s schedule, with earlier frames in front and its state fed back', async () => {
    changeMeta(meta, { streaming });
    const open = await recogniser.open(meta, {}, {});
    expect(open.facts.streaming).toEqual({
      chunk: { first: 41, rest: 48 },
      shift: { first: 17, rest: 24 },
      before: { first: 0, rest: 9 },
      fewest: { first: 1, rest: 8 },
    });
    const { timings, tokens } = await open.transcribe(features(70));
    const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at + 1);
    // The third chunk begins at 41 and takes what is left; the next would begin at 65 and has five frames, too few for a step.
    expect(chunks).toEqual([
      { frames: range(0, 41), length: 41, state: 0 },
      { frames: range(8, 65), length: 57, state: 1 },
      { frames: range(32, 70), length: 38, state: 2 },
    ]);
    expect([timings.chunks, tokens]).toEqual([3, []]);
    await open.transcribe(features(10));
    expect(chunks.at(-1)).toEqual({ frames: range(0, 10), length: 10, state: 0 });
    await open.close();
    expect(closed.sort()).toEqual(['encoder', 'joint', 'predictor']);
  });

  test('takes zeros for earlier frames that there are not', async () => {
    changeMeta(meta, { streaming: { chunk_size: 4, shift_size: 4, pre_encode_cache_size: [2, 6] } });
    const open = await recogniser.open(meta, {}, {});
    await open.transcribe(features(9));
    expect(chunks.map(({ frames }) => frames)).toEqual([
      [0, 0, 1, 2, 3, 4],
      [0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
      [3, 4, 5, 6, 7, 8, 9],
    ]);
  });

  test('needs a schedule in its meta file, and leaves nothing open without one', async () => {
    await expect(recogniser.open(meta, {}, {})).rejects.toMatchObject({ code: 'TF_BUNDLE_MISMATCH' });
    expect(closed.sort()).toEqual(['encoder', 'joint', 'predictor']);
  });

  test('needs a label for each token, with or without the blank', async () => {
    const { labels } = readMeta(meta);
    const withLabels = async (count: number) => {
      changeMeta(meta, { streaming, labels: [...labels!, '<blank>', 'more'].slice(0, count) });
      await (await recogniser.open(meta, {}, {})).close();
    };
    await withLabels(labels!.length);
    await withLabels(labels!.length + 1);
    for (const count of [0, labels!.length - 1, labels!.length + 2])
      await expect(withLabels(count)).rejects.toMatchObject({ code: 'TF_BUNDLE_MISMATCH' });
  });

  test('ends where it is cancelled', async () => {
    changeMeta(meta, { streaming });
    const cancel = new AbortController();
    const open = await recogniser.open(meta, {}, { signal: cancel.signal });
    cancel.abort();
    await expect(open.transcribe(features(100))).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    expect(chunks).toEqual([]);
  });
});
