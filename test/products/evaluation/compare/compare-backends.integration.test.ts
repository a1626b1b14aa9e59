import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { convertModel } from '../../../../src/formats/precision/convert.js';
import {
  type CompareBackEndsRequest,
  compareBackEnds,
  writeComparison,
} from '../../../../src/products/evaluation/compare/compare-backends.js';
import { comparisonReport } from '../../../../src/products/evaluation/compare/page.js';
import { type Comparison, comparisonSchema } from '../../../../src/products/evaluation/compare/result.js';
import { detectorMetricsSchema } from '../../../../src/products/evaluation/detection/metrics-file.js';
import { codeOfWork } from '../../../support/refusal.js';
import { trtforge } from '../../../support/trtforge.js';
import { cellSettings, detector, images, instancesOf, paintCells } from '../detection/coloured-cells.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-compare-'));
const at = (...names: readonly string[]) => join(folder, ...names);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let request: CompareBackEndsRequest;
beforeAll(async () => {
  await paintCells(folder);
  request = {
    model: await detector(),
    candidates: [],
    precisions: ['fp16'],
    backEnds: ['ort-cpu'],
    data: at('instances.json'),
    imagesDir: at('images'),
    normalizer: 'none',
    ...cellSettings,
    output: at('root'),
  };
});
const noFacts = { ran: new Set<string>(), warnings: [], repeat: null };
const compare = (change: Partial<CompareBackEndsRequest> = {}) => compareBackEnds({ ...request, ...change });
const codeOf = (change: Partial<CompareBackEndsRequest>) => codeOfWork(compare(change));
const statuses = ({ variants }: Comparison) => variants.map(({ name, status }) => [name, status]);
const json = (...names: readonly string[]) => JSON.parse(readFileSync(at(...names), 'utf8'));

