import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { visibleGpus } from '../../../../src/addon/chosen-gpu.js';
import { findOrtLibraries } from '../../../../src/engines/runtime/onnxruntime/find-library.js';
import { writeNpz } from '../../../../src/formats/tensor/npz.js';
import { thisMachine } from '../../../../src/tensorrt/toolchain/find.js';
import { writeBundle } from '../../../support/bundle.js';
import { dryRunIn, refusedIn } from '../../../support/dry-run.js';
import { samplePlan } from '../../../support/sample-engine.js';
import { trtforge } from '../../../support/trtforge.js';
import { detector, paintCells } from '../detection/coloured-cells.js';
import { channelMeans, paint } from '../image-networks.js';

const sounds = join(import.meta.dirname, '../../../fixtures/audio');
const folder = mkdtempSync(join(tmpdir(), 'trtforge-eval-dry-'));
const at = (...names: readonly string[]) => join(folder, ...names);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The folder of the library in onnxruntime-node, which has no provider but the CPU. */
function packagedOnnxRuntime(): string {
  const found = findOrtLibraries(thisMachine(process.env));
  return dirname(found.find(({ foundBy }) => foundBy === 'onnxruntime-node')!.path);
}

const dryRun = (args: readonly string[]) => dryRunIn(folder, args);
const refused = (args: readonly string[]) => refusedIn(folder, args);

beforeAll(async () => {
  mkdirSync(at('cells'));
  await paintCells(at('cells'));
  await paint(at('pictures'), { 'a.png': [255, 0, 0], 'b.png': [0, 0, 255] });
  writeFileSync(at('truth.tsv'), 'a.png\t0\nb.png\t2\n');
  writeFileSync(at('ids.txt'), '7\n');
});

