import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { evaluateCoco } from '../../../../src/products/evaluation/coco/coco.js';
import type { EvaluateDetectorRequest } from '../../../../src/products/evaluation/detection/detector.js';
import { evaluateDetector } from '../../../../src/products/evaluation/detection/evaluate-detector.js';
import { detectorResultSchema } from '../../../../src/products/evaluation/detection/result.js';
import { modelFile } from '../../../engines/runtime/onnxruntime/models.js';
import { channelsLastTwin } from '../../../support/channels-last.js';
import { codeOfWork } from '../../../support/refusal.js';
import { cellSettings, detector, images, instancesOf, paintCells } from './coloured-cells.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-detector-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let request: EvaluateDetectorRequest;
beforeAll(async () => {
  await paintCells(folder);
  request = {
    model: await detector(),
    instances: at('instances.json'),
    imagesDir: at('images'),
    preprocess: 'yolo',
    imgsz: 640,
    ...cellSettings,
  };
});
const codeOf = (change: Partial<EvaluateDetectorRequest>) =>
  codeOfWork(evaluateDetector({ ...request, ...change }));

describe('a detector that finds every cell', () => {
  it('has an mAP of 1, in letterboxed images too', async () => {
    const result = await evaluateDetector({ ...request, output: at('run') });
    expect(detectorResultSchema.parse(result)).toEqual(result);
    expect(result.metrics).toMatchObject({ num_images: 2, num_detections: 4 });
    expect(result.metrics.mAP_50_95).toBeCloseTo(1, 9);
    expect(result.run).toMatchObject({
      head: { kind: 'boxes', scores: 'probabilities', needsNms: true },
      labels: { count: 3 },
      candidate: { kind: 'model', backEnd: 'onnxruntime-cpu', identity: null },
      settings: { imgsz: [64, 64] },
      latency: { count: 2 },
      memory: { peakHostBytes: expect.any(Number), gpuBytes: null },
      firstInput: { id: 7 },
    });
    const written = JSON.parse(readFileSync(at('run/detections.json'), 'utf8')) as readonly {
      bbox: number[];
    }[];
    expect(written.map(({ bbox }) => bbox)).toEqual(
      expect.arrayContaining(images.flatMap(({ cells }) => cells.map(({ box }) => [...box]))),
    );
    const metrics = JSON.parse(readFileSync(at('run/metrics.json'), 'utf8'));
    expect(metrics).toMatchObject({
      data_root: folder,
      imgsz: 64,
      conf: 0.5,
      max_det: 300,
      metrics: { num_detections: 4 },
      latency: { throughput_fps: expect.any(Number) },
      comparability_key: result.comparabilityKey,
    });
  });

  it('has the same detections where it takes NHWC, and where it has masks', async () => {
    const detections = async (model: string, output: string) => {
      const { stats } = await evaluateDetector({ ...request, model, output: at(output) });
      return [stats, JSON.parse(readFileSync(at(`${output}/detections.json`), 'utf8'))];
    };
    const twin = await channelsLastTwin(request.model);
    const expected = await detections(request.model, 'nchw');
    expect(await detections(twin, 'nhwc')).toEqual(expected);
    const segmenter = await detector(undefined, undefined, undefined, true);
    expect(await detections(segmenter, 'masks')).toEqual(expected);
    const { run } = await evaluateDetector({ ...request, model: segmenter });
    expect(run.head).toMatchObject({ kind: 'boxes', masks: { prototypes: 'output1', axis: 1 } });
  });

  it('its results file scores the same by itself, under a key of its own', async () => {
    const result = await evaluateDetector({ ...request, output: at('again') });
    const scored = await evaluateCoco({
      instances: request.instances,
      detections: at('again/detections.json'),
    });
    expect(scored.stats).toEqual(result.stats);
    expect(scored.dataDigest).toBe(result.dataDigest);
    expect(scored.comparabilityKey).not.toBe(result.comparabilityKey);
  });

  it('settings that decide detections are part of the key', async () => {
    const key = async (change: Partial<EvaluateDetectorRequest>) =>
      (await evaluateDetector({ ...request, ...change })).comparabilityKey;
    const plain = await key({});
    expect(await key({ warmupRuns: 0, skipLatency: 1 })).toBe(plain);
    expect(await key({ iou: 0.6 })).not.toBe(plain);
    expect(await key({ maxImages: 1 })).not.toBe(plain);
  });
});

it('other images of the same names are not comparable, the same files elsewhere are', async () => {
  const plain = await evaluateDetector(request);
  for (const [name, content] of [
    ['copied', 7],
    ['other', 9],
  ] as const) {
    mkdirSync(at(name));
    copyFileSync(at(`images/${content}.png`), at(`${name}/7.png`));
    copyFileSync(at('images/9.png'), at(`${name}/9.png`));
  }
  const copied = await evaluateDetector({ ...request, imagesDir: at('copied') });
  const other = await evaluateDetector({ ...request, imagesDir: at('other') });
  expect([copied.comparabilityKey, copied.run.imagesDigest]).toEqual([
    plain.comparabilityKey,
    plain.run.imagesDigest,
  ]);
  expect(other.dataDigest).toBe(plain.dataDigest);
  expect(other.comparabilityKey).not.toBe(plain.comparabilityKey);
});

