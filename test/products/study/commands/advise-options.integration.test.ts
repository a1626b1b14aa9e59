import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeNpz } from '../../../../src/formats/tensor/npz.js';
import type { Advice } from '../../../../src/products/study/advise/result.js';
import { modelFile } from '../../../engines/runtime/onnxruntime/models.js';
import { noise } from '../../../formats/precision/judge.js';
import { writeBundle } from '../../../support/bundle.js';
import { trtforge } from '../../../support/trtforge.js';
import { paint, quantizableMeans } from '../../evaluation/image-networks.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-advise-options-'));
const at = (...names: readonly string[]) => join(folder, ...names);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let model: string;
let outputs = 0;
beforeAll(async () => {
  await paint(at('pictures'), {
    'a.png': [250, 10, 10],
    'b.png': [10, 250, 10],
    'c.png': [10, 20, 250],
    'd.png': [240, 9, 8],
  });
  writeFileSync(at('labels.txt'), 'red\ngreen\nblue\n');
  writeFileSync(at('truth.tsv'), 'a.png\tred\nb.png\tgreen\nc.png\tblue\nd.png\tblue\n');
  model = await quantizableMeans();
});

async function advised(file: string, ...words: readonly string[]) {
  const { exitCode, json } = await trtforge([
    ...['convert', 'advise', file, '-o', at(`advice-${outputs++}`), ...words, '--json'],
  ]);
  expect(exitCode, JSON.stringify(json().error)).toBe(0);
  return json<Advice>();
}

test('classes are scored on the pictures, by the names and number requested', async () => {
  const words = ['--calibration', at('pictures'), '--preprocess', 'rt-detr', '--data', at('truth.tsv')];
  const task = ['--images', at('pictures'), '--labels', at('labels.txt')];
  const score = async (...more: readonly string[]) =>
    (await advised(model, ...words, ...task, '--budget', '0.01', ...more)).task;
  expect(await score()).toMatchObject({ id: 'classify', metric: { name: 'top1', value: 0.75 } });
  expect(await score('--max-images', '1')).toMatchObject({ metric: { value: 1 } });
  writeFileSync(at('ids.txt'), '1\n');
  const compared = ['compare-backends', model, '--backends', 'ort-cpu', '--data', at('truth.tsv'), ...task];
  const { json } = await trtforge([
    ...compared,
    '--image-ids',
    at('ids.txt'),
    '-o',
    at('compared'),
    '--json',
  ]);
  expect(json()).toMatchObject({ error: { code: 'TF_USAGE', details: { option: '--image-ids' } } });
});

test('words are scored in the bundle that the model is part of', async () => {
  const meta = await writeBundle(at('bundle'));
  expect(existsSync(meta)).toBe(true);
  writeFileSync(at('ref.tsv'), 'utt_id\twav_path\tref_text\na\tpcm16.wav\tOne, two\n');
  writeNpz(
    at('joint.npz'),
    new Map([
      ['encoder_output', noise([4, 32, 16], 1, 1)],
      ['predictor_output', noise([4, 16, 1], 1, 2)],
    ]),
  );
  const sounds = join(import.meta.dirname, '../../../fixtures/audio');
  const joint = join(at('bundle'), 'joint.onnx');
  const words = ['--calibration', at('joint.npz'), '--data', at('ref.tsv'), '--audio-dir', sounds];
  const speech = ['--bundle', meta, '--normalizer', 'whisper-en'];
  const { task, chosen } = await advised(joint, ...words, ...speech);
  expect(task).toMatchObject({ id: 'wer', metric: { name: 'wer', value: 1 } });
  expect(chosen).toEqual(expect.any(Number));
});

test('operators of plug-ins have the types passed', async () => {
  const plugged = await modelFile(
    (graph) => {
      graph.input('x', 'float32', [1, 64]);
      for (const [index, name] of ['w0', 'w1', 'w2'].entries())
        graph.initializer(name, noise([64, 64], 0.1, index));
      graph.node('MatMul', { name: 'one', inputs: ['x', 'w0'], outputs: ['a'] });
      graph.node('MatMul', { name: 'two', inputs: ['a', 'w1'], outputs: ['b'] });
      graph.node('FastGelu', { name: 'plug', domain: 'com.microsoft', inputs: ['b'], outputs: ['c'] });
      graph.node('Mul', { name: 'twice', inputs: ['c', 'w2'], outputs: ['y'] });
      graph.output('y', 'float32', [64, 64]);
    },
    { opsets: { 'com.microsoft': 1 } },
  );
  const samples = [1, 2, 3, 4].flatMap((seed) => {
    writeNpz(at(`x${seed}.npz`), new Map([['x', noise([1, 64], 1, seed)]]));
    return ['--calibration', at(`x${seed}.npz`)];
  });
  const types = ['--plugin-types', 'com.microsoft::FastGelu:fp16'];
  const [untold, told] = [await advised(plugged, ...samples), await advised(plugged, ...samples, ...types)];
  expect(told.convert).toContain(types.join(' '));
  expect(readFileSync(told.output)).not.toEqual(readFileSync(untold.output));
});
