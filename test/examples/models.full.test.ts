import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import { GraphBuilder, openModel } from 'trtforge/onnx';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { modelFamilies } from '../../examples/models/catalogue.js';
import { Network } from '../../examples/models/network.js';
import { parakeetEncoder } from '../../examples/models/parakeet/encoder.js';
import { parakeetJoint } from '../../examples/models/parakeet/joint.js';
import { parakeetPredictor } from '../../examples/models/parakeet/predictor.js';
import { parakeetShapes } from '../../examples/models/parakeet/shapes.js';
import { RandomStream } from '../../examples/models/random.js';
import { resnet50, resnetShapes } from '../../examples/models/resnet50.js';
import { transformerEncoder, transformerShapes } from '../../examples/models/transformer-encoder.js';
import { describeWith } from '../support/needs.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trtforge-models-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const write = (family: string, size: string, name: string, { seed = 1, external = false } = {}) =>
  modelFamilies[family]!.write(size, join(folder, name), { seed, external });

describe('the generator', () => {
  it('writes the same bytes for the same seed, and others for another', async () => {
    const [first] = await write('resnet50', 'tiny', 'same-1.onnx');
    const [again] = await write('resnet50', 'tiny', 'same-2.onnx');
    const [other] = await write('resnet50', 'tiny', 'other.onnx', { seed: 2 });
    const content = (path: string | undefined) =>
      readFileSync(path!)
        .toString('latin1')
        .replaceAll(/same-\d|other/g, '');
    expect(content(again)).toBe(content(first));
    expect(content(other)).not.toBe(content(first));
  });

  it('keeps weights in a file of their own on request, the values unchanged', async () => {
    const [inside] = await write('matmul-stack', 'tiny', 'inside.onnx');
    const files = await write('matmul-stack', 'tiny', 'outside.onnx', { external: true });
    expect(files).toEqual([join(folder, 'outside.onnx'), join(folder, 'outside.onnx.data')]);
    expect(weightsOf(files[0]!)).toEqual(weightsOf(inside!));
  });

  it.each([
    ['ResNet-50', 25_530_472, (network: Network) => resnet50(network, resnetShapes.full)],
    [
      'the transformer encoder',
      108_890_112,
      (network: Network) => transformerEncoder(network, transformerShapes.full),
    ],
    ['the speech encoder', 619_511_808, (network: Network) => parakeetEncoder(network, parakeetShapes.full)],
    ['the predictor', 11_807_360, (network: Network) => parakeetPredictor(network, parakeetShapes.full)],
    ['the joint', 6_321_158, (network: Network) => parakeetJoint(network, parakeetShapes.full)],
  ])('%s has %d parameters at full size', (_, parameters, define) => {
    const network = new Network(new GraphBuilder('full'), 1);
    define(network);
    expect(network.parameters).toBe(parameters);
  });
});

function weightsOf(path: string): Map<string, string> {
  const model = openModel(path);
  try {
    return new Map(
      (model.proto.graph?.initializer ?? []).map((tensor) => [
        tensor.name,
        Buffer.concat([...model.weight(tensor).chunks()].map((chunk) => chunk.slice())).toString('hex'),
      ]),
    );
  } finally {
    model.close();
  }
}