describe('FP32 and FP16 on one back end', () => {
  let result: Comparison;
  beforeAll(async () => {
    result = await compare();
  });

  it('both have figures in folders of their own, and are compared', () => {
    expect(comparisonSchema.parse(result)).toEqual(result);
    expect(statuses(result)).toEqual([
      ['fp32-ort-cpu', 'run'],
      ['fp16-ort-cpu', 'run'],
    ]);
    expect(result).toMatchObject({
      task: 'coco',
      metric: 'mAP_50_95',
      reference: 'fp32-ort-cpu',
      notCompared: [],
      exitCode: 0,
    });
    expect(result.accuracy).toEqual([
      expect.objectContaining({ variant: 'fp16-ort-cpu', reference: 'fp32-ort-cpu', metric: 'mAP_50_95' }),
    ]);
    expect(Math.abs(result.accuracy[0]!.drop)).toBeLessThan(0.01);
    for (const { folder: name, identity } of result.variants) {
      const metrics = detectorMetricsSchema.parse(json('root', name, 'metrics.json'));
      expect(metrics).toMatchObject({ back_end: 'onnxruntime-cpu', variant: { identity } });
      expect(metrics.latency?.percentiles_ms).toHaveLength(101);
      expect(metrics.precision_curves?.at50).toHaveLength(101);
      expect(json('root', name, 'detections.json')).toHaveLength(4);
    }
    expect(json('root', 'comparison.json')).toEqual(result);
  });

  it('a second run runs nothing and has the same figures', async () => {
    const written = statSync(at('root', 'fp32-ort-cpu-coco', 'metrics.json')).mtimeMs;
    const again = await compare();
    expect(statuses(again).map(([, status]) => status)).toEqual(['kept', 'kept']);
    expect(again.accuracy).toEqual(result.accuracy);
    expect(statSync(at('root', 'fp32-ort-cpu-coco', 'metrics.json')).mtimeMs).toBe(written);
  });

  it('a variant that was cut off runs again, alone', async () => {
    writeFileSync(at('root', 'fp16-ort-cpu-coco', 'metrics.json'), '{"metrics":');
    expect(statuses(await compare()).map(([, status]) => status)).toEqual(['kept', 'run']);
  });

  it('summary and report are made again from the metrics.json files alone', async () => {
    const files = ['summary.md', 'report.html', 'comparison.json'];
    const before = readFileSync(at('root', 'summary.md'), 'utf8');
    for (const file of files) rmSync(at('root', file));
    const { exitCode, json: answer } = await trtforge(['compare-backends', 'repair', at('root'), '--json']);
    expect([exitCode, answer().schema]).toEqual([0, 'trtforge.compare-backends/1']);
    expect(files.filter((file) => !existsSync(at('root', file)))).toEqual([]);
    expect(readFileSync(at('root', 'summary.md'), 'utf8')).toBe(before);
  });

  it('a damaged variant is named beside the good ones, with exit code 2', async () => {
    const repair = ['compare-backends', 'repair', at('root'), '--json'];
    const path = at('root', 'fp16-ort-cpu-coco', 'metrics.json');
    const whole = readFileSync(path);
    writeFileSync(path, whole.subarray(0, 400));
    const { exitCode, json: answer } = await trtforge(repair);
    const repaired = comparisonSchema.parse(answer());
    expect([exitCode, statuses(repaired)]).toEqual([2, [['fp32-ort-cpu', 'kept']]]);
    expect(repaired.damaged).toMatchObject([
      { file: 'fp16-ort-cpu-coco/metrics.json', error: { code: 'TF_EVAL_DATA' } },
    ]);
    expect(readFileSync(at('root', 'summary.md'), 'utf8').replaceAll('\\', '')).toContain(
      '| fp16-ort-cpu-coco/metrics.json |',
    );
    const other = at('root', 'fp32-ort-cpu-coco', 'metrics.json');
    const kept = readFileSync(other);
    writeFileSync(other, '');
    expect(await codeOfWork(writeComparison(at('root'), noFacts))).toBe('TF_EVAL_DATA');
    writeFileSync(path, whole);
    writeFileSync(other, kept);
    expect((await trtforge(repair)).exitCode).toBe(0);
  });

  it('the summary has the columns of auto-quantize-model, the report every chart', () => {
    const summary = readFileSync(at('root', 'summary.md'), 'utf8').replaceAll('\\', '');
    expect(summary).toMatch(
      /\| variant \| mAP_50_95 \| mAP_50 \|.*\| mean_ms \| median_ms \| p90_ms \| providers \|/,
    );
    const page = comparisonReport.page(result);
    const titles = page.sections.flatMap((section) =>
      (section?.blocks ?? []).flatMap((block) =>
        block?.kind === 'charts' ? block.charts.map(({ chart }) => chart.title) : [],
      ),
    );
    expect(titles).toEqual(['mAP_50_95 against latency', 'Precision and recall', 'Latency distributions']);
  });
});

describe('what is not mixed', () => {
  it('other data or settings in one run root are TF_EVAL_MIXED, before anything runs', async () => {
    const written = statSync(at('root', 'fp32-ort-cpu-coco', 'metrics.json')).mtimeMs;
    writeFileSync(at('one.json'), JSON.stringify(instancesOf(images.slice(0, 1))));
    expect(await codeOf({ data: at('one.json') })).toBe('TF_EVAL_MIXED');
    expect(await codeOf({ conf: 0.4 })).toBe('TF_EVAL_MIXED');
    expect(statSync(at('root', 'fp32-ort-cpu-coco', 'metrics.json')).mtimeMs).toBe(written);
  });

  it('another back end adds to what is there', async () => {
    const result = await compare({ backEnds: ['ort-cpu', 'trt'], precisions: [] });
    expect(statuses(result).slice(0, 2)).toEqual([
      ['fp32-ort-cpu', 'kept'],
      ['fp32-trt', expect.any(String)],
    ]);
    expect(statuses(result).map(([name]) => name)).toContain('fp16-ort-cpu');
    rmSync(at('root', 'fp32-trt-coco'), { recursive: true });
  });

  it('the same data at another place is the same', async () => {
    writeFileSync(at('copy.json'), readFileSync(at('instances.json')));
    expect(statuses(await compare({ data: at('copy.json') })).map(([, status]) => status)).toEqual([
      'kept',
      'kept',
    ]);
  });

  it('figures of another key are listed and not compared', async () => {
    const path = at('root', 'fp16-ort-cpu-coco', 'metrics.json');
    const before = readFileSync(path, 'utf8');
    writeFileSync(path, JSON.stringify({ ...JSON.parse(before), comparability_key: 'other' }));
    const result = await writeComparison(at('root'), noFacts);
    writeFileSync(path, before);
    expect(result).toMatchObject({
      accuracy: [],
      notCompared: [{ variant: 'fp16-ort-cpu', reference: 'fp32-ort-cpu' }],
      exitCode: 4,
    });
  });
});

