import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { compileFakeOnnxRuntime, fakeProviders } from '../../../fakes/onnxruntime/library.js';
import { writeBundle } from '../../../support/bundle.js';
import { type Answer, trtforge } from '../../../support/trtforge.js';
import { detector, paintCells } from '../detection/coloured-cells.js';
import { channelMeans, paint } from '../image-networks.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-evaluation-options-'));
const at = (...names: readonly string[]) => join(folder, ...names);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const sounds = join(import.meta.dirname, '../../../fixtures/audio');

const models: Record<string, string> = {};
beforeAll(async () => {
  await Promise.all([paintCells(folder), compileFakeOnnxRuntime()]);
  await paint(at('pictures'), { 'a.png': [250, 10, 10], 'b.png': [10, 250, 10], 'c.png': [10, 20, 250] });
  Object.assign(models, {
    detector: await detector(null),
    named: await detector(),
    means: await channelMeans(),
    other: await channelMeans([1, 0.8, 1]),
    openDetector: await detector(null, ['h', 'w']),
    openMeans: await channelMeans([1, 1, 1], 1, {}, ['h', 'w']),
  });
  writeFileSync(at('labels.txt'), 'red\ngreen\nblue\n');
  writeFileSync(at('truth.tsv'), 'a.png\tred\nb.png\tgreen\nc.png\tblue\n');
  writeFileSync(at('missing.tsv'), 'a.png\tred\nz.png\tgreen\n');
  writeFileSync(at('ids.txt'), '7\n');
  writeFileSync(at('ref.tsv'), 'utt_id\twav_path\tref_text\na\tpcm16.wav\tOne, two\nb\tpcm16.wav\tthree\n');
  writeFileSync(at('hyp.tsv'), 'a\tone two\n');
  models.meta = await writeBundle(at('.'));
});

async function run(...line: readonly string[]) {
  const { exitCode, json } = await trtforge([...line, '--json']);
  const answer = json();
  expect(exitCode, JSON.stringify(answer.error)).toBeLessThan(2);
  return answer;
}
const numbers = (answer: Answer) => (answer.metrics ?? {}) as Readonly<Record<string, number>>;

describe('eval detector', () => {
  const line = (...more: readonly string[]) => [
    'eval',
    'detector',
    models.detector!,
    '--instances',
    at('instances.json'),
    '--images',
    at('images'),
    '--labels',
    at('labels.txt'),
    ...more,
  ];
  test('takes what is requested', async () => {
    expect(numbers(await run(...line('--conf', '0.5')))).toMatchObject({ num_images: 2, num_detections: 4 });
    expect(numbers(await run(...line('--conf', '0.5', '--max-det', '1')))).toMatchObject({
      num_detections: 2,
    });
    expect(numbers(await run(...line('--conf', '0.5', '--pre-nms-topk', '1')))).toMatchObject({
      num_detections: 2,
    });
    expect(numbers(await run(...line('--conf', '0.5', '--max-images', '1')))).toMatchObject({
      num_images: 1,
    });
    expect(numbers(await run(...line('--conf', '0.5', '--image-ids', at('ids.txt'))))).toMatchObject({
      num_images: 1,
    });
  });

  test('prepares and measures as requested', async () => {
    const base = await run(...line('--conf', '0.5'));
    const told = ['--preprocess', 'rt-detr', '--skip-latency', '1', '--warmup-runs', '0', '-o', at('found')];
    const more = await run(
      ...line('--conf', '0.5', '--iou', '0.5', '--agnostic-nms', '--multi-label', ...told),
    );
    expect(more).toMatchObject({
      run: { latency: { count: 1 }, settings: { iou: 0.5, agnosticNms: true, multiLabel: true } },
    });
    expect(more.comparabilityKey).not.toBe(base.comparabilityKey);
    expect(JSON.parse(readFileSync(at('found', 'metrics.json'), 'utf8'))).toMatchObject({ iou: 0.5 });
  });

  test('prepares pictures at the size that a model leaves open', async () => {
    const opened = line('--conf', '0.5').with(2, models.openDetector!);
    const at64 = await run(...opened, '--imgsz', '64');
    expect(at64).toMatchObject({ run: { settings: { imgsz: [64, 64] } }, metrics: { mAP_50: 1 } });
    // At YOLO's own 640 pixels it does not run.
    expect((await trtforge([...opened, '--json'])).exitCode).toBe(2);
  });

  test('leaves out what may be missing', async () => {
    const instances = JSON.parse(readFileSync(at('instances.json'), 'utf8'));
    instances.images.push({ id: 11, width: 64, height: 64, file_name: 'val/11.png' });
    writeFileSync(at('more.json'), JSON.stringify(instances));
    const words = ['--instances', at('more.json'), '--conf', '0.5'];
    expect((await run(...line(...words, '--allow-missing', '1'))).warnings).toMatchObject([{ count: 1 }]);
    const detections = ['--detections', at('found', 'detections.json')];
    writeFileSync(at('ids-2.txt'), '7\n99\n');
    const scored = [
      'eval',
      'coco',
      '--instances',
      at('instances.json'),
      ...detections,
      '--image-ids',
      at('ids-2.txt'),
    ];
    expect(numbers(await run(...scored, '--allow-missing', '1'))).toMatchObject({ num_images: 1 });
  });
});

