import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { readNpz } from '../../../src/formats/tensor/npz.js';
import type { RunSamplesResult } from '../../../src/quality/predictions/run-samples.js';
import { floats, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { fakeEngine } from '../../fakes/tensorrt/engine.js';
import { detector } from '../../products/evaluation/detection/coloured-cells.js';
import { channelMeans, paint } from '../../products/evaluation/image-networks.js';
import { type Answer, trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-run-samples-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
let [yolo, unnamed, means] = ['', '', ''];
let environment: NodeJS.ProcessEnv = {};

/** A picture of 640 with one cell of 80 pixels, at a place of the grid. */
async function paintCell(path: string, column: number, row: number, colour: number): Promise<void> {
  const side = 640;
  const pixels = Buffer.alloc(3 * side ** 2, 10);
  for (let y = 80 * row; y < 80 * row + 80; y++)
    for (let x = 80 * column; x < 80 * column + 80; x++) pixels[3 * (y * side + x) + colour] = 250;
  await sharp(pixels, { raw: { width: side, height: side, channels: 3 } })
    .png()
    .toFile(path);
}

beforeAll(async () => {
  [yolo, unnamed, means] = [await detector(), await detector(null), await channelMeans()];
  for (const name of ['pictures', 'more']) mkdirSync(at(name));
  await paintCell(at('pictures/a <b>&".png'), 2, 1, 0);
  await paintCell(at('pictures/b.png'), 5, 6, 2);
  await paintCell(at('more/b.png'), 1, 1, 1);
  await paint(at('colours'), { 'red.png': [250, 0, 0] });
  writeFileSync(at('labels.txt'), 'ada\nbob\n<i>cy</i>\n');
  writeFileSync(at('notes.txt'), '# none\n');
});

async function run(...args: readonly string[]) {
  const { exitCode, json } = await trtforge(['run', ...args, '--json'], environment);
  const answer = json<RunSamplesResult & Answer>();
  return { exitCode, answer, error: answer.error };
}

const drawnAt = async (path: string, x: number, y: number) => {
  const { data } = await sharp(path)
    .extract({ left: x, top: y, width: 1, height: 1 })
    .raw()
    .toBuffer({ resolveWithObject: true });
  return [...data];
};

describe('trtforge run MODEL pictures/', () => {
  it('--draw fills the masks of segmented objects', async () => {
    const segmenter = await detector(undefined, undefined, undefined, true);
    const file = at('pictures/b.png');
    const { answer, exitCode } = await run(segmenter, file, '--preprocess', 'yolo', '--draw', at('masks'));
    expect(exitCode).toBe(0);
    expect(answer.samples).toMatchObject([
      { prediction: { boxes: [{ label: 'blue', mask: { rows: 40 } }] } },
    ]);
    // The left half of the cell is filled, in a colour of the class; the right half is as it was.
    const [left, right] = [
      await drawnAt(at('masks/b.jpg'), 420, 520),
      await drawnAt(at('masks/b.jpg'), 460, 520),
    ];
    const before = [10, 10, 250];
    const change = (now: number[]) => Math.max(...now.map((level, at) => Math.abs(level - before[at]!)));
    expect(change(right)).toBeLessThan(12);
    expect(change(left)).toBeGreaterThan(40);
  });

  it('--draw writes each picture with its boxes, also of equal names', async () => {
    const { answer, exitCode } = await run(
      yolo,
      at('pictures'),
      at('more/b.png'),
      '--preprocess',
      'yolo',
      '--draw',
      at('out'),
    );
    expect(exitCode).toBe(0);
    expect(readdirSync(at('out')).sort()).toEqual(['a <b>&".jpg', 'b-2.jpg', 'b.jpg']);
    expect(answer.samples).toMatchObject([
      { prediction: { boxes: [{ label: 'red', box: [160, 80, 80, 80] }] }, drawn: at('out/a <b>&".jpg') },
      { prediction: { boxes: [{ label: 'blue', box: [400, 480, 80, 80] }] }, drawn: at('out/b.jpg') },
      { prediction: { boxes: [{ label: 'green', box: [80, 80, 80, 80] }] }, drawn: at('out/b-2.jpg') },
    ]);
    const drawn = at('out/b.jpg');
    expect(await sharp(drawn).metadata()).toMatchObject({ format: 'jpeg', width: 640, height: 640 });
    // The line of the box's left side is there; beside it and within it the picture is as it was.
    const line = await drawnAt(drawn, 400, 520);
    expect(line[1]).toBeGreaterThan(90);
    for (const [x, dark] of [
      [390, true],
      [440, false],
    ] as const) {
      const [, green = 0, blue = 0] = await drawnAt(drawn, x, 520);
      expect(green).toBeLessThan(60);
      expect(blue < 60).toBe(dark);
    }
    const { answer: named } = await run(
      unnamed,
      at('pictures/b.png'),
      '--preprocess',
      'yolo',
      '--labels',
      at('labels.txt'),
      '--draw',
      at('named'),
    );
    expect(named.samples).toMatchObject([{ prediction: { boxes: [{ label: '<i>cy</i>' }] } }]);
    expect((await drawnAt(at('named/b.jpg'), 400, 520))[1]).toBeGreaterThan(90);
  });

  it('prints what the outputs state of each, and a class', async () => {
    const { out } = await trtforge([
      'run',
      means,
      at('colours'),
      '--preprocess',
      'imagenet',
      '--imgsz',
      '16',
    ]);
    expect(out).toMatch(/red\.png {2}class 0 \d/);
  });

  it('-o writes the outputs of each sample into a folder that compare reads, and of one sample as before', async () => {
    const line = [yolo, '--inputs', at('pictures'), '--preprocess', 'yolo'];
    const { answer } = await run(...line, '-o', at('outputs'));
    expect(answer.outputs).toMatchObject([{ elements: 2 * 7 * 64, file: at('outputs'), max: 60 }]);
    expect(answer.samples?.map(({ output }) => output)).toEqual([
      at('outputs/000000.npz'),
      at('outputs/000001.npz'),
    ]);
    expect(readNpz(at('outputs/000001.npz')).get('output0')?.shape).toEqual([1, 7, 64]);
    const compared = await trtforge(['compare', at('outputs'), at('outputs'), '--json']);
    expect(compared.json<Answer & { runs: number }>().runs).toBe(2);
    await run(yolo, at('pictures/b.png'), '--preprocess', 'yolo', '-o', at('one.npz'));
    expect(readNpz(at('one.npz')).get('output0')?.shape).toEqual([1, 7, 64]);
  });

  it('an npy is a sample a row, of a model and of an engine', async () => {
    await buildAddon({ say: () => {} });
    const engine = await fakeEngine('10');
    environment = engine.environment({ TENSORRT_HOME: engine.install(at('home')) });
    engine.writePlan(at('affine.engine'), {
      kind: 'affine',
      inner: 4,
      profiles: [
        [1, 2, 4],
        [4, 8, 64],
      ],
    });
    const relu = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 4]);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', ['n', 4]);
    });
    writeNpy(at('rows.npy'), floats('float32', [3, 4], [...Array(12).keys()]));
    for (const file of [relu, at('affine.engine')]) {
      const { answer, exitCode } = await run(file, at('rows.npy'), '--iterations', '2');
      expect([exitCode, answer.samples?.length, answer.times?.iterations]).toEqual([0, 3, 6]);
      expect(answer.samples?.every(({ prediction }) => prediction === null)).toBe(true);
    }
  });
});

