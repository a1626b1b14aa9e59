import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { modelOfFolder } from '../../../src/products/deepstream/from-logs.js';
import type { StreamsLimits } from '../../../src/products/deepstream/options.js';
import { streamsFromLogs } from '../../../src/products/deepstream/repair.js';
import { recordedLogs } from '../../fakes/trtexec.js';
import { mutations } from '../../support/mutations.js';
import { refusal } from '../../support/refusal.js';
import { runs } from '../../support/runs.js';
import { trtforge } from '../../support/trtforge.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-streams-repair-'));
afterAll(() => rmSync(root, { recursive: true }));
let folder: string;
let model: string;
let number = 0;
beforeEach(() => {
  folder = join(root, String(number++));
  model = join(folder, 'models/r50/model/r50.onnx');
});

const limits: StreamsLimits = {
  fps: [30],
  firstMaxBatch: 64,
  maxBatchLimit: 1024,
  minGainPercent: -5,
  timeLimitSeconds: null,
};
const repair = (fps: readonly number[] = [30]) =>
  streamsFromLogs({ model, names: {}, limits: { ...limits, fps } });

function place(name: string, where: string, edit: (text: string) => string = (text) => text): void {
  const path = join(folder, 'models/r50/benchmarks', where);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, edit(readFileSync(join(recordedLogs, name), 'utf8')));
}

/** As the scripts left them on an H200: engine, batch 1 and batch 64. */
function recordedSizing(): void {
  place('10.6-build_fp16.log', 'engines/r50_dynamic_build_20261120_213100.log');
  place('10.6-bench_seed_b1.log', 'b1/trtexec_b1.log');
  place('10.6-bench_r50_b64.log', 'b64/trtexec_b64.log');
}

