import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { attribute } from '../../../src/formats/onnx/index.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import { floats, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { detector, paintCells } from '../../products/evaluation/detection/coloured-cells.js';
import { paint } from '../../products/evaluation/image-networks.js';
import { toneFile } from '../../report/tone.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-worst-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const cells = join(folder, 'images');
const colours = join(folder, 'colours');

beforeAll(async () => {
  await paintCells(folder);
  mkdirSync(colours);
  await paint(colours, { 'blue.png': [10, 20, 250], 'green.png': [10, 250, 20], 'red.png': [250, 20, 10] });
});

const worstOf = async (request: Parameters<typeof verifyModel>[0]) =>
  (await verifyModel({ errorMap: true, threads: 1, ...request })).worstSamples;

test('a picture on which the candidate loses a box comes first, with the boxes of both sides', async () => {
  const reference = await detector();
  const candidate = await detector(undefined, [64, 64], [1, 0.2, 1]);
  const data = { files: [cells], preprocess: 'yolo' };
  const worst = await worstOf({ reference, candidate, data });
  expect(worst).toHaveLength(2);
  const file = join(cells, '7.png');
  expect(worst![0]).toMatchObject({
    ...{ file, sample: 0, size: { width: 64, height: 64 }, lost: 1, new: 0 },
    sha256: createHash('sha256').update(readFileSync(file)).digest('hex'),
    reference: {
      boxes: [
        { label: 'red', box: [8, 16, 8, 8], alone: false },
        { label: 'green', box: [40, 48, 8, 8], alone: true },
      ],
    },
    candidate: { boxes: [{ label: 'red', alone: false }] },
  });
  expect(worst![1]).toMatchObject({ file: join(cells, '9.png'), lost: 0, new: 0 });
  // The error is as far beyond its limit there: only decisions put the first one first.
  expect(Number(worst![1]!.share)).toBeGreaterThan(Number(worst![0]!.share));
  expect(await worstOf({ reference, candidate, data, errorMap: false })).toBeUndefined();
  expect(await worstOf({ reference, candidate })).toBeUndefined();
});

/** The class of the strongest colour, of any number of pictures at once. */
const classifier = (factors: readonly [number, number, number]) =>
  modelFile(
    (graph) => {
      graph.input('image', 'float32', ['n', 3, 16, 16]);
      graph.initializer('factors', floats('float32', [1, 3], factors));
      graph.node('GlobalAveragePool', { inputs: ['image'], outputs: ['pooled'] });
      graph.node('Flatten', { inputs: ['pooled'], outputs: ['means'] });
      graph.node('Mul', { inputs: ['means', 'factors'], outputs: ['scores'] });
      const attributes = { axis: attribute.int(1) };
      graph.node('Softmax', { inputs: ['scores'], outputs: ['probabilities'], attributes });
      graph.output('probabilities', 'float32', ['n', 3]);
    },
    { metadata: { names: "{0: 'red', 1: 'green', 2: 'blue'}" } },
  );

test.each([1, 3])('a class that turns, in batches of %i', async (batch) => {
  const [reference, candidate] = [await classifier([9, 9, 9]), await classifier([9, 0.1, 9])];
  const data = { files: [colours], preprocess: 'yolo', imgsz: 16 };
  const worst = await worstOf({
    reference,
    candidate,
    data,
    shapes: new Map([['image', [batch, 3, 16, 16]]]),
  });
  expect(worst!.map(({ file, lost }) => [file, lost])).toEqual(
    expect.arrayContaining([[join(colours, 'green.png'), 1]]),
  );
  expect(worst![0]).toMatchObject({
    file: join(colours, 'green.png'),
    reference: { kind: 'class', label: 'green' },
    candidate: { kind: 'class', label: expect.not.stringMatching('green') },
  });
  expect(worst).toHaveLength(3);
  expect(worst!.filter(({ lost }) => lost > 0)).toHaveLength(1);
});

test('recordings are listed by their error alone', async () => {
  const encoder = (factor: number) =>
    modelFile((graph) => {
      graph.input('signal', 'float32', [1, 64, 't']);
      graph.initializer('factor', floats('float32', [], [factor]));
      graph.node('Mul', { inputs: ['signal', 'factor'], outputs: ['encoded'] });
      graph.output('encoded', 'float32', [1, 64, 't']);
    });
  const { file, sha256 } = toneFile(folder);
  const worst = await worstOf({
    ...{ reference: await encoder(1), candidate: await encoder(2) },
    data: { files: [file] },
  });
  expect(worst).toEqual([
    {
      ...{ sample: 0, file, sha256, size: null, share: expect.any(Number) },
      ...{ reference: null, candidate: null, lost: 0, new: 0 },
    },
  ]);
  expect(Number(worst![0]!.share)).toBeGreaterThan(1);
});
