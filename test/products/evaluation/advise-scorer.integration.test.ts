import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { scorerFor } from '../../../src/products/evaluation/advise-scorer.js';
import { evaluateDetector } from '../../../src/products/evaluation/detection/evaluate-detector.js';
import { cellSettings, detector, paintCells } from './detection/coloured-cells.js';
import { fakeRecogniser } from './fake-recogniser.js';
import { channelMeans, paint } from './image-networks.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-scorer-'));
const at = (...names: readonly string[]) => join(folder, ...names);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const settings = { ...cellSettings, normalizer: 'none', warmupRuns: 0 };

it('boxes are scored as eval detector scores them', async () => {
  await paintCells(folder);
  const request = { ...settings, ...cellSettings, imagesDir: at('images') };
  const model = await detector();
  const scorer = scorerFor({ ...request, model, data: at('instances.json') }, [], {});
  const expected = await evaluateDetector({
    ...request,
    model,
    instances: at('instances.json'),
    preprocess: 'yolo',
    imgsz: 64,
    open: {},
  });
  expect(scorer).toMatchObject({ task: 'coco', name: 'mAP_50_95', higherIsBetter: true });
  expect(await scorer.score(model)).toBe(expected.metrics.mAP_50_95);
});

it('classes are scored by top-1, and their data have a digest', async () => {
  await paint(at('pictures'), { 'a.png': [200, 0, 0], 'b.png': [0, 200, 0] });
  writeFileSync(at('truth.tsv'), 'a.png\t0\nb.png\t0\n');
  const model = await channelMeans();
  const request = { ...settings, model, data: at('truth.tsv'), imagesDir: at('pictures') };
  const scorer = scorerFor(request, [], {});
  expect(await scorer.score(model)).toBe(0.5);
  const digest = await scorer.digest();
  writeFileSync(at('truth.tsv'), 'a.png\t0\nb.png\t1\n');
  expect(await scorer.score(model)).toBe(1);
  expect(await scorer.digest()).not.toBe(digest);
});

/** Understands all words where the encoder beside the meta file is the whole one, and finds the other models there too. */
const recogniser = fakeRecogniser((path) => {
  const beside = (name: string) => readFileSync(join(dirname(path), name), 'utf8');
  expect(beside('joint.onnx')).toBe('joint');
  return { file: path, text: () => (beside('encoder.onnx') === 'whole' ? 'one two' : 'one') };
});

beforeAll(() => {
  mkdirSync(at('bundle'));
  for (const [name, content] of [
    ['model_meta.json', '{}'],
    ['encoder.onnx', 'whole'],
    ['joint.onnx', 'joint'],
  ] as const)
    writeFileSync(at('bundle', name), content);
  copyFileSync(join(import.meta.dirname, '../../fixtures/audio/pcm16.wav'), at('pcm16.wav'));
  writeFileSync(at('manifest.tsv'), 'utt_id\twav_path\tref_text\na\tpcm16.wav\tone two\n');
  writeFileSync(at('candidate.onnx'), 'worse');
});

it('words are scored in the bundle that the model is part of, with the candidate in its place', async () => {
  const request = { ...settings, model: at('bundle', 'encoder.onnx'), data: at('manifest.tsv') };
  const scorer = scorerFor({ ...request, bundle: at('bundle', 'model_meta.json') }, [recogniser], {});
  expect(scorer).toMatchObject({ task: 'wer', name: 'wer', higherIsBetter: false });
  expect(await scorer.score(at('bundle', 'encoder.onnx'))).toBe(0);
  expect(await scorer.score(at('candidate.onnx'))).toBe(0.5);
  expect(readFileSync(at('bundle', 'encoder.onnx'), 'utf8')).toBe('whole');
  expect(() => scorerFor(request, [recogniser], {})).toThrow(expect.objectContaining({ code: 'TF_USAGE' }));
  const other = { ...request, model: at('candidate.onnx'), bundle: at('bundle', 'model_meta.json') };
  expect(() => scorerFor(other, [recogniser], {})).toThrow(expect.objectContaining({ code: 'TF_USAGE' }));
});