describe('from the logs that trtexec wrote', () => {
  test('and those of deepstream-app beside them', () => {
    recordedSizing();
    const ds = join(folder, 'models/r50/benchmarks/ds');
    mkdirSync(ds, { recursive: true });
    writeFileSync(
      join(ds, 'ds_s4_run1.log'),
      '**PERF:  30.01 (29.98)\t30.03 (30.00)\t30.01 (29.9)\t29.99 (30.1)\n'.repeat(3),
    );
    repair();
    const path = join(folder, 'models/r50/reports/benchmark_data.json');
    const { deepstream } = JSON.parse(readFileSync(path, 'utf8')) as { deepstream: Record<string, object> };
    expect(deepstream.run1).toEqual({ streams: 4, total_fps: 120.04, fps_per_stream: 30.01 });
    expect(deepstream.run2).toEqual({ streams: null, total_fps: null, fps_per_stream: null });
  });

  test('and `report` renders it with the runs that came later, from its folder and from what --json printed', async () => {
    recordedSizing();
    const printed = await trtforge(['deepstream', 'repair', model, '--json']);
    const ds = join(folder, 'models/r50/benchmarks/ds');
    mkdirSync(ds, { recursive: true });
    writeFileSync(join(ds, 'ds_s2_run1.log'), '**PERF:  30.01 (29.98)\t30.03 (30.00)\n'.repeat(3));
    const size = join(folder, 'size.json');
    writeFileSync(size, printed.out);
    const { peakGpuStreams } = printed.json<{ peakGpuStreams: number }>();
    for (const from of [join(folder, 'models/r50'), size]) {
      const { exitCode, out } = await trtforge(['report', from, '--format', 'markdown', '-o', '-']);
      expect(exitCode).toBe(0);
      for (const shown of [`${peakGpuStreams} streams`, 'trtexec_b64.log', 'ds_s2_run1.log'])
        expect(out).toContain(shown);
    }
    const html = join(folder, 'models/r50/report.html');
    expect((await trtforge(['report', join(folder, 'models/r50')])).exitCode).toBe(0);
    expect(readFileSync(html, 'utf8')).toContain('ds_s2_run1.log');
  });

  test('whatever an earlier benchmark_data.json holds, the figures are those of the logs', () => {
    recordedSizing();
    const path = join(folder, 'models/r50/reports/benchmark_data.json');
    const { answers, engine } = repair();
    const whole = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
    const run = { streams: 64, total_fps: 1920.5, fps_per_stream: 30.01 };
    const earlier = Buffer.from(JSON.stringify({ ...whole, deepstream: { run1: run, run2: run } }));
    for (const damaged of mutations(earlier, runs(300))) {
      writeFileSync(path, damaged);
      expect(repair()).toMatchObject({ answers, engine });
      const { deepstream } = JSON.parse(readFileSync(path, 'utf8')) as { deepstream: Record<string, object> };
      for (const each of [deepstream.run1, deepstream.run2])
        for (const value of Object.values(each ?? { missing: 'run' }))
          expect(value === null || typeof value === 'number').toBe(true);
    }
  });

  test('benchmark_data.json and the summary are made again', () => {
    recordedSizing();
    const result = repair();
    const data: unknown = JSON.parse(
      readFileSync(join(folder, 'models/r50/reports/benchmark_data.json'), 'utf8'),
    );
    expect(data).toMatchObject({
      model_name: 'r50',
      engine: 'models/r50/benchmarks/engines/r50_dynamic_b64.engine',
      max_bs: 64,
      trtexec: {
        bs1: { qps: 1326.22, gpu_mean_ms: 0.730544 },
        bsmax: { qps: 532.026, gpu_mean_ms: 1.87829, p99_ms: 1.89185, imgs_per_sec: 34049.66 },
      },
      peak_gpu_streams: 1134,
      deepstream: { run1: { streams: null }, run2: { streams: null } },
    });
    expect(result.summary).toEqual(
      expect.arrayContaining([
        '  BS=1:       1326.22 QPS  |  GPU mean: 0.730544ms',
        '  BS=64: 532.026 QPS  |  34049.66 img/s  |  GPU mean: 1.87829ms  P99: 1.89185ms',
        'PEAK_GPU_STREAMS (GPU-only upper bound): 1134 streams @30fps',
      ]),
    );
    expect(result.steps.step4Seconds).toBeGreaterThan(10);
    // Walltimes and warm-ups: 5.00145 + 1 and 3.00556 + 0.5.
    expect(result.steps.step5Seconds).toBeCloseTo(9.5, 1);
    expect(result.baseline?.writtenBy).toBe('trtexec');
  });

  test('trtexec’s doubts about its own figures are reported', () => {
    recordedSizing();
    expect(repair().warnings).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^Batch 1: GPU compute time is unstable/),
        expect.stringMatching(/room for 1134 streams.* has 64/),
      ]),
    );
  });

  test('several frame rates', () => {
    recordedSizing();
    expect(repair([1000, 25]).answers).toEqual([
      { fps: 1000, peakGpuStreams: 34, maxBatch: 64, streams: 34 },
      { fps: 25, peakGpuStreams: 1361, maxBatch: 64, streams: 64 },
    ]);
  });

  test('batches are compared as numbers', () => {
    recordedSizing();
    const as = (batch: number) => (text: string) => text.replaceAll('data=64x', `data=${batch}x`);
    for (const batch of [128, 256])
      place('10.6-bench_r50_b64.log', `b${batch}/trtexec_b${batch}.log`, as(batch));
    expect(repair().engines.map(({ maxBatch }) => maxBatch)).toEqual([64, 128, 256]);
    expect(repair().maxBatch).toBe(256);
  });

  test('a log with data transfers is used and doubted', () => {
    place('10.6-bench_transfers_graph_b1.log', 'b1/trtexec_b1.log');
    const { maxBatch, warnings } = repair();
    expect(maxBatch).toBe(1);
    expect(warnings).toEqual(expect.arrayContaining([expect.stringMatching(/^Batch 1: Data were copied/)]));
  });

  test.each<[string, string, (text: string) => string, RegExp]>([
    [
      'cut short',
      '10.6-bench_r50_b64.log',
      (text) => text.slice(0, text.indexOf('Throughput:')).replaceAll('=64x', '=128x'),
      /b128.log is cut short/,
    ],
    ['of another batch', '10.6-bench_r50_b64.log', (text) => text, /b128.log is of batch 64/],
    [
      'of a failure',
      '10.6-err_text_plan.log',
      (text) => text,
      /b128.log is cut short or of a run that failed/,
    ],
  ])('a log that is %s is left out and named', (_what, name, edit, why) => {
    recordedSizing();
    place(name, 'b128/trtexec_b128.log', edit);
    const { maxBatch, warnings } = repair();
    expect(maxBatch).toBe(64);
    expect(warnings).toEqual(expect.arrayContaining([expect.stringMatching(why)]));
  });

  test('a batch measured on the engine of a larger one is no engine of its own', () => {
    recordedSizing();
    const onB64 = (text: string) =>
      text
        .replaceAll('data=64x', 'data=24x')
        .replaceAll('=r50.plan', '=models/r50/benchmarks/engines/r50_dynamic_b64.engine');
    place('10.6-bench_r50_b64.log', 'b24/trtexec_b24.log', onB64);
    const { engines, maxBatch, warnings } = repair([600]);
    expect(engines.map((engine) => engine.maxBatch)).toEqual([64]);
    expect(maxBatch).toBe(64);
    expect(warnings).toContainEqual(
      expect.stringMatching(/b24\.log was measured on the engine of max batch 64/),
    );
  });

  test('batch 1 of an engine for larger ones alone is no answer', () => {
    const onB64 = (text: string) => text.replaceAll('=r50.plan', '=models/my models/r50_dynamic_b64.engine');
    place('10.6-bench_seed_b1.log', 'b1/trtexec_b1.log', onB64);
    expect(refusal(() => repair()).code).toBe('TF_FILE_NOT_FOUND');
  });

  test('a log that is a folder, or in UTF-16, is left out and named', () => {
    recordedSizing();
    mkdirSync(join(folder, 'models/r50/benchmarks/b128/trtexec_b128.log'), { recursive: true });
    place('10.6-bench_r50_b64.log', 'b256/trtexec_b256.log', (text) => text.replaceAll('', '\0'));
    const { maxBatch, warnings } = repair();
    expect(maxBatch).toBe(64);
    expect(warnings).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/b128\.log cannot be read/),
        expect.stringMatching(/b256\.log is cut short/),
      ]),
    );
  });

  test('without any log it reports where it looked', () => {
    const error = refusal(() => repair());
    expect(error.code).toBe('TF_FILE_NOT_FOUND');
    expect(error.message).toContain(join(folder, 'models/r50/benchmarks'));
  });
});

describe('a folder in place of the model', () => {
  const engines = () => join(folder, 'models/r50/benchmarks/engines');
  const engine = (name: string) => {
    mkdirSync(engines(), { recursive: true });
    copyFileSync(join(recordedLogs, '10.6-planversion.log'), join(engines(), name));
  };

  test.each([
    ['its engines', ['net_dynamic_b64.engine', 'net_dynamic_b128.engine', 'timing.cache']],
    [
      'its build logs',
      ['net_dynamic_build_20261120_213100.log', 'net_dynamic_build_b128_20261120_213100.log'],
    ],
  ])('takes the name from %s', (_what, names) => {
    for (const name of names) engine(name);
    const path = join(folder, 'models/r50');
    expect(modelOfFolder(path)).toBe(join(path, 'model/net.onnx'));
  });

  test('has engines of two models, or none', () => {
    expect(refusal(() => modelOfFolder(join(folder, 'models/r50'))).message).toMatch(
      /no engine and no build log/,
    );
    engine('a_dynamic_b64.engine');
    engine('b_dynamic_b64.engine');
    const { code, message } = refusal(() => modelOfFolder(join(folder, 'models/r50')));
    expect(code).toBe('TF_USAGE');
    expect(message).toMatch(/those of a, b/);
  });
});
