import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type ClassifierRequest,
  evaluateClassifier,
} from '../../../../src/products/evaluation/classification/evaluate-classifier.js';
import { classificationResultSchema } from '../../../../src/products/evaluation/classification/result.js';
import { channelsLastTwin } from '../../../support/channels-last.js';
import { codeOfWork } from '../../../support/refusal.js';
import { channelMeans, paint } from '../image-networks.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-classify-'));
const at = (name: string) => join(folder, name);
const truth = (name: string, text: string) => {
  writeFileSync(at(name), text);
  return at(name);
};
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let request: ClassifierRequest;
beforeAll(async () => {
  await paint(at('images'), {
    'a.png': [250, 10, 10],
    'b.png': [10, 250, 10],
    'c.png': [10, 20, 250],
    'd.png': [200, 30, 10],
  });
  writeFileSync(at('labels.txt'), 'red\ngreen\nblue\n');
  request = {
    model: await channelMeans(),
    imagesDir: at('images'),
    truth: truth('truth.tsv', 'a.png\tred\nb.png\tgreen\nc.png\tblue\nd.png\tgreen\n'),
    labels: at('labels.txt'),
    preprocess: 'rt-detr',
    imgsz: 640,
    warmupRuns: 0,
    skipLatency: 0,
    open: {},
  };
});
const codeOf = (change: Partial<ClassifierRequest>) =>
  codeOfWork(evaluateClassifier({ ...request, ...change }));

it('counts what is at the top, among the five best, and what was taken for what', async () => {
  const result = await evaluateClassifier(request);
  expect(classificationResultSchema.parse(result)).toEqual(result);
  expect(result).toMatchObject({
    top1: 0.75,
    top5: 1,
    images: 4,
    classes: 3,
    confusion: [{ label: 'green', taken: 'red', count: 1 }],
    run: { latency: { count: 4 } },
  });
  expect(result.perClass).toEqual([
    { label: 'red', images: 1, top1: 1 },
    { label: 'green', images: 2, top1: 0.5 },
    { label: 'blue', images: 1, top1: 1 },
  ]);
});

it('has the same result for a network that takes NHWC', async () => {
  const of = async (model: string) => {
    const { candidate: _, run, ...result } = await evaluateClassifier({ ...request, model });
    return { ...result, digest: run.imagesDigest, first: run.firstInput };
  };
  const planes = await of(request.model);
  const twin = await of(await channelsLastTwin(request.model));
  expect({ ...twin, first: null }).toEqual({ ...planes, first: null });
  expect(twin.first.sha256).not.toBe(planes.first.sha256);
});

it('takes numbers for labels, and a key that covers preparation and data alone', async () => {
  const numbers = truth('numbers.tsv', 'a.png\t0\nb.png\t1\nc.png\t2\nd.png\t1\n');
  const byNumber = await evaluateClassifier({
    ...request,
    truth: numbers,
    labels: undefined,
    model: await channelMeans([2, 2, 2]),
  });
  const byName = await evaluateClassifier(request);
  expect(byNumber.top1).toBe(0.75);
  expect(byNumber.comparabilityKey).toBe(byName.comparabilityKey);
  const otherwise = await evaluateClassifier({ ...request, preprocess: 'imagenet' });
  expect(otherwise.comparabilityKey).not.toBe(byName.comparabilityKey);
});

it('leaves out as many missing images as are allowed', async () => {
  const more = truth('more.tsv', 'a.png\tred\nz.png\tred\n');
  expect(await codeOf({ truth: more })).toBe('TF_EVAL_DATA');
  expect(await evaluateClassifier({ ...request, truth: more, allowMissing: 1 })).toMatchObject({
    images: 1,
    warnings: [{ kind: 'allowed-missing-file', count: 1 }],
  });
});

