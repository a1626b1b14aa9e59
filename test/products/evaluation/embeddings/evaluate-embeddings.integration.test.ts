import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ExitCode } from '../../../../src/errors.js';
import {
  type EmbeddingsRequest,
  evaluateEmbeddings,
} from '../../../../src/products/evaluation/embeddings/evaluate-embeddings.js';
import { embeddingsResultSchema } from '../../../../src/products/evaluation/embeddings/result.js';
import { codeOfWork } from '../../../support/refusal.js';
import { channelMeans, paint, unitMeans } from '../image-networks.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-embeddings-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let request: EmbeddingsRequest;
beforeAll(async () => {
  await paint(at('faces'), { 'a.png': [250, 20, 30], 'b.png': [30, 240, 90], 'c.png': [60, 70, 200] });
  const model = await channelMeans();
  request = {
    candidate: model,
    reference: model,
    imagesDir: at('faces'),
    preprocess: 'rt-detr',
    imgsz: 640,
    minMeanCosine: 0.995,
    minCosine: 0.99,
    maxMeanL2: 0.1,
    warmupRuns: 0,
    skipLatency: 0,
    open: {},
  };
});
const codeOf = (change: Partial<EmbeddingsRequest>) =>
  codeOfWork(evaluateEmbeddings({ ...request, ...change }));

it('a network agrees with itself', async () => {
  const result = await evaluateEmbeddings(request);
  expect(embeddingsResultSchema.parse(result)).toEqual(result);
  expect(result).toMatchObject({
    n_samples: 3,
    dimensions: 3,
    validation: { passed: true, failure_reason: null },
    exitCode: ExitCode.pass,
    warnings: [],
  });
  expect(result.cosine_similarity.min).toBeCloseTo(1, 6);
  expect(result.timing.speedup).toBeGreaterThan(0);
});

it('length does not count, and is named where one network normalises', async () => {
  const result = await evaluateEmbeddings({ ...request, candidate: await unitMeans() });
  expect(result.validation.passed).toBe(true);
  expect(result.warnings).toHaveLength(1);
  expect(result.norms.candidate.mean).toBeCloseTo(1, 5);
});

it('cosine and distance are those of numpy', async () => {
  const factors = [1, 0.8, 1] as const;
  const result = await evaluateEmbeddings({ ...request, candidate: await channelMeans(factors) });
  const vectors = [
    [250, 20, 30],
    [30, 240, 90],
    [60, 70, 200],
  ];
  const length = (v: readonly number[]) => Math.hypot(...v);
  const cosines = vectors.map((v) => {
    const w = v.map((value, channel) => value * factors[channel]!);
    return v.reduce((sum, value, channel) => sum + value * w[channel]!, 0) / (length(v) * length(w));
  });
  expect(result.cosine_similarity.mean).toBeCloseTo(cosines.reduce((a, b) => a + b) / 3, 6);
  expect(result.l2_distance.max).toBeCloseTo(Math.sqrt(2 * (1 - Math.min(...cosines))), 5);
  expect(result.worst[0]?.cosine).toBeCloseTo(Math.min(...cosines), 6);
});

it('other weights fail', async () => {
  const result = await evaluateEmbeddings({ ...request, candidate: await channelMeans([-1, 1, -1]) });
  expect(result).toMatchObject({ validation: { passed: false }, exitCode: ExitCode.failed });
  expect(result.reference.sha256).not.toBe(result.candidate.sha256);
});

it('counts all images that cannot be read', async () => {
  const imagesDir = at('damaged');
  cpSync(request.imagesDir, imagesDir, { recursive: true });
  for (const name of ['a.png', 'c.png']) writeFileSync(join(imagesDir, name), 'no image');
  await expect(evaluateEmbeddings({ ...request, imagesDir })).rejects.toMatchObject({
    code: 'TF_EVAL_DATA',
    remedy: expect.not.stringContaining('--allow-missing'),
    details: { findings: [{ kind: 'unreadable-file', count: 2 }] },
  });
});

it('the content of every image is in the key', async () => {
  const imagesDir = at('other');
  cpSync(request.imagesDir, imagesDir, { recursive: true });
  const plain = await evaluateEmbeddings(request);
  const copied = await evaluateEmbeddings({ ...request, imagesDir });
  expect(copied.comparabilityKey).toBe(plain.comparabilityKey);
  cpSync(join(imagesDir, 'b.png'), join(imagesDir, 'c.png'));
  const other = await evaluateEmbeddings({ ...request, imagesDir });
  expect(other.dataDigest).toBe(plain.dataDigest);
  expect(other.comparabilityKey).not.toBe(plain.comparabilityKey);
});

it('vectors of zeros, two outputs and a folder without images have codes', async () => {
  expect(await codeOf({ candidate: await channelMeans([0, 0, 0]) })).toBe('TF_EVAL_HEAD');
  expect(await codeOf({ candidate: await channelMeans([1, 1, 1], 2) })).toBe('TF_EVAL_HEAD');
  expect(await codeOf({ imagesDir: at('nowhere') })).toBe('TF_EVAL_DATA');
});
