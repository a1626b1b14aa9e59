import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, describe, expect, test } from 'vitest';
import { calibrationOf } from '../../../src/engines/calibration/calibration.js';
import {
  preparedSamples,
  readSamples,
  repeatedFiles,
} from '../../../src/engines/calibration/read-samples.js';
import { preparedImages, preprocessingOf } from '../../../src/engines/run/image-inputs.js';
import type { Binding } from '../../../src/engines/runtime/session.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { float32Values, integerTensor, type Tensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { toneFile } from '../../report/tone.js';
import { writeReference } from '../../support/write-reference.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-samples-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const floats = (shape: readonly number[], first = 1): Tensor => {
  const count = shape.reduce((product, size) => product * size, 1);
  return tensorFrom(
    'float32',
    shape,
    Float32Array.from({ length: count }, (_, at) => first + at),
  );
};
let files = 0;
const place = (name: string) => join(folder, `${++files}-${name}`);
const npz = (tensors: Readonly<Record<string, Tensor>>, compress = false) => {
  const path = place('x.npz');
  writeNpz(path, new Map(Object.entries(tensors)), { compress });
  return path;
};
const npy = (tensor: Tensor) => {
  const path = place('x.npy');
  writeNpy(path, tensor);
  return path;
};
const input = (name: string, shape: Binding['shape'], dtype: Binding['dtype'] = 'float32'): Binding => ({
  name,
  dtype,
  shape,
});

/** Shapes and first values of every sample, by input. */
async function samplesIn(data: readonly string[], inputs: readonly Binding[], preparation = {}) {
  const samples: Record<string, [readonly number[], number | undefined]>[] = [];
  for await (const tensors of preparedSamples(readSamples(data, preparation), inputs, undefined))
    samples.push(
      Object.fromEntries(
        [...tensors].map(([name, tensor]) => [name, [tensor.shape, float32Values(tensor)[0]]]),
      ),
    );
  return samples;
}
const images = [input('x', ['batch', 3, 8, 8])];
const batch = [input('x', ['batch', 2])];