describeWith('onnxruntime', 'generated models on ONNX Runtime', () => {
  let ort: typeof import('onnxruntime-node');
  beforeAll(async () => {
    ort = await import('onnxruntime-node');
  });

  const load = (path: string) => ort.InferenceSession.create(path, { logSeverityLevel: 3 });
  const floats = (name: string, shape: number[]) => {
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
    new RandomStream(11, name).fillNormal(values, 0, 1);
    return new ort.Tensor('float32', values, shape);
  };
  const integers = (values: number[], shape: number[]) =>
    new ort.Tensor('int64', BigInt64Array.from(values, BigInt), shape);
  const run = async (session: InferenceSession, feeds: Record<string, OrtTensor>) => {
    const results = await session.run(feeds);
    return Object.fromEntries(
      Object.entries(results).map(([name, { dims, data }]) => [name, { dims, data }]),
    );
  };
  const deviationOf = (values: Float32Array) => {
    const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
    return Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length);
  };

  it('ResNet-50 gives logits of order one for any batch', async () => {
    const [path] = await write('resnet50', 'small', 'resnet.onnx');
    const session = await load(path!);
    for (const batch of [1, 3]) {
      const { output } = await run(session, { input: floats('input', [batch, 3, 64, 64]) });
      expect(output?.dims).toEqual([batch, 100]);
      const deviation = deviationOf(output!.data as Float32Array);
      expect(deviation).toBeGreaterThan(0.1);
      expect(deviation).toBeLessThan(30);
    }
  });

  it('the transformer encoder ignores what the attention mask hides', async () => {
    const [path] = await write('transformer-encoder', 'tiny', 'transformer.onnx');
    const session = await load(path!);
    const hidden = async (ids: number[], mask: number[]) => {
      const shape = [1, ids.length];
      const feeds = { input_ids: integers(ids, shape), attention_mask: integers(mask, shape) };
      const { last_hidden_state: state } = await run(session, feeds);
      expect(state?.dims).toEqual([1, ids.length, 32]);
      return state!.data as Float32Array;
    };
    const short = await hidden([5, 17, 99], [1, 1, 1]);
    const padded = await hidden([5, 17, 99, 42, 42], [1, 1, 1, 0, 0]);
    const seen = await hidden([5, 17, 99, 42, 42], [1, 1, 1, 1, 1]);
    expectClose(padded.subarray(0, short.length), short, 1e-5);
    expect(largestDifference(seen.subarray(0, short.length), short)).toBeGreaterThan(0.01);
  });

  describe('the speech bundle', () => {
    let sessions: Record<'encoder' | 'predictor' | 'joint', InferenceSession>;
    beforeAll(async () => {
      await write('parakeet', 'tiny', 'parakeet');
      const component = (name: string) => load(join(folder, 'parakeet', `${name}.onnx`));
      sessions = {
        encoder: await component('encoder'),
        predictor: await component('predictor'),
        joint: await component('joint'),
      };
    });

    it('turns 8 frames into a step, and does not let padding leak into what is before it', async () => {
      const frames = 41;
      const alone = floats('utterance', [1, 128, frames]);
      const one = await run(sessions.encoder, { audio_signal: alone, length: integers([frames], [1]) });
      expect(one.encoder_output?.dims).toEqual([1, 32, 6]);
      expect([...(one.encoded_lengths!.data as BigInt64Array)]).toEqual([6n]);

      const batch = floats('noise', [2, 128, 64]);
      for (let mel = 0; mel < 128; mel++) {
        (batch.data as Float32Array).set(
          (alone.data as Float32Array).subarray(mel * frames, (mel + 1) * frames),
          mel * 64,
        );
      }
      const two = await run(sessions.encoder, { audio_signal: batch, length: integers([frames, 64], [2]) });
      expect(two.encoder_output?.dims).toEqual([2, 32, 8]);
      expect([...(two.encoded_lengths!.data as BigInt64Array)]).toEqual([6n, 8n]);
      for (let channel = 0; channel < 32; channel++) {
        const padded = (two.encoder_output!.data as Float32Array).subarray(channel * 8, channel * 8 + 6);
        const expected = (one.encoder_output!.data as Float32Array).subarray(channel * 6, channel * 6 + 6);
        expectClose(padded, expected, 1e-4);
      }
    });

    it('predicts token by token as it does all at once, with its state fed back', async () => {
      const state = () => floats('state', [2, 1, 16]);
      const whole = await run(sessions.predictor, { y: integers([3, 1, 4], [1, 3]), h: state(), c: state() });
      expect(whole.g?.dims).toEqual([1, 16, 3]);
      let h: OrtTensor = state();
      let c: OrtTensor = state();
      for (const [step, token] of [3, 1, 4].entries()) {
        const next = await sessions.predictor.run({ y: integers([token], [1, 1]), h, c });
        h = next.h_out as OrtTensor;
        c = next.c_out as OrtTensor;
        const column = (whole.g!.data as Float32Array).filter((_, index) => index % 3 === step);
        expectClose(next.g!.data as Float32Array, column, 1e-5);
      }
    });

    it('joins both into token and duration logits whose widths the meta file names', async () => {
      const meta = JSON.parse(readFileSync(join(folder, 'parakeet', 'model_meta.json'), 'utf8'));
      expect(meta.labels).toHaveLength(meta.tokenizer_vocab_size);
      expect(new Set(meta.labels).size).toBe(meta.labels.length);
      expect(meta.joint_vocab_size).toBe(meta.blank_id + 1 + meta.duration_values.length);
      expect(meta.features.n_mels).toBe(128);
      const { joint_output: logits } = await run(sessions.joint, {
        encoder_output: floats('encoder', [1, 32, 7]),
        predictor_output: floats('predictor', [1, 16, 2]),
      });
      expect(logits?.dims).toEqual([1, 7, 2, meta.joint_vocab_size]);
    });
  });
});

function largestDifference(a: Float32Array, b: Float32Array): number {
  expect(a.length).toBe(b.length);
  return a.reduce((largest, value, index) => Math.max(largest, Math.abs(value - b[index]!)), 0);
}

function expectClose(actual: Float32Array, expected: Float32Array, tolerance: number): void {
  expect(largestDifference(actual, expected)).toBeLessThanOrEqual(tolerance);
}
