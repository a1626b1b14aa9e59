import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../../src/errors.js';
import {
  type CompareBackEndsRequest,
  compareBackEnds,
} from '../../../../src/products/evaluation/compare/compare-backends.js';
import { cellSettings } from '../detection/coloured-cells.js';
import { fakeRecogniser } from '../fake-recogniser.js';
import { channelMeans, paint } from '../image-networks.js';

const sounds = join(import.meta.dirname, '../../../fixtures/audio');
const folder = mkdtempSync(join(tmpdir(), 'trtforge-compared-tasks-'));
const at = (...names: readonly string[]) => join(folder, ...names);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const base: Omit<CompareBackEndsRequest, 'model' | 'data'> = {
  candidates: [],
  precisions: [],
  backEnds: ['ort-cpu'],
  normalizer: 'none',
  ...cellSettings,
};

describe('a classifier', () => {
  it('is compared by top-1 where the data is a TSV of labels', async () => {
    await paint(at('images'), { 'a.png': [200, 0, 0], 'b.png': [0, 200, 0] });
    writeFileSync(at('truth.tsv'), 'a.png\t0\nb.png\t1\n');
    const request = {
      ...base,
      data: at('truth.tsv'),
      model: await channelMeans(),
      precisions: ['fp16'] as const,
    };
    const result = await compareBackEnds({ ...request, imagesDir: at('images'), output: at('classes') });
    expect(result).toMatchObject({ task: 'classify', metric: 'top1', exitCode: 0 });
    expect(result.accuracy).toMatchObject([{ variant: 'fp16-ort-cpu', value: 1, of: 1, drop: 0 }]);
    const kept = await compareBackEnds({ ...request, imagesDir: at('images'), output: at('classes') });
    expect(kept.variants.map(({ status }) => status)).toEqual(['kept', 'kept']);
    await expect(compareBackEnds(request)).rejects.toMatchObject({ code: 'TF_USAGE' });
  });
});

describe('a bundle', () => {
  /** Engines hear one word less. */
  const recogniser = fakeRecogniser((path, { engines, provider }) => {
    if (provider === 'cuda') throw new TrtforgeError('TF_GPU_UNAVAILABLE', 'This fake has no GPU.');
    return engines === undefined
      ? { file: path, text: () => 'one two' }
      : { file: join(engines, 'encoder.engine'), text: () => 'one' };
  });

  beforeAll(() => {
    mkdirSync(at('bundle'));
    mkdirSync(at('int8'));
    writeFileSync(at('bundle', 'model_meta.json'), '{}');
    writeFileSync(at('int8', 'encoder.engine'), 'ftrt of a fake');
    writeFileSync(at('manifest.tsv'), 'utt_id\twav_path\tref_text\na\tpcm16.wav\tone two\n');
  });

  it('is compared by words, engines in a folder beside models; what has no engines is stated', async () => {
    const result = await compareBackEnds(
      {
        ...base,
        model: at('bundle', 'model_meta.json'),
        candidates: [at('int8')],
        data: at('manifest.tsv'),
        audioDir: sounds,
        backEnds: ['ort-cpu', 'ort-cuda', 'trt'],
        output: at('words'),
      },
      { recognisers: [recogniser] },
    );
    expect(result).toMatchObject({ task: 'wer', metric: 'wer', exitCode: 3 });
    expect(result.variants.map(({ name, status, error }) => [name, status, error?.code])).toEqual([
      ['models-ort-cpu', 'run', undefined],
      ['models-ort-cuda', 'not-run', 'TF_GPU_UNAVAILABLE'],
      ['int8-trt', 'run', undefined],
    ]);
    expect(result.accuracy).toMatchObject([{ variant: 'int8-trt', value: 0.5, of: 0, drop: 0.5 }]);
    expect(result.warnings).toHaveLength(2);
    const metrics = JSON.parse(readFileSync(at('words', 'int8-trt-wer', 'metrics.json'), 'utf8'));
    expect(metrics).toMatchObject({ wer: 0.5, variant: { label: 'int8', backEnd: 'trt' } });
  });
});
