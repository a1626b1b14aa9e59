import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeNpz } from '../../../../src/formats/tensor/npz.js';
import { writeBundle } from '../../../support/bundle.js';
import { codeOfLine } from '../../../support/trtforge.js';
import { detector, paintCells } from '../detection/coloured-cells.js';
import { channelMeans, paint } from '../image-networks.js';

const sounds = join(import.meta.dirname, '../../../fixtures/audio');
const folder = mkdtempSync(join(tmpdir(), 'trtforge-eval-rejected-'));
const at = (...names: readonly string[]) => join(folder, ...names);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const refused = (args: readonly string[]) => codeOfLine(args);

beforeAll(async () => {
  mkdirSync(at('cells'));
  await paintCells(at('cells'));
  await paint(at('pictures'), { 'a.png': [255, 0, 0], 'b.png': [0, 0, 255] });
  writeFileSync(at('truth.tsv'), 'a.png\t0\nb.png\t2\n');
  writeFileSync(at('ids.txt'), '7\n');
});

describe('eval detector', () => {
  const data = () => ['--instances', at('cells', 'instances.json'), '--images', at('cells', 'images')];

  test('ends before its first image', async () => {
    const unnamed = await detector(null);
    expect(await refused(['eval', 'detector', unnamed, ...data()])).toBe('TF_EVAL_DATA');
    expect(await refused(['eval', 'detector', at('absent.onnx'), ...data()])).toBe('TF_FILE_NOT_FOUND');
    const engineOption = ['eval', 'detector', await detector(), ...data(), '--weight-budget', '1G'];
    expect(await refused(engineOption)).toBe('TF_USAGE');
    const means = await channelMeans();
    writeFileSync(at('rgb.txt'), 'RED\nGREEN\n');
    expect(await refused(['eval', 'detector', means, ...data(), '--labels', at('rgb.txt')])).toBe(
      'TF_EVAL_DATA',
    );
  });
});

test('eval classify and eval embeddings reject images that are missing', async () => {
  const means = await channelMeans();
  const classify = ['eval', 'classify', means, '--images', at('pictures')];
  writeFileSync(at('more.tsv'), 'a.png\t0\nc.png\t2\n');
  expect(await refused([...classify, '--truth', at('more.tsv')])).toBe('TF_EVAL_DATA');
  const embeddings = ['eval', 'embeddings', means, '--against', means, '--images'];
  mkdirSync(at('empty'));
  expect(await refused([...embeddings, at('empty')])).toBe('TF_EVAL_DATA');
});

test('eval recogniser finds every file of the manifest', async () => {
  mkdirSync(at('bundle'));
  const meta = await writeBundle(at('bundle'));
  writeFileSync(at('bad.tsv'), 'utt_id\twav_path\tref_text\na\tabsent.wav\tone two\n');
  const line = ['eval', 'recogniser', meta, '--audio-dir', sounds, '--manifest', at('bad.tsv')];
  expect(await refused(line)).toBe('TF_FILE_NOT_FOUND');
});

describe('compare-backends', () => {
  const root = at('compared');
  const line = async (backEnds: string, ...more: readonly string[]) => [
    'compare-backends',
    await detector(),
    ...['--data', at('cells', 'instances.json'), '--images', at('cells', 'images')],
    ...['--backends', backEnds, '-o', root, ...more],
  ];

  test('rejects data, models and back ends', async () => {
    expect(await refused(await line('ort-cpu', '--image-ids', at('absent')))).toBe('TF_FILE_NOT_FOUND');
    expect(await refused(await line('ort'))).toBe('TF_USAGE');
    expect(await refused(await line('ort-cpu', '--labels', at('truth.tsv')))).toBe('TF_EVAL_DATA');
  });

  test('counts files that are no images before it makes a variant', async () => {
    cpSync(at('pictures'), at('damaged'), { recursive: true });
    writeFileSync(at('damaged', 'b.png'), 'no image');
    cpSync(at('cells', 'images'), at('damaged', 'cells'), { recursive: true });
    writeFileSync(at('damaged', 'cells', '7.png'), '');
    const more = ['--precision', 'fp16', '-o', at('unmade')];
    const pictures = ['--data', at('truth.tsv'), '--images', at('damaged'), '--backends', 'ort-cpu'];
    const classes = ['compare-backends', await channelMeans(), ...pictures, ...more];
    const boxes = [...(await line('ort-cpu', ...more)), '--images', at('damaged', 'cells')];
    for (const args of [classes, boxes]) {
      expect(await refused(args)).toBe('TF_EVAL_DATA');
      expect(existsSync(at('unmade'))).toBe(false);
    }
  });
});

describe('convert advise', () => {
  const samples = (count: number) => {
    const path = at(`calibration-${count}.npz`);
    const bytes = new Uint8Array(Float32Array.from({ length: count * 3 * 16 * 16 }, (_, i) => i % 7).buffer);
    writeNpz(path, new Map([['image', { dtype: 'float32', shape: [count, 3, 16, 16], bytes }]]));
    return path;
  };
  const line = async (calibration: string, ...more: readonly string[]) => [
    ...['convert', 'advise', await channelMeans(), '-o', at('advice')],
    ...['--calibration', calibration, ...more],
  ];

  test.each([
    ['too few samples', () => line(samples(1)), 'TF_CALIBRATION_INVALID'],
    ['samples that are not there', () => line(at('absent.npz')), 'TF_FILE_NOT_FOUND'],
    ['a budget in a metric without data', () => line(samples(8), '--budget', '0.01'), 'TF_USAGE'],
    ['data without images', () => line(samples(8), '--data', at('truth.tsv')), 'TF_USAGE'],
    [
      'labels that do not fit',
      () => line(samples(8), '--data', at('cells', 'instances.json'), '--images', at('cells', 'images')),
      'TF_EVAL_DATA',
    ],
  ])('rejects %s', async (_, args, code) => {
    expect(await refused(await args())).toBe(code);
  });
});