it('counts images that cannot be read with those that are missing, and scores without what is allowed', async () => {
  const imagesDir = at('damaged');
  cpSync(request.imagesDir, imagesDir, { recursive: true });
  for (const name of ['b.png', 'c.png']) writeFileSync(join(imagesDir, name), 'no image');
  const data = truth('five.tsv', 'a.png\tred\nb.png\tgreen\nc.png\tblue\nd.png\tgreen\nz.png\tred\n');
  const change = { imagesDir, truth: data };
  await expect(evaluateClassifier({ ...request, ...change, allowMissing: 1 })).rejects.toMatchObject({
    code: 'TF_EVAL_DATA',
    remedy: expect.stringContaining('--allow-missing 3'),
    details: {
      findings: [
        { kind: 'missing-file', count: 1 },
        { kind: 'unreadable-file', count: 2 },
      ],
    },
  });
  const partial = await evaluateClassifier({ ...request, ...change, allowMissing: 3 });
  expect(partial).toMatchObject({
    top1: 0.5,
    images: 2,
    perClass: [
      { label: 'red', images: 1, top1: 1 },
      { label: 'green', images: 1, top1: 0 },
    ],
    warnings: [
      { kind: 'allowed-missing-file', count: 1 },
      { kind: 'allowed-unreadable-file', count: 2 },
    ],
  });
  const same = await evaluateClassifier({
    ...request,
    truth: truth('two.tsv', 'a.png\tred\nd.png\tgreen\n'),
  });
  expect(same.comparabilityKey).toBe(partial.comparabilityKey);
  for (const name of ['a.png', 'd.png']) writeFileSync(join(imagesDir, name), 'no image');
  expect(await codeOf({ ...change, allowMissing: 5 })).toBe('TF_EVAL_DATA');
});

it('the content of the images is in the key', async () => {
  const imagesDir = at('other');
  cpSync(request.imagesDir, imagesDir, { recursive: true });
  const plain = await evaluateClassifier(request);
  expect((await evaluateClassifier({ ...request, imagesDir })).comparabilityKey).toBe(plain.comparabilityKey);
  cpSync(join(imagesDir, 'b.png'), join(imagesDir, 'd.png'));
  const other = await evaluateClassifier({ ...request, imagesDir });
  expect(other.dataDigest).toBe(plain.dataDigest);
  expect(other.comparabilityKey).not.toBe(plain.comparabilityKey);
});

it.each([
  ['those of the file', "{0: 'Red', 1: 'green', 2: 'blue'}", []],
  ['others', "{0: 'red', 1: 'blue', 2: 'green'}", [{ kind: 'contradicting-label', count: 2 }]],
])('names in the metadata of the model that are %s', async (_, names, warnings) => {
  const model = await channelMeans([1, 1, 1], 1, { names });
  expect(await evaluateClassifier({ ...request, model })).toMatchObject({ top1: 0.75, warnings });
  expect(await evaluateClassifier({ ...request, namedBy: model })).toMatchObject({ warnings });
});

it.each([
  ['one column', 'a.png\n'],
  ['an unknown label', 'a.png\tcyan\n'],
  ['an image twice', 'a.png\tred\na.png\tred\n'],
  ['a label beyond the classes', 'a.png\t7\n'],
  ['nothing', ''],
])('a truth of %s is TF_EVAL_DATA', async (name, text) => {
  expect(await codeOf({ truth: truth(`${name}.tsv`, text) })).toBe('TF_EVAL_DATA');
});

it.each([Number.NaN, Number.POSITIVE_INFINITY])('scores of %s are TF_EVAL_HEAD', async (factor) => {
  expect(await codeOf({ model: await channelMeans([factor, 1, 1]) })).toBe('TF_EVAL_HEAD');
});

it('two outputs, and another number of labels, are TF_EVAL_HEAD', async () => {
  expect(await codeOf({ model: await channelMeans([1, 1, 1], 2) })).toBe('TF_EVAL_HEAD');
  writeFileSync(at('four.txt'), 'red\ngreen\nblue\ncyan\n');
  expect(await codeOf({ labels: at('four.txt') })).toBe('TF_EVAL_HEAD');
});