describe('what does not fit', () => {
  it('a model without names needs --labels', async () => {
    const model = await detector(null);
    expect(await codeOf({ model })).toBe('TF_EVAL_DATA');
    writeFileSync(at('labels.txt'), 'red\ngreen\nblue\n');
    expect(
      (await evaluateDetector({ ...request, model, labels: at('labels.txt') })).metrics.mAP_50,
    ).toBeCloseTo(1, 9);
    const named = await evaluateDetector({ ...request, model, namedBy: request.model });
    expect(named.metrics.mAP_50).toBeCloseTo(1, 9);
  });

  it('labels that lack a category of the truth are TF_EVAL_DATA, another number of them TF_EVAL_HEAD', async () => {
    writeFileSync(at('other.txt'), 'red\ngreen\ncyan\n');
    writeFileSync(at('more.txt'), 'red\ngreen\nblue\ncyan\n');
    expect(await codeOf({ labels: at('other.txt') })).toBe('TF_EVAL_DATA');
    expect(await codeOf({ labels: at('more.txt') })).toBe('TF_EVAL_HEAD');
  });

  it('labels that the model names otherwise are counted, and are those of --labels', async () => {
    const labels = at('swapped.txt');
    const swapped = async (names: string | null, lines: string) => {
      writeFileSync(labels, lines);
      const { warnings, run } = await evaluateDetector({ ...request, model: await detector(names), labels });
      expect(run.labels.from).toBe(labels);
      return warnings.filter(({ kind }) => kind === 'contradicting-label').map(({ count }) => count);
    };
    const names = "{0: 'red', 1: 'green', 2: 'blue'}";
    expect(await swapped(names, 'Red\ngreen\nblue\n')).toEqual([]);
    expect(await swapped(names, 'green\nred\nblue\n')).toEqual([2]);
    expect(await swapped("{0: 'red', 2: 'blue', 3: 'cyan'}", 'red\ngreen\nblue\n')).toEqual([2]);
    expect(await swapped(null, 'green\nred\nblue\n')).toEqual([]);
  });

  it('a missing image is TF_EVAL_DATA unless it is allowed, and then what is on it is not found', async () => {
    writeFileSync(at('three.json'), JSON.stringify(instancesOf([...images, { ...images[0]!, id: 12 }])));
    const change = { instances: at('three.json') };
    expect(await codeOf(change)).toBe('TF_EVAL_DATA');
    const result = await evaluateDetector({ ...request, ...change, allowMissing: 1 });
    expect(result.warnings.map(({ kind }) => kind)).toContain('allowed-missing-file');
    expect(result.metrics.mAP_50).toBeLessThan(0.9);
    copyFileSync(at('images/7.png'), at('images/12.png'));
    const whole = await evaluateDetector({ ...request, ...change, output: at('whole') });
    rmSync(at('images/12.png'));
    expect(whole.dataDigest).toBe(result.dataDigest);
    expect(whole.comparabilityKey).not.toBe(result.comparabilityKey);
    await evaluateDetector({ ...request, ...change, allowMissing: 1, output: at('partial') });
    const warningsOf = (run: string) => JSON.parse(readFileSync(at(`${run}/metrics.json`), 'utf8')).warnings;
    expect(warningsOf('whole')).toEqual([]);
    expect(warningsOf('partial')).toMatchObject([{ kind: 'allowed-missing-file', count: 1 }, {}]);
  });

  it('images of one name in different folders are different images, and one file is one image', async () => {
    const nested = instancesOf(images);
    const [first, second] = nested.images;
    nested.images = [
      { ...first!, file_name: 'a/1.png' },
      { ...second!, file_name: 'b/1.png' },
    ];
    writeFileSync(at('nested.json'), JSON.stringify(nested));
    for (const [folder, id] of [
      ['a', 7],
      ['b', 9],
    ] as const) {
      mkdirSync(at(`nested/${folder}`), { recursive: true });
      copyFileSync(at(`images/${id}.png`), at(`nested/${folder}/1.png`));
    }
    const change = { instances: at('nested.json'), imagesDir: at('nested') };
    expect((await evaluateDetector({ ...request, ...change })).metrics.mAP_50).toBeCloseTo(1, 9);
    mkdirSync(at('flat'));
    copyFileSync(at('images/7.png'), at('flat/1.png'));
    expect(await codeOf({ ...change, imagesDir: at('flat') })).toBe('TF_EVAL_DATA');
  });

  it('an image of another size than the instances state is counted, categories of one name are rejected', async () => {
    const instances = instancesOf(images);
    instances.images = instances.images.map((image) => (image.id === 9 ? { ...image, width: 64 } : image));
    writeFileSync(at('sizes.json'), JSON.stringify(instances));
    const result = await evaluateDetector({ ...request, instances: at('sizes.json') });
    expect(result.warnings).toMatchObject([{ kind: 'other-size', count: 1 }]);
    instances.categories[2]!.name = instances.categories[0]!.name;
    writeFileSync(at('names.json'), JSON.stringify(instances));
    expect(await codeOf({ instances: at('names.json') })).toBe('TF_EVAL_DATA');
  });

  it.each([
    ['a square image on its side', 7, 6, true, ['turned-image']],
    ['an image upside down', 9, 3, true, ['turned-image']],
    ['an image on its side, of the size that is stated', 9, 6, true, []],
    ['an image on its side, of no stated size', 9, 6, false, ['turned-image']],
    ['an image on its side, of the stored size', 9, 8, 'stored', ['other-size']],
    ['an image as it is stored', 7, 1, true, []],
  ])('%s, by EXIF', async (_, id, orientation, stated, expected) => {
    const imagesDir = at(`turned-${id}-${orientation}-${stated}`);
    mkdirSync(imagesDir);
    const { width, height } = images.find((image) => image.id === id)!;
    const turned = orientation >= 5 && stated === true ? { width: height, height: width } : { width, height };
    await sharp(at(`images/${id}.png`))
      .withMetadata({ orientation })
      .jpeg()
      .toFile(join(imagesDir, `${id}.jpg`));
    const instances = instancesOf(images.filter((image) => image.id === id));
    instances.images = instances.images.map((image) => ({
      ...image,
      ...(stated === false ? { width: undefined, height: undefined } : turned),
      file_name: `${id}.jpg`,
    })) as typeof instances.images;
    writeFileSync(join(imagesDir, 'instances.json'), JSON.stringify(instances));
    const change = { instances: join(imagesDir, 'instances.json'), imagesDir };
    const { warnings } = await evaluateDetector({ ...request, ...change });
    const kinds = warnings.map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'turned-image' || kind === 'other-size')).toEqual(expected);
  });

  describe('images that cannot be read', () => {
    const folderOf = (name: string, good: readonly number[], damaged: readonly number[]) => {
      mkdirSync(at(name), { recursive: true });
      for (const id of good) copyFileSync(at('images/9.png'), at(`${name}/${id}.png`));
      for (const id of damaged) writeFileSync(at(`${name}/${id}.png`), 'no image');
      const all = Array.from({ length: 30 }, (_, id) => ({ ...images[1]!, id }));
      writeFileSync(at(`${name}.json`), JSON.stringify(instancesOf(all)));
      return { imagesDir: at(name), instances: at(`${name}.json`) };
    };
    const range = (first: number, end: number) => Array.from({ length: end - first }, (_, at) => first + at);

    it('are TF_EVAL_DATA with the count of all, together with those that are missing', async () => {
      const change = folderOf('damaged', range(4, 28), [...range(1, 4), 28, 29]);
      await expect(evaluateDetector({ ...request, ...change, allowMissing: 3 })).rejects.toMatchObject({
        code: 'TF_EVAL_DATA',
        remedy: expect.stringContaining('--allow-missing 6'),
        details: {
          findings: [
            { kind: 'missing-file', count: 1 },
            { kind: 'unreadable-file', count: 5 },
          ],
        },
      });
    });

    it('are left out as far as --allow-missing goes, and what is on them is not found', async () => {
      const change = folderOf('half', range(0, 20), range(20, 30));
      const result = await evaluateDetector({ ...request, ...change, allowMissing: 10 });
      expect(result.warnings).toContainEqual(
        expect.objectContaining({ kind: 'allowed-unreadable-file', count: 10 }),
      );
      expect(result.metrics.num_images).toBe(30);
      expect([result.run.images, result.run.latency?.count]).toEqual([20, 20]);
      expect(result.stats[8]).toBeCloseTo(2 / 3, 9);
      const subset = at('subset.txt');
      writeFileSync(subset, range(0, 20).join('\n'));
      const whole = await evaluateDetector({ ...request, ...change, imageIds: subset });
      expect(whole.run.imagesDigest).toBe(result.run.imagesDigest);
      expect(whole.comparabilityKey).not.toBe(result.comparabilityKey);
    });

    it('and nothing else is TF_EVAL_DATA whatever is allowed, as a folder without images is', async () => {
      const change = folderOf('none', [], range(0, 30));
      expect(await codeOf({ ...change, allowMissing: 30 })).toBe('TF_EVAL_DATA');
      expect(await codeOf({ imagesDir: at('nowhere'), allowMissing: 2 })).toBe('TF_EVAL_DATA');
    });
  });

  it('a model of two inputs is TF_SESSION_BINDING', async () => {
    const model = await modelFile(
      (graph) => {
        graph.input('a', 'float32', [1, 3, 8, 8]);
        graph.input('b', 'float32', [1, 3, 8, 8]);
        graph.node('Add', { inputs: ['a', 'b'], outputs: ['c'] });
        graph.output('c', 'float32', [1, 3, 8, 8]);
      },
      { metadata: { names: "{0: 'red', 1: 'green', 2: 'blue'}" } },
    );
    expect(await codeOf({ model })).toBe('TF_SESSION_BINDING');
  });
});
