import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../../src/errors.js';
import { factsOfModel } from '../../../../src/formats/onnx/inspect.js';
import {
  type CompareBackEndsRequest,
  compareBackEnds,
  writeComparison,
} from '../../../../src/products/evaluation/compare/compare-backends.js';
import { comparisonSchema } from '../../../../src/products/evaluation/compare/result.js';
import { writeBundle } from '../../../support/bundle.js';
import { describeWith } from '../../../support/needs.js';
import { codeOfLine, trtforge } from '../../../support/trtforge.js';
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
    expect(metrics.run.latency).toMatchObject({ median_ms: 3, p90_ms: 3, count: 1 });
    for (const { figures } of result.variants.filter(({ status }) => status === 'run'))
      expect(figures?.latency?.median_ms).toBe(3);
  });

  it('shows the sound of what a variant heard otherwise, with both texts, most words first', async () => {
    mkdirSync(at('sounds'));
    const texts = [
      ['hello small world', 'hello small world'],
      ['a dog barks <b>', 'a cat sat <b>'],
      ['nothing said here at all', ''],
    ] as const;
    const rows = texts.map(([spoken], index) => {
      copyFileSync(join(sounds, `pcm${8 * (index + 1)}.wav`), at('sounds', `${index}.wav`));
      return `u${index}\t${index}.wav\t${spoken}\n`;
    });
    writeFileSync(at('three.tsv'), `utt_id\twav_path\tref_text\n${rows.join('')}`);
    const hearing = fakeRecogniser((path, { engines }) => {
      let heard = 0;
      const side = engines === undefined ? 0 : 1;
      return {
        file: engines === undefined ? path : at('int8', 'encoder.engine'),
        text: () => texts[heard++]![side],
      };
    });
    const request = {
      ...{ ...base, model: at('bundle', 'model_meta.json'), candidates: [at('int8')] },
      ...{ data: at('three.tsv'), audioDir: at('sounds'), backEnds: ['ort-cpu', 'trt'], output: at('apart') },
    };
    const result = await compareBackEnds(request, { recognisers: [hearing] });
    const said = (text: string) => ({ kind: 'text', text });
    expect(result.texts).toMatchObject([
      {
        ...{ variant: 'int8-trt', differ: 2 },
        samples: [
          { ...{ sample: 2, lost: 5, new: 1 }, reference: said(texts[2][0]), candidate: said('') },
          { ...{ sample: 1, lost: 2, new: 2 }, reference: said(texts[1][0]), candidate: said(texts[1][1]) },
        ],
      },
    ]);
    const page = readFileSync(at('apart', 'report.html'), 'utf8');
    expect(page.match(/class="sound"/g)).toHaveLength(2);
    expect(page).toMatch(/a <mark>dog barks<\/mark> &lt;b&gt;/);
    expect(page).toMatch(/a <mark>cat sat<\/mark> &lt;b&gt;/);
    expect(readFileSync(at('apart', 'summary.md'), 'utf8')).toContain('no word');

    // Another file than the one that was transcribed is not drawn; scores of versions before name none.
    writeFileSync(at('sounds', '1.wav'), 'another');
    await writeComparison(at('apart'), { ran: new Set(), warnings: [], repeat: null });
    expect(readFileSync(at('apart', 'report.html'), 'utf8').match(/class="sound"/g)).toHaveLength(1);
    for (const folder of ['int8-trt-wer', 'models-ort-cpu-wer']) {
      const scores = at('apart', folder, 'scores.tsv');
      writeFileSync(scores, readFileSync(scores, 'utf8').replaceAll(/\t[^\t]*\t[^\t]*$/gm, ''));
      const repaired = await writeComparison(at('apart'), { ran: new Set(), warnings: [], repeat: null });
      expect(repaired.texts).toMatchObject([{ differ: 0, samples: [] }]);
    }
    rmSync(at('apart', 'int8-trt-wer', 'scores.tsv'));
    mkdirSync(at('apart', 'int8-trt-wer', 'scores.tsv'));
    const without = await writeComparison(at('apart'), { ran: new Set(), warnings: [], repeat: null });
    expect(without).toMatchObject({ exitCode: 0, texts: [{ differ: 0 }] });
  });
});

describeWith('onnxruntime', 'a bundle of models', () => {
  it('is converted for --precision, once for all back ends', async () => {
    mkdirSync(at('models'));
    const meta = await writeBundle(at('models'));
    const args = ['compare-backends', meta, '--data', at('manifest.tsv'), '--audio-dir', sounds];
    const line = [...args, '--backends', 'ort-cpu', '--precision', 'fp16', '-o', at('converted')];
    const { exitCode, json } = await trtforge([...line, '--json']);
    const { variants, reference } = comparisonSchema.parse(json());
    expect([exitCode, reference]).toEqual([0, 'models-ort-cpu']);
    expect(variants.map(({ name, status }) => [name, status])).toEqual([
      ['models-ort-cpu', 'run'],
      ['fp16-ort-cpu', 'run'],
    ]);
    const converted = variants[1]?.figures?.files.map(({ file }) => file) ?? [];
    expect(converted).toEqual(
      ['encoder', 'predictor', 'joint'].map((name) => at('converted', 'models', 'fp16', `${name}.onnx`)),
    );
    for (const file of converted) {
      expect(factsOfModel(file).initializersByDtype).toHaveProperty('float16');
    }
    for (const { figures } of variants) expect(figures?.latency?.count).toBe(1);
  });

  it('is rejected for a precision that needs samples, before any work', async () => {
    const line = ['compare-backends', at('models', 'model_meta.json'), '--data', at('manifest.tsv')];
    const more = ['--audio-dir', sounds, '--backends', 'ort-cpu', '--precision', 'int8', '-o', at('never')];
    expect(await codeOfLine([...line, ...more])).toBe('TF_USAGE');
    expect(existsSync(at('never'))).toBe(false);
  });
});