describe('wrong uses', () => {
  it.each<readonly [string, () => readonly string[], string, RegExp]>([
    [
      '--draw of outputs that no decoder knows',
      () => [means, at('colours'), '--preprocess', 'yolo', '--imgsz', '16', '--draw', at('no')],
      'TF_EVAL_HEAD',
      /scores/,
    ],
    ['--draw without pictures', () => [yolo, '--inputs', 'random', '--draw', at('no')], 'TF_USAGE', /--draw/],
    [
      '--draw of samples that are no pictures',
      () => [yolo, at('rows4.npy'), '--draw', at('no')],
      'TF_USAGE',
      /--draw/,
    ],
    [
      '--labels without pictures',
      () => [yolo, '--inputs', 'random', '--labels', at('labels.txt')],
      'TF_USAGE',
      /--labels/,
    ],
    [
      '--shapes with samples',
      () => [yolo, at('pictures'), '--preprocess', 'yolo', '--shapes', 'x:1x3'],
      'TF_USAGE',
      /--shapes/,
    ],
    [
      'random beside samples',
      () => [yolo, at('pictures'), '--preprocess', 'yolo', '--inputs', 'random'],
      'TF_USAGE',
      /random/,
    ],
    [
      'several samples into one file',
      () => [yolo, at('pictures'), '--preprocess', 'yolo', '-o', at('all.npz')],
      'TF_USAGE',
      /all\.npz/,
    ],
    ['pictures without a preparation', () => [yolo, at('pictures')], 'TF_USAGE', /preprocessing/],
    [
      'a file that is not there',
      () => [yolo, at('absent.png'), '--preprocess', 'yolo'],
      'TF_FILE_NOT_FOUND',
      /absent/,
    ],
    ['what is no input', () => [yolo, 'x=absent.npy'], 'TF_USAGE', /x=absent/],
    [
      'drawing into the folder of the pictures',
      () => [yolo, at('jpegs'), '--preprocess', 'yolo', '--draw', at('jpegs')],
      'TF_OUTPUT_IS_INPUT',
      /b\.jpg/,
    ],
  ])('%s', async (_, args, code, message) => {
    writeNpy(at('rows4.npy'), floats('float32', [1, 3, 64, 64], Array(3 * 64 * 64).fill(0.5)));
    mkdirSync(at('jpegs'), { recursive: true });
    await sharp(at('more/b.png')).jpeg().toFile(at('jpegs/b.jpg'));
    const { exitCode, error } = await run(...args());
    expect([exitCode, error?.code]).toEqual([2, code]);
    expect(error?.message).toMatch(message);
    expect(readdirSync(folder)).not.toContain('no');
  });
});