describe('eval classify and eval embeddings', () => {
  const classify = (...more: readonly string[]) => [
    'eval',
    'classify',
    models.means!,
    '--images',
    at('pictures'),
    '--labels',
    at('labels.txt'),
    '--preprocess',
    'rt-detr',
    ...more,
  ];
  test('take what is requested', async () => {
    const all = await run(
      ...classify('--truth', at('truth.tsv'), '--skip-latency', '1', '--warmup-runs', '2'),
    );
    expect(all).toMatchObject({ images: 3, top1: 1, preprocess: 'rt-detr', run: { latency: { count: 2 } } });
    const part = await run(...classify('--truth', at('missing.tsv'), '--allow-missing', '1'));
    expect(part).toMatchObject({ images: 1, warnings: [{ count: 1 }] });
  });

  test('prepare pictures at the size that a model leaves open', async () => {
    const of = (size: number) => ({ preprocessing: { width: size, height: size } });
    const truth = ['--truth', at('truth.tsv'), '--imgsz', '24'];
    const classified = await run(...classify(...truth).with(2, models.openMeans!));
    expect(classified).toMatchObject({ top1: 1, run: of(24) });
    const pair = ['eval', 'embeddings', models.openMeans!, '--against', models.openMeans!];
    const embedded = await run(...pair, '--images', at('pictures'), '--imgsz', '32');
    expect(embedded).toMatchObject({ runs: { reference: of(32), candidate: of(32) } });
  });

  test('limits of embeddings decide', async () => {
    const line = [
      'eval',
      'embeddings',
      models.other!,
      '--against',
      models.means!,
      '--images',
      at('pictures'),
      '--preprocess',
      'rt-detr',
      '--skip-latency',
      '1',
      '--warmup-runs',
      '0',
    ];
    const wide = ['--min-mean-cosine', '0.1', '--min-cosine', '0.1', '--max-mean-l2', '2'];
    expect(await run(...line, ...wide, '--max-images', '2')).toMatchObject({
      n_samples: 2,
      validation: { passed: true },
    });
    for (const limit of [
      ['--min-mean-cosine', '0.99999'],
      ['--min-cosine', '0.99999'],
      ['--max-mean-l2', '0.00001'],
    ])
      expect(await run(...line, ...wide, ...limit)).toMatchObject({
        exitCode: 1,
        validation: { passed: false },
      });
  });
});

test('eval wer scores what there is, as the normaliser makes it', async () => {
  const line = ['eval', 'wer', '--ref', at('ref.tsv'), '--hyp', at('hyp.tsv'), '--allow-missing', '1'];
  expect(await run(...line, '-o', at('scores.tsv'))).toMatchObject({
    edits: 2,
    refWords: 3,
    scores: at('scores.tsv'),
  });
  expect(await run(...line, '--normalizer', 'whisper-en')).toMatchObject({ edits: 1, deletions: 1 });
  expect(readFileSync(at('scores.tsv'), 'utf8').trim().split('\n')).toHaveLength(3);
});

