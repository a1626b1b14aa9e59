import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../../src/errors.js';
import { attribute } from '../../../../src/formats/onnx/index.js';
import { evaluateCoco } from '../../../../src/products/evaluation/detection/coco.js';
import { detectorResultSchema } from '../../../../src/products/evaluation/detection/detector-result.js';
import {
  type EvaluateDetectorRequest,
  evaluateDetector,
} from '../../../../src/products/evaluation/detection/evaluate-detector.js';
import { floats, ids, modelFile } from '../../../engines/runtime/onnxruntime/models.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-detector-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Cells of 8 pixels; a class a colour, whose score is the mean level of the cell. */
const CELL = 8;
const SIZE = 64;
const COLUMNS = SIZE / CELL;
const COLOURS = ['red', 'green', 'blue'];
const boxes = Array.from({ length: COLUMNS ** 2 }, (_, cell) => [
  ((cell % COLUMNS) + 0.5) * CELL,
  (Math.floor(cell / COLUMNS) + 0.5) * CELL,
  CELL,
  CELL,
]);

/** A detector of coloured cells with the outputs of YOLO: [1,4+3,64]. */
const detector = (names: string | null = "{0: 'red', 1: 'green', 2: 'blue'}") =>
  modelFile(
    (graph) => {
      graph.input('images', 'float32', [1, 3, SIZE, SIZE]);
      graph.initializer('cells', ids([3], [1, 3, COLUMNS ** 2]));
      graph.initializer(
        'boxes',
        floats(
          'float32',
          [1, 4, boxes.length],
          [0, 1, 2, 3].flatMap((side) => boxes.map((box) => box[side]!)),
        ),
      );
      graph.node('AveragePool', {
        inputs: ['images'],
        outputs: ['means'],
        attributes: { kernel_shape: attribute.ints([CELL, CELL]), strides: attribute.ints([CELL, CELL]) },
      });
      graph.node('Reshape', { inputs: ['means', 'cells'], outputs: ['scores'] });
      graph.node('Concat', {
        inputs: ['boxes', 'scores'],
        outputs: ['output0'],
        attributes: { axis: attribute.int(1) },
      });
      graph.output('output0', 'float32', [1, 7, COLUMNS ** 2]);
    },
    names === null ? {} : { metadata: { names } },
  );

interface Painted {
  readonly id: number;
  readonly width: number;
  readonly height: number;
  /** In pixels of the image. */
  readonly cells: readonly {
    readonly colour: number;
    readonly box: readonly [number, number, number, number];
  }[];
}
/** At a scale of 1, and of 2 with 16 rows of padding above and below: 128 by 64 becomes 64 by 32. */
const images: readonly Painted[] = [
  {
    id: 7,
    width: 64,
    height: 64,
    cells: [
      { colour: 0, box: [8, 16, 8, 8] },
      { colour: 1, box: [40, 48, 8, 8] },
    ],
  },
  {
    id: 9,
    width: 128,
    height: 64,
    cells: [
      { colour: 2, box: [32, 16, 16, 16] },
      { colour: 0, box: [112, 48, 16, 16] },
    ],
  },
];

async function paint({ id, width, height, cells }: Painted): Promise<void> {
  const pixels = Buffer.alloc(3 * width * height);
  for (const { colour, box } of cells)
    for (let y = box[1]; y < box[1] + box[3]; y++)
      for (let x = box[0]; x < box[0] + box[2]; x++) pixels[3 * (y * width + x) + colour] = 255;
  await sharp(pixels, { raw: { width, height, channels: 3 } })
    .png()
    .toFile(at(`images/${id}.png`));
}

/** Category ids have gaps, and their order is not that of the labels. */
const categoryIds = [11, 5, 90];
const instancesOf = (painted: readonly Painted[]) => ({
  images: painted.map(({ id, width, height }) => ({ id, width, height, file_name: `val/${id}.png` })),
  categories: COLOURS.map((name, colour) => ({ id: categoryIds[colour], name: name.toUpperCase() })),
  annotations: painted
    .flatMap(({ id, cells }) => cells.map((cell) => ({ image_id: id, ...cell })))
    .map(({ image_id, colour, box }, index) => ({
      id: index + 1,
      image_id,
      category_id: categoryIds[colour],
      bbox: box,
      area: box[2] * box[3],
      iscrowd: 0,
    })),
});

let request: EvaluateDetectorRequest;
beforeAll(async () => {
  mkdirSync(at('images'));
  for (const image of images) await paint(image);
  writeFileSync(at('instances.json'), JSON.stringify(instancesOf(images)));
  request = {
    model: await detector(),
    instances: at('instances.json'),
    imagesDir: at('images'),
    preprocess: 'yolo',
    imgsz: 640,
    conf: 0.5,
    iou: 0.7,
    maxDet: 300,
    preNmsTopk: 30_000,
    agnosticNms: false,
    warmupRuns: 1,
    skipLatency: 0,
    open: {},
  };
});
const codeOf = (change: Partial<EvaluateDetectorRequest>) =>
  evaluateDetector({ ...request, ...change }).then(
    () => 'no error',
    (error) => (error instanceof TrtforgeError ? error.code : String(error)),
  );

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
      imgsz: 64,
      conf: 0.5,
      max_det: 300,
      metrics: { num_detections: 4 },
      latency: { throughput_fps: expect.any(Number) },
      comparability_key: result.comparabilityKey,
    });
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

describe('what does not fit', () => {
  it('a model without names needs --labels', async () => {
    const model = await detector(null);
    expect(await codeOf({ model })).toBe('TF_EVAL_DATA');
    writeFileSync(at('labels.txt'), 'red\ngreen\nblue\n');
    expect(
      (await evaluateDetector({ ...request, model, labels: at('labels.txt') })).metrics.mAP_50,
    ).toBeCloseTo(1, 9);
  });

  it('labels that lack a category of the truth are TF_EVAL_DATA, another number of them TF_EVAL_HEAD', async () => {
    writeFileSync(at('other.txt'), 'red\ngreen\ncyan\n');
    writeFileSync(at('more.txt'), 'red\ngreen\nblue\ncyan\n');
    expect(await codeOf({ labels: at('other.txt') })).toBe('TF_EVAL_DATA');
    expect(await codeOf({ labels: at('more.txt') })).toBe('TF_EVAL_HEAD');
  });

  it('a missing image is TF_EVAL_DATA unless it is allowed, and then what is on it is not found', async () => {
    writeFileSync(at('three.json'), JSON.stringify(instancesOf([...images, { ...images[0]!, id: 12 }])));
    const change = { instances: at('three.json') };
    expect(await codeOf(change)).toBe('TF_EVAL_DATA');
    const result = await evaluateDetector({ ...request, ...change, allowMissing: 1 });
    expect(result.warnings.map(({ kind }) => kind)).toContain('allowed-missing-file');
    expect(result.metrics.mAP_50).toBeLessThan(0.9);
  });

  it('a damaged image and a folder without images have codes of their own', async () => {
    mkdirSync(at('damaged'));
    writeFileSync(at('damaged/7.png'), 'no image');
    writeFileSync(at('damaged/9.png'), 'no image');
    expect(await codeOf({ imagesDir: at('damaged') })).toBe('TF_IMAGE_INVALID');
    expect(await codeOf({ imagesDir: at('nowhere'), allowMissing: 2 })).toBe('TF_EVAL_DATA');
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