describe('arrays', () => {
  test.each([
    ['an npz is one sample', npz({ x: floats([1, 2]) }), batch, [[[1, 2], 1]]],
    [
      'or several along an open batch',
      npz({ x: floats([3, 2]) }),
      batch,
      [
        [[1, 2], 1],
        [[1, 2], 3],
        [[1, 2], 5],
      ],
    ],
    [
      'compressed too',
      npz({ x: floats([2, 2]) }, true),
      batch,
      [
        [[1, 2], 1],
        [[1, 2], 3],
      ],
    ],
    [
      'an npy has samples along its first axis',
      npy(floats([2, 2])),
      batch,
      [
        [[1, 2], 1],
        [[1, 2], 3],
      ],
    ],
    [
      'of the batch that the model has',
      npy(floats([4, 2])),
      [input('x', [2, 2])],
      [
        [[2, 2], 1],
        [[2, 2], 5],
      ],
    ],
    [
      'or without one',
      npy(floats([2, 1, 2])),
      [input('x', [1, 2])],
      [
        [[1, 2], 1],
        [[1, 2], 3],
      ],
    ],
    ['one open axis is a length', npy(floats([5])), [input('x', ['n'])], [[[5], 1]]],
    ['an array that is a sample stays one', npy(floats([2, 2])), [input('x', [2, 2])], [[[2, 2], 1]]],
    [
      'of another float type',
      npy(tensorFrom('float64', [1, 2], Float64Array.of(7, 8))),
      batch,
      [[[1, 2], 7]],
    ],
  ] as const)('%s', async (_what, path, inputs, expected) => {
    expect(await samplesIn([path], inputs)).toEqual(expected.map((x) => ({ x })));
  });

  test('of another kind are to be cast', async () => {
    const ones = npz({ x: integerTensor('int32', [1, 2], [1, 1]) });
    await expect(samplesIn([ones], batch)).rejects.toMatchObject({
      code: 'TF_SESSION_INPUT',
      remedy: expect.stringContaining('float32'),
    });
  });

  test('of several inputs are cut together', async () => {
    const inputs = [input('x', ['batch', 2]), input('n', ['batch'], 'int64')];
    const n = integerTensor('int64', [2], [5, 6]);
    const cut = [
      { x: [[1, 2], 1], n: [[1], 5] },
      { x: [[1, 2], 3], n: [[1], 6] },
    ];
    const single = [{ x: [[2, 2], 1], n: [[2], 5] }];
    expect(await samplesIn([npz({ x: floats([2, 2]), n })], inputs)).toEqual(cut);
    // One open axis of another name could be a length.
    const length = [input('x', ['batch', 2]), input('n', ['count'], 'int64')];
    expect(await samplesIn([npz({ x: floats([2, 2]), n })], length)).toEqual(single);
    const fixed = [input('x', [1, 2]), input('n', [1], 'int64')];
    expect(await samplesIn([npz({ x: floats([2, 2]), n })], fixed)).toEqual(cut);
    expect(await samplesIn([`x=@${npy(floats([2, 2]))}`, `n=@${npy(n)}`], fixed)).toEqual(cut);
  });

  test('of several files follow each other', async () => {
    const list = place('list.txt');
    const [one, two] = [npz({ x: floats([1, 2]) }), npy(floats([2, 2], 10))];
    writeFileSync(list, `# samples\n${one}\n\n${two.slice(folder.length + 1)}\n`);
    const expected = [
      [[1, 2], 1],
      [[1, 2], 10],
      [[1, 2], 12],
    ].map((x) => ({ x }));
    expect(await samplesIn([one, two], batch)).toEqual(expected);
    expect(await samplesIn([list], batch)).toEqual(expected);
  });

  test.each([
    ['a name that is no input', [npz({ y: floats([1, 2]) })], batch, 'TF_SESSION_INPUT', /x\.npz .*"y"/],
    ['an input that is missing', [npz({})], batch, 'TF_SESSION_INPUT', /"x"/],
    ['another rank', [npz({ x: floats([1, 2, 3, 4]) })], batch, 'TF_SESSION_INPUT', /x\.npz/],
    ['another size', [npz({ x: floats([1, 3]) })], batch, 'TF_SESSION_INPUT', /\[1, 3\]/],
    [
      'integers for floats',
      [npz({ x: integerTensor('int64', [1, 2], [1, 2]) })],
      batch,
      'TF_SESSION_INPUT',
      /int64/,
    ],
    [
      'rows that do not fill a batch',
      [npz({ x: floats([3, 2]) })],
      [input('x', [2, 2])],
      'TF_CALIBRATION_INVALID',
      /x\.npz has 3 rows of x/,
    ],
    [
      'NaN',
      [npz({ x: floats([1, 2], Number.NaN) })],
      batch,
      'TF_CALIBRATION_INVALID',
      /x has NaN in .*x\.npz/,
    ],
    ['an infinity', [npz({ x: floats([1, 2], 1 / 0) })], batch, 'TF_CALIBRATION_INVALID', /infinity/],
    [
      'zeros',
      [npz({ x: tensorFrom('float32', [4, 2], new Float32Array(8)) })],
      batch,
      'TF_CALIBRATION_INVALID',
      /x is 0/,
    ],
    [
      'an array for one of two',
      [npy(floats([2, 2]))],
      [...batch, input('y', [1])],
      'TF_CALIBRATION_INVALID',
      /x, y/,
    ],
    [
      'other numbers of samples',
      [`x=@${npy(floats([2, 2]))}`, `y=@${npy(floats([3, 2]))}`],
      [input('x', [1, 2]), input('y', [1, 2])],
      'TF_CALIBRATION_INVALID',
      /2 samples, but 3 of y/,
    ],
    [
      'text',
      [join(import.meta.dirname, 'read-samples.test.ts')],
      batch,
      'TF_CALIBRATION_INVALID',
      /test\.ts/,
    ],
    [
      'a folder without samples',
      [import.meta.dirname],
      batch,
      'TF_CALIBRATION_INVALID',
      /no file with samples/,
    ],
    ['nothing', [join(folder, 'absent.npz')], batch, 'TF_FILE_NOT_FOUND', /absent\.npz/],
  ] as const)('%s is an error', async (_what, data, inputs, code, message) => {
    await expect(samplesIn(data, inputs)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });
});

describe('images', async () => {
  const pictures = join(folder, 'pictures');
  mkdirSync(pictures);
  writeFileSync(join(pictures, 'labels.csv'), 'a,1\n');
  for (const [name, level] of [
    ['b.png', 200],
    ['a.jpg', 90],
  ] as const)
    await sharp({ create: { width: 12, height: 9, channels: 3, background: { r: level, g: 10, b: 30 } } })
      .toFormat(name.endsWith('jpg') ? 'jpeg' : 'png')
      .toFile(join(pictures, name));

  test('of a folder become what the evaluation makes of them, in the order of their names', async () => {
    const preprocessing = preprocessingOf(images, 'imagenet', 224);
    const expected: (number | undefined)[] = [];
    const paths = ['a.jpg', 'b.png'].map((name) => join(pictures, name));
    for await (const { tensor } of preparedImages(images, paths, preprocessing))
      expected.push(float32Values(tensor)[0]);
    const samples = await samplesIn([pictures], images, { preprocess: 'imagenet' });
    expect(samples).toEqual(expected.map((value) => ({ x: [[1, 3, 8, 8], value] })));
  });

  test('have the size asked for where the model leaves it open', async () => {
    const [sample] = await samplesIn([pictures], [input('x', [1, 3, null, null])], {
      preprocess: 'yolo',
      imgsz: 32,
    });
    expect(sample?.x?.[0]).toEqual([1, 3, 32, 32]);
  });

  test.each([[undefined], ['cover']])('prepared as %s are an error', (preprocess) => {
    expect(() => readSamples([pictures], { preprocess })).toThrow(
      expect.objectContaining({ code: 'TF_USAGE' }),
    );
  });

  test('are for models that take images', () => {
    const calibration = calibrationOf({ data: [pictures], preprocess: 'yolo' });
    expect(calibration.forComponent?.('encoder', images)).toBeDefined();
    expect(calibration.forComponent?.('encoder', batch)).toBeUndefined();
  });

  test('the preparation is part of the digest', () => {
    const digest = (preprocess: string, imgsz?: number) =>
      calibrationOf({ data: [pictures], preprocess, imgsz }).digest();
    expect(new Set([digest('yolo'), digest('yolo', 320), digest('rt-detr')]).size).toBe(3);
    expect(digest('yolo', 640)).toBe(digest('yolo'));
  });
});

describe('a file that is named twice', () => {
  const twice = place('twice');
  mkdirSync(twice);
  for (const [at, name] of ['a.npy', 'b.npy'].entries()) writeNpy(join(twice, name), floats([1, 2], at));
  symlinkSync(twice, `${twice}-link`);
  const list = `${twice}.txt`;
  writeFileSync(list, `${join(twice, 'a.npy')}\n${join(twice, 'a.npy')}\n`);

  test.each([
    ['a folder twice', [twice, twice], '2 files are named more than once among the samples'],
    ['a folder and a link to it', [twice, `${twice}-link`], '2 files are named more than once'],
    ['a folder and a file of it', [twice, join(twice, 'b.npy')], 'b.npy is named more than once'],
    ['a list that repeats', [list, join(twice, 'b.npy')], 'a.npy is named more than once'],
  ])('counts once: %s', async (_, data, warning) => {
    expect(await samplesIn(data, batch)).toEqual(await samplesIn([twice], batch));
    expect(repeatedFiles(data)).toContain(warning);
  });

  test('may be that of two inputs', () => {
    const path = join(twice, 'a.npy');
    expect(repeatedFiles([`x=@${path}`, `y=@${path}`])).toBeNull();
    expect(repeatedFiles([twice])).toBeNull();
  });
});

describe('audio', () => {
  const { file: wav } = toneFile(folder);

  test('becomes features of as many mels as the encoder has, and their length', async () => {
    const encoder = [input('signal', [1, 64, null]), input('length', [1], 'int64')];
    const [sample] = await samplesIn([wav], encoder);
    expect(sample?.signal?.[0]).toEqual([1, 64, 20]);
    expect(sample?.length).toEqual([[1], 20]);
  });

  test('is for such encoders only', async () => {
    const isFor = (inputs: readonly Binding[]) =>
      calibrationOf({ data: [wav] }).forComponent?.('encoder', inputs);
    expect(isFor([input('signal', [1, 64, null])])).toBeDefined();
    expect(isFor(images)).toBeUndefined();
    await expect(samplesIn([wav], images)).rejects.toMatchObject({ code: 'TF_SESSION_BINDING' });
  });
});

describe('a recorded stream', () => {
  const chunks = [1, 5].map((first, index) => ({
    index,
    inputs: new Map([
      ['x', floats([1, index + 1, 2], first)],
      ['cache', floats([1, 2], 10 * first)],
    ]),
    outputs: new Map([['y', floats([1])]]),
    metadata: { step: index },
  }));
  const inputs = [input('x', [1, 'frames', 2]), input('cache', [1, 2])];
  const recorded = async (name: string) => (await writeReference(place(name), chunks)).path;

  test('each chunk is a sample, with its states', async () => {
    expect(await samplesIn([await recorded('r.jsonl')], inputs)).toEqual([
      { x: [[1, 1, 2], 1], cache: [[1, 2], 10] },
      { x: [[1, 2, 2], 5], cache: [[1, 2], 50] },
    ]);
  });

  test('has the digest of its inputs, as npz files have it', async () => {
    const digest = (...data: string[]) => calibrationOf({ data }).digest();
    const path = await recorded('r.jsonl');
    const files = chunks.map((chunk) => npz(Object.fromEntries(chunk.inputs)));
    expect(digest(...files)).toBe(digest(path));
    expect(digest(files[0]!)).not.toBe(digest(path));
  });

  test('a path in a list may be one; a damaged line is an error', async () => {
    const path = await recorded('r.jsonl');
    const list = place('list.txt');
    writeFileSync(list, `${path}\n${await recorded('again.jsonl')}\n`);
    expect(await samplesIn([list], inputs)).toHaveLength(4);
    writeFileSync(path, `${readFileSync(path, 'utf8')}{"chunk_idx": 2, "inputs"`);
    await expect(samplesIn([path], inputs)).rejects.toMatchObject({ code: 'TF_REFERENCE_INVALID' });
    expect(() => calibrationOf({ data: [path] }).digest()).toThrow(
      expect.objectContaining({ code: 'TF_REFERENCE_INVALID' }),
    );
  });
});

test('of several data those count whose tensors a model takes', async () => {
  const recorded = await writeReference(place('r.jsonl'), [
    {
      index: 0,
      inputs: new Map([['state', floats([1, 2])]]),
      outputs: new Map([['y', floats([1])]]),
      metadata: {},
    },
  ]);
  const named = `y=@${npy(floats([4, 2]))}`;
  const [x, only] = [npz({ x: floats([1, 2]) }), npy(floats([1, 2]))];
  const data = [x, named, only, recorded.path];
  const filesFor = (...inputs: readonly Binding[]) =>
    calibrationOf({ data }).forComponent?.('encoder', inputs)?.facts?.().data;
  expect(filesFor(input('x', ['batch', 2]))).toEqual([x, only]);
  expect(filesFor(input('x', ['batch', 2]), input('y', ['batch', 2]))).toEqual([x, named]);
  expect(filesFor(input('state', [1, 2]), input('more', [1, 2]))).toEqual([recorded.path]);
  expect(filesFor(input('z', [1, 2]), input('more', [1, 2]))).toBeUndefined();
});

test('the order of samples is part of the digest where it decides the bins of a histogram', () => {
  const [one, two] = [npz({ x: floats([1, 2]) }), npz({ x: floats([1, 2], 5) })];
  const digest = (method: string, ...data: string[]) => calibrationOf({ data, method }).digest();
  expect(digest('max', one, two)).toBe(digest('max', two, one));
  expect(digest('entropy', one, two)).not.toBe(digest('entropy', two, one));
  // What an npy holds counts, not how it is stored.
  expect(digest('max', npz({ x: floats([1, 2]) }, true))).toBe(digest('max', one));
});