describe('on a provider of ONNX Runtime', () => {
  const lines: Readonly<Record<string, () => readonly string[]>> = {
    'eval detector': () => [
      'eval',
      'detector',
      models.named!,
      '--instances',
      at('instances.json'),
      '--images',
      at('images'),
      '--conf',
      '0.5',
    ],
    'eval classify': () => [
      'eval',
      'classify',
      models.means!,
      '--images',
      at('pictures'),
      '--labels',
      at('labels.txt'),
      '--truth',
      at('truth.tsv'),
    ],
    'eval embeddings': () => [
      'eval',
      'embeddings',
      models.means!,
      '--against',
      models.means!,
      '--images',
      at('pictures'),
    ],
    'eval recogniser': () => [
      'eval',
      'recogniser',
      models.meta!,
      '--manifest',
      at('ref.tsv'),
      '--audio-dir',
      sounds,
      '--normalizer',
      'seed',
      '-o',
      at('words'),
    ],
    verify: () => ['verify', models.means!, '--against', models.other!],
    run: () => ['run', models.means!, '--inputs', 'random', '--threads', '1', '--val-range', '[0,1]'],
    'bench model': () => [
      'bench',
      'model',
      models.means!,
      '--duration',
      '0.05',
      '--warm-up',
      '1',
      '--no-data-transfers',
    ],
    'compare layers': () => [
      'compare',
      'layers',
      models.other!,
      '--against',
      models.means!,
      '--seed',
      '2',
      '--val-range',
      '[0,1]',
      '--atol',
      '1e-6',
      '--rtol',
      '1e-6',
      '--precision',
      'fp32',
    ],
    'stream verify': () => ['stream', 'verify', models.means!, '--reference', at('means.jsonl')],
  };
  test.each(Object.keys(lines))(
    '%s runs there, with its options, and elsewhere what it does not take',
    async (verb) => {
      const log = at(`${verb.replace(' ', '-')}.log`);
      writeFileSync(log, '');
      if (verb === 'stream verify')
        await run(
          'stream',
          'record',
          models.means!,
          '--schedule',
          '1',
          '--chunks',
          '2',
          '-o',
          at('means.jsonl'),
          '--threads',
          '1',
        );
      const { ORT_HOME, ...fake } = fakeProviders('Mul,Reshape,MatMul,Add,Gather', log);
      for (const [name, value] of Object.entries(fake)) vi.stubEnv(name, value);
      try {
        const place = [
          '--provider',
          'cuda',
          '--device',
          '0',
          '--provider-option',
          'use_tf32=0',
          '--onnxruntime',
          ORT_HOME!,
        ];
        const answer = await run(...lines[verb]!(), ...place, '--allow-fallback');
        expect(readFileSync(log, 'utf8')).toContain('use_tf32');
        expect(JSON.stringify(answer)).toContain('CUDA');
        const { exitCode } = await trtforge([...lines[verb]!(), ...place, '--json']);
        expect(exitCode).toBeGreaterThan(1);
      } finally {
        vi.unstubAllEnvs();
      }
    },
  );
});

describe('compare-backends', () => {
  const line = (...more: readonly string[]) => [
    'compare-backends',
    models.detector!,
    '--data',
    at('instances.json'),
    '--images',
    at('images'),
    '--labels',
    at('labels.txt'),
    '--backends',
    'ort-cpu',
    '--conf',
    '0.5',
    ...more,
  ];
  const first = (answer: Answer) =>
    (
      answer.variants as readonly {
        readonly figures: {
          readonly samples: number;
          readonly latency: { readonly count: number };
          readonly comparabilityKey: string;
        };
      }[]
    )[0]!.figures;

  test('scores what is requested, beside a candidate', async () => {
    const all = await run(
      ...line(
        '-o',
        at('all'),
        '--candidate',
        `again=${models.named}`,
        '--warmup-runs',
        '0',
        '--skip-latency',
        '1',
      ),
    );
    expect((all.variants as readonly object[]).length).toBe(2);
    const opened = line('-o', at('opened'), '--imgsz', '64').with(1, models.openDetector!);
    expect(first(await run(...opened)).comparabilityKey).toBe(first(all).comparabilityKey);
    expect(first(all)).toMatchObject({ samples: 2, latency: { count: 1 } });
    const part = await run(...line('-o', at('part'), '--image-ids', at('ids.txt'), '--max-images', '1'));
    expect(first(part).samples).toBe(1);
    const told = [
      '--iou',
      '0.5',
      '--max-det',
      '1',
      '--agnostic-nms',
      '--multi-label',
      '--preprocess',
      'rt-detr',
      '--allow-missing',
      '1',
    ];
    const config = at('compare.json');
    writeFileSync(config, JSON.stringify({ 'pre-nms-topk': 9, 'warmup-runs': 0 }));
    const other = await run(...line('-o', at('other'), '--config', config, ...told));
    expect(first(other).comparabilityKey).not.toBe(first(all).comparabilityKey);
  });

  test('runs a provider as requested, and words by their normaliser', async () => {
    const log = at('compared.log');
    writeFileSync(log, '');
    const { ORT_HOME, ...fake } = fakeProviders('AveragePool,Reshape', log);
    for (const [name, value] of Object.entries(fake)) vi.stubEnv(name, value);
    const place = [
      '--onnxruntime',
      ORT_HOME!,
      '--provider-option',
      'use_tf32=0',
      '--allow-fallback',
      '--device',
      '0',
    ];
    const onGpu = await run(...line('-o', at('gpu'), ...place).with(9, 'ort-cuda'));
    vi.unstubAllEnvs();
    expect(readFileSync(log, 'utf8')).toContain('use_tf32');
    expect(JSON.stringify(onGpu)).toContain('CUDA');
    const words = [
      'compare-backends',
      models.meta!,
      '--data',
      at('ref.tsv'),
      '--audio-dir',
      sounds,
      '--backends',
      'ort-cpu',
    ];
    expect(await run(...words, '--normalizer', 'whisper-en', '-o', at('spoken'))).toMatchObject({
      task: 'wer',
    });
  });
});