describe('candidates', () => {
  it('are compared with FP16 of the same back end, and named by their types', async () => {
    const typed = at('typed.onnx');
    await convertModel(request.model, typed, { precision: 'bf16' });
    const result = await compare({ candidates: [`int8=${typed}`, typed], output: at('candidates') });
    expect(statuses(result).map(([name]) => name)).toEqual([
      'fp32-ort-cpu',
      'fp16-ort-cpu',
      'int8-ort-cpu',
      'bf16-ort-cpu',
    ]);
    expect(result.latency.map(({ variant, reference }) => [variant, reference])).toEqual([
      ['int8-ort-cpu', 'fp16-ort-cpu'],
      ['bf16-ort-cpu', 'fp16-ort-cpu'],
    ]);
  });

  it('are converted once for all back ends', async () => {
    const phases: string[] = [];
    const result = await compareBackEnds(
      { ...request, backEnds: ['ort-cpu', 'ort-cuda'], output: at('once') },
      { emit: (event) => event.type === 'phase-end' && phases.push(event.phase) },
    );
    expect(statuses(result).map(([name]) => name)).toContain('fp16-ort-cuda');
    expect(phases.filter((phase) => phase === 'write')).toHaveLength(1);
  });

  it('of one name are TF_USAGE, and so is a back end that there is not', async () => {
    expect(await codeOf({ candidates: [`fp32=${request.model}`] })).toBe('TF_USAGE');
    expect(await codeOf({ backEnds: ['ort-abacus'] })).toBe('TF_USAGE');
  });
});

describe('a back end that cannot run here', () => {
  it('is recorded with its error, in the table, and in the exit code', async () => {
    // On a machine with GPUs they are hidden from the driver.
    const environment = { ...process.env, CUDA_VISIBLE_DEVICES: 'none' };
    const args = ['--data', at('instances.json'), '--images', at('images'), '--conf', '0.5'];
    const { exitCode, json: answer } = await trtforge(
      [
        'compare-backends',
        request.model,
        ...args,
        '--backends',
        'ort-cpu,ort-cuda,trt',
        '-o',
        at('gpu'),
        '--json',
      ],
      environment,
    );
    const result = comparisonSchema.parse(answer());
    expect(exitCode).toBe(3);
    expect(statuses(result)).toEqual([
      ['fp32-ort-cpu', 'run'],
      ['fp32-ort-cuda', 'not-run'],
      ['fp32-trt', 'not-run'],
    ]);
    for (const { error, name } of result.variants.slice(1)) {
      expect(error?.exitCode).toBe(3);
      const summary = readFileSync(at('gpu', 'summary.md'), 'utf8');
      expect(summary).toContain(`| ${name} |`);
      expect(summary).toContain(error?.code);
    }
    const repaired = await writeComparison(at('gpu'), noFacts);
    expect(repaired.exitCode).toBe(3);
  });
});