describe('eval detector', () => {
  const data = () => ['--instances', at('cells', 'instances.json'), '--images', at('cells', 'images')];

  test('states what it reads, runs and writes', async () => {
    const ids = ['--image-ids', at('ids.txt')];
    const args = ['eval', 'detector', await detector(), ...data(), ...ids, '-o', at('scores')];
    const { does, steps, resolved } = await dryRun(args);
    expect(does).toEqual(['read', 'read', 'run', 'write', 'write']);
    expect(steps.at(-1)?.what).toBe(at('scores', 'detections.json'));
    expect(resolved).toMatchObject({ images: 1, preprocess: 'yolo' });
  });

  test('ends as the run would end before its first image', async () => {
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

test('eval classify and eval embeddings count their images, and reject what they would reject', async () => {
  const means = await channelMeans();
  const classify = ['eval', 'classify', means, '--images', at('pictures')];
  expect(await dryRun([...classify, '--truth', at('truth.tsv')])).toMatchObject({
    does: ['read', 'read', 'run'],
    resolved: { images: 2 },
  });
  writeFileSync(at('more.tsv'), 'a.png\t0\nc.png\t2\n');
  expect(await refused([...classify, '--truth', at('more.tsv')])).toBe('TF_EVAL_DATA');
  const embeddings = ['eval', 'embeddings', means, '--against', means, '--images'];
  expect(await dryRun([...embeddings, at('pictures'), '--max-images', '1'])).toMatchObject({
    does: ['read', 'run', 'run'],
    resolved: { images: 1 },
  });
  mkdirSync(at('empty'));
  expect(await refused([...embeddings, at('empty')])).toBe('TF_EVAL_DATA');
});

test('eval recogniser opens the bundle and finds every file of the manifest', async () => {
  mkdirSync(at('bundle'));
  const meta = await writeBundle(at('bundle'));
  const manifest = (name: string, audio: string) => {
    writeFileSync(at(name), `utt_id\twav_path\tref_text\na\t${audio}\tone two\n`);
    return ['eval', 'recogniser', meta, '--audio-dir', sounds, '--manifest', at(name)];
  };
  const { does, resolved } = await dryRun([...manifest('good.tsv', 'pcm16.wav'), '-o', at('words')]);
  expect(does).toEqual(['read', 'run', 'write', 'write', 'write']);
  expect(resolved.files).toHaveLength(3);
  expect(await refused(manifest('bad.tsv', 'absent.wav'))).toBe('TF_FILE_NOT_FOUND');
});

describe('compare-backends', () => {
  const root = at('compared');
  const line = async (backEnds: string, ...more: readonly string[]) => [
    'compare-backends',
    await detector(),
    ...['--data', at('cells', 'instances.json'), '--images', at('cells', 'images')],
    ...['--backends', backEnds, '-o', root, ...more],
  ];

  test('has each variant; those with figures are skipped, and run and plan agree', async () => {
    const args = await line('ort-cpu', '--precision', 'fp16');
    const before = await dryRun(args);
    expect(before.does).toEqual(['run', 'write', 'convert', 'write', 'run', 'write', 'write']);
    const { json } = await trtforge([...args, '--json']);
    const { variants } = json<{ variants: { name: string }[] }>();
    const planned = before.steps.filter(({ does }) => does === 'run').map(({ what }) => what);
    expect(planned).toEqual(variants.map(({ name }) => name));
    expect((await dryRun(args)).does).toEqual(['(run)', '(run)', 'write']);
    expect(await refused([...args, '--max-images', '1'])).toBe('TF_EVAL_MIXED');
  });

  test('states of each variant whether it can run here, as the run finds it', async () => {
    // What pip has beside the package's own library is not looked at.
    const environment = { ...process.env, ORT_HOME: packagedOnnxRuntime() };
    const args = [...(await line('ort-cpu,ort-cuda,ort-trt')), '-o', at('here')];
    const { steps } = await dryRunIn(folder, args, environment);
    const planned = steps.filter(({ does }) => does === 'run');
    const { json } = await trtforge([...args, '--json'], environment);
    const { variants } = json<{ variants: { name: string; error: { code: string } | null }[] }>();
    const codes = planned.map(({ what, skipped }) => [what, skipped?.split(' ')[0] ?? null]);
    expect(codes).toEqual(variants.map(({ name, error }) => [name, error?.code ?? null]));
    expect(codes.map(([, code]) => code)).toEqual([null, 'TF_ONNXRUNTIME_MISSING', 'TF_ONNXRUNTIME_MISSING']);
  });

  test('warns of what does not run, in text too', async () => {
    writeFileSync(at('int4.engine'), samplePlan());
    const args = [...(await line('ort-cpu')), '--candidate', at('int4.engine')];
    const { resolved } = await dryRun(args);
    expect(resolved.warnings).toHaveLength(1);
    expect((await trtforge([...args, '--dry-run'])).out).toContain(resolved.warnings![0]);
  });

  test('rejects data, models and back ends as the run does', async () => {
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
      expect((await dryRun([...args, '--allow-missing', '1'])).does).toContain('convert');
    }
  });

  test.skipIf(visibleGpus().gpus.length > 0)(
    'skips an engine that cannot run here, with its error',
    async () => {
      writeFileSync(at('int8.engine'), samplePlan());
      const { steps } = await dryRun(await line('trt', '--candidate', `int8=${at('int8.engine')}`));
      const skipped = expect.stringMatching(/^TF_GPU_UNAVAILABLE /);
      expect(steps).toMatchObject([
        { what: 'fp32-trt', skipped },
        { what: 'int8-trt', skipped },
        { does: 'write' },
      ]);
    },
  );
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

  test('reads the samples and states what it judges by', async () => {
    const { does, steps, resolved } = await dryRun(await line(samples(8), '--budget', '20dB'));
    expect(does).toEqual(['read', 'run', 'calibrate', 'try', 'write', 'write']);
    expect(steps[1]?.detail).toMatch(/2 held-out samples/);
    expect(resolved).toMatchObject({ precision: 'int8', budget: '20 dB' });
  });

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
  ])('rejects %s as a run does', async (_, args, code) => {
    expect(await refused(await args())).toBe(code);
  });
});
