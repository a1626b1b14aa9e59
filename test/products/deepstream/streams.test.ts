import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { CommandRunner } from '../../../src/base/process/command.js';
import { TrtforgeError } from '../../../src/errors.js';
import { workOf } from '../../../src/events.js';
import { type StreamsMode, type StreamsRequest, seedMode } from '../../../src/products/deepstream/options.js';
import { recordPath } from '../../../src/products/deepstream/record.js';
import { streamsResultSchema } from '../../../src/products/deepstream/result.js';
import { deepstreamLibraries } from '../../../src/products/deepstream/setup.js';
import { planStreams, type StreamsPlan, streams } from '../../../src/products/deepstream/streams.js';
import { PaperGpu, type Rates, writePictureModel } from '../../fakes/deepstream.js';
import { mutations } from '../../support/mutations.js';
import { refusal } from '../../support/refusal.js';
import { runs } from '../../support/runs.js';
import { trtforge } from '../../support/trtforge.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-streams-'));
afterAll(() => rmSync(root, { recursive: true }));
let folder: string;
let model: string;
let number = 0;
beforeEach(async () => {
  folder = join(root, String(number++));
  model = await writePictureModel(folder);
});

const request = (more: Partial<StreamsRequest> = {}): StreamsRequest => ({
  model,
  names: {},
  input: {},
  limits: { fps: [30], firstMaxBatch: 64, maxBatchLimit: 1024, minGainPercent: -5, timeLimitSeconds: null },
  fresh: false,
  sensitivity: false,
  ...more,
});

/** 96 streams at 30 fps from batch 64 on, 20 at batch 1. */
const mid: Rates = (batch) => (batch === 1 ? 600 : 2900);

function size(
  plan: StreamsPlan,
  gpu: PaperGpu,
  {
    mode = seedMode,
    now,
    model: gpuModel,
    loaded = [],
  }: {
    readonly mode?: StreamsMode;
    readonly now?: () => number;
    readonly model?: string;
    readonly loaded?: readonly string[];
  } = {},
) {
  return streams(plan, {
    builder: gpu.builder,
    builderName: 'native',
    meter: gpu.meter(mode, gpuModel),
    work: workOf(),
    deepstreamLibraries: loaded,
    ...(now === undefined ? {} : { now }),
  });
}

const data = (plan: StreamsPlan): unknown => JSON.parse(readFileSync(plan.paths.data, 'utf8'));
const all = ['build 64', 'measure 1 on 64', 'measure 64 on 64', 'build 128', 'measure 128 on 128'];

describe('sizing', () => {
  test('builds and measures by strict doubling, and answers by its schema', async () => {
    const plan = planStreams(request());
    const gpu = new PaperGpu(plan.paths, mid);
    const result = await size(plan, gpu);
    expect(gpu.did).toEqual(all);
    expect(streamsResultSchema.safeParse(result).error).toBeUndefined();
    expect(result).toMatchObject({
      engine: 'models/net/benchmarks/engines/net_dynamic_b128.engine',
      maxBatch: 128,
      peakGpuStreams: 96,
      answers: [{ fps: 30, peakGpuStreams: 96, maxBatch: 128, streams: 96 }],
      stop: { reason: 'enough' },
      steps: { step4Seconds: 120.5 },
      exitCode: 0,
      model: {
        name: 'net',
        file: 'net',
        input: 'images',
        layout: 'NCHW',
        channels: 3,
        height: 64,
        width: 64,
      },
    });
    expect(result.warnings.at(-1)).toMatch(/upper bound/);
  });

  test('leaves the folders and names of the scripts', async () => {
    const plan = planStreams(request());
    await size(plan, new PaperGpu(plan.paths, mid));
    const benchmarks = join(folder, 'models/net/benchmarks');
    for (const file of [
      'engines/net_dynamic_b64.engine',
      'engines/net_dynamic_b128.engine',
      'b1/trtexec_b1.log',
      'b64/trtexec_b64.log',
      'b128/trtexec_b128.log',
    ])
      expect(existsSync(join(benchmarks, file)), file).toBe(true);
  });

  test('benchmark_data.json has the documented shape, and ours in one field beside it', async () => {
    const plan = planStreams(request());
    await size(plan, new PaperGpu(plan.paths, mid));
    const run = { streams: null, total_fps: null, fps_per_stream: null };
    expect(data(plan)).toEqual({
      model_name: 'net',
      engine: 'models/net/benchmarks/engines/net_dynamic_b128.engine',
      max_bs: 128,
      trtexec: {
        bs1: { qps: 600, gpu_mean_ms: 1.66667 },
        bsmax: { qps: 22.6563, gpu_mean_ms: 44.1379, p99_ms: 50.7586, imgs_per_sec: 2900.01 },
      },
      peak_gpu_streams: 96,
      deepstream: { run1: run, run2: run },
      x_trtforge: expect.objectContaining({
        schema: 'trtforge.benchmark-data/1',
        fps: 30,
        bs1_engine_max_bs: 64,
        engines: [
          expect.objectContaining({ max_bs: 64 }),
          expect.objectContaining({ max_bs: 128, gpu_ms_per_image: 44.1379 / 128 }),
        ],
      }),
    });
  });

  test.each([
    [[], 0],
    [['10.6.0.26'], 0],
    [['8.6.1.6', '10.6.0.26'], 0],
    [['10.3.0.26'], 1],
  ])('warns of engines that DeepStream cannot load: it loads %j', async (loaded, warnings) => {
    const plan = planStreams(request());
    const result = await size(plan, new PaperGpu(plan.paths, mid), { loaded });
    expect(result.warnings.filter((each) => each.includes('--toolchain'))).toHaveLength(warnings);
  });

  test('DeepStream loads what the packages of its machine are', async () => {
    const lines = ['libnvinfer10', 'libnvinfer-dev', 'libnvinfer-plugin10', 'libnvonnxparsers10'];
    const run: CommandRunner = async () => ({
      outcome: 'ended',
      exitCode: 0,
      stdout: lines.map((name) => `ii \t${name}\t10.3.0.26-1+cuda12.5`).join('\n'),
      stderr: '',
    });
    expect(await deepstreamLibraries(run, folder)).toEqual(['10.3.0.26']);
    expect(await deepstreamLibraries(run, join(folder, 'none'))).toEqual([]);
  });

  test('the summary is the scripts’ own, word for word', async () => {
    const plan = planStreams(request());
    const { summary, steps } = await size(plan, new PaperGpu(plan.paths, () => 1280));
    const seconds = (value: number | null) => `${Number(value?.toFixed(3))}s`;
    expect(summary.join('\n')).toBe(`=== TRT Engine Build Complete ===
Model:   net
Engine:  models/net/benchmarks/engines/net_dynamic_b64.engine
         (single engine — used for trtexec baseline and all DS runs)

trtexec Results:
  BS=1:       1280 QPS  |  GPU mean: 0.78125ms
  BS=64: 20 QPS  |  1280.0 img/s  |  GPU mean: 50ms  P99: 57.5ms

PEAK_GPU_STREAMS (GPU-only upper bound): 42 streams @30fps

Timing:
  Step 4 (engine build): 60.25s
  Step 5 (benchmarks):   ${seconds(steps.step5Seconds)}
  Total Steps 4-5:       ${seconds(steps.totalSeconds)}

Ready for: Steps 6-7 — read references/pipeline-run.md models/net/`);
  });

  test('several frame rates are answered from the same engines', async () => {
    const plan = planStreams(request({ limits: { ...request().limits, fps: [30, 15, 60] } }));
    const gpu = new PaperGpu(plan.paths, () => 2900);
    const { answers, maxBatch, peakGpuStreams } = await size(plan, gpu);
    expect(gpu.did.at(-1)).toBe('measure 256 on 256');
    expect(answers).toEqual([
      { fps: 30, peakGpuStreams: 96, maxBatch: 128, streams: 96 },
      { fps: 15, peakGpuStreams: 193, maxBatch: 256, streams: 193 },
      { fps: 60, peakGpuStreams: 48, maxBatch: 64, streams: 48 },
    ]);
    expect({ maxBatch, peakGpuStreams }).toEqual({ maxBatch: 128, peakGpuStreams: 96 });
  });

  test('what DeepStream’s own steps wrote of the same engine stays, and of another engine does not', async () => {
    const plan = planStreams(request());
    const deepstream = {
      run1: { streams: 42, total_fps: 1100, fps_per_stream: 26 },
      run2: { streams: 36, total_fps: 1100, fps_per_stream: 30 },
    };
    const write = (maxBatch: number) => {
      mkdirSync(dirname(plan.paths.data), { recursive: true });
      writeFileSync(
        plan.paths.data,
        JSON.stringify({ engine: plan.paths.shownEngine(maxBatch), deepstream }),
      );
    };
    write(64);
    await size(plan, new PaperGpu(plan.paths, () => 1280));
    expect(data(plan)).toMatchObject({ deepstream });
    write(256);
    const { warnings } = await size(plan, new PaperGpu(plan.paths, () => 1280));
    expect(data(plan)).toMatchObject({ deepstream: { run1: { streams: null } } });
    expect(warnings[0]).toMatch(/were of .*_b256\.engine and are left out/);
  });

  test.each<[string, string, unknown]>([
    ['Python’s NaN and a missing run', '{"run1":{"streams":5,"total_fps":NaN,"fps_per_stream":30}}', 5],
    ['no object', 'null', null],
    ['words', '{"run1":"five","run2":{"streams":"six"}}', null],
  ])(
    'of runs with %s what can be read stays, in the documented shape',
    async (_what, deepstream, streamsOfRun1) => {
      const plan = planStreams(request());
      mkdirSync(dirname(plan.paths.data), { recursive: true });
      writeFileSync(plan.paths.data, `{"engine":"${plan.paths.shownEngine(64)}","deepstream":${deepstream}}`);
      await size(plan, new PaperGpu(plan.paths, () => 1280));
      const empty = { streams: null, total_fps: null, fps_per_stream: null };
      expect((data(plan) as { deepstream: unknown }).deepstream).toEqual({
        run1: streamsOfRun1 === 5 ? { ...empty, streams: 5, fps_per_stream: 30 } : empty,
        run2: empty,
      });
    },
  );

  test.each(['{"engine": ', '[1, 2]'])(
    'a data file that has "%s" is written anew, and that is reported',
    async (text) => {
      const plan = planStreams(request());
      mkdirSync(dirname(plan.paths.data), { recursive: true });
      writeFileSync(plan.paths.data, text);
      const { warnings } = await size(plan, new PaperGpu(plan.paths, () => 1280));
      expect(warnings[0]).toMatch(/benchmark_data\.json has no benchmark data\. It is written anew/);
      expect(data(plan)).toMatchObject({ peak_gpu_streams: 42 });
    },
  );

  test.each<[string, Partial<StreamsRequest['limits']>, RegExp]>([
    ['no frame rate', { fps: [] }, /not valid frame rates/],
    ['a frame rate of 0', { fps: [30, 0] }, /"30, 0"/],
    ['a frame rate that is none', { fps: [Number.NaN] }, /not valid frame rates/],
    ['a batch of 0, which never doubles', { firstMaxBatch: 0 }, /"0" is not a valid batch/],
    ['half a batch', { firstMaxBatch: 1.5 }, /"1.5" is not a valid batch/],
    ['a limit below the first batch', { maxBatchLimit: 32 }, /64 is above the limit of 32/],
  ])('%s is rejected before anything is read', (_what, wrong, message) => {
    const limits = { ...request().limits, ...wrong };
    const error = refusal(() => planStreams(request({ limits, model: 'not there' })));
    expect(error.code).toBe('TF_USAGE');
    expect(error.message).toMatch(message);
  });

  test('doubts of the bench and of the engine are passed on', async () => {
    const plan = planStreams(request());
    const gpu = new PaperGpu(plan.paths, () => 1280, { warnings: ['The GPU was throttled.'] });
    const { warnings } = await size(plan, gpu);
    expect(warnings).toEqual(
      expect.arrayContaining(['Batch 1: The GPU was throttled.', 'Batch 64: The GPU was throttled.']),
    );
  });
});

describe('stopping early', () => {
  const memory = new TrtforgeError('TF_GPU_MEMORY', 'no room for 9 GiB');

  test.each<[string, string, TrtforgeError, string, number]>([
    ['out of memory while loading', 'measure 128 on 128', memory, 'memory', 0],
    [
      'out of memory while building',
      'build 128',
      new TrtforgeError('TF_BUILD_FAILED', 'Error: insufficient workspace'),
      'memory',
      0,
    ],
    [
      'a build that fails after a tactic found no room',
      'build 128',
      new TrtforgeError(
        'TF_BUILD_FAILED',
        'Its errors:\n  Skipping tactic 3 due to insufficient memory on requested size of 4300\n  no kernel for Conv_1',
      ),
      'failed',
      4,
    ],
    [
      'a build that fails',
      'build 128',
      new TrtforgeError('TF_BUILD_FAILED', 'no kernel for Conv_1'),
      'failed',
      4,
    ],
  ])('%s: the engines before it give the answer', async (_what, deed, failure, reason, exitCode) => {
    const plan = planStreams(request());
    const gpu = new PaperGpu(plan.paths, mid);
    gpu.failures.set(deed, failure);
    const result = await size(plan, gpu);
    expect(result).toMatchObject({ stop: { reason }, exitCode, maxBatch: 64, peakGpuStreams: 96 });
    expect(result.stop.text).toContain(failure.code);
    expect(result.answers[0]?.streams).toBe(64);
    expect(result.warnings).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^Stopped early/),
        expect.stringMatching(/room for 96 streams.* has 64/),
      ]),
    );
  });

  test('what fails on the first engine is an error', async () => {
    const plan = planStreams(request());
    const gpu = new PaperGpu(plan.paths, mid);
    gpu.failures.set('measure 1 on 64', memory);
    await expect(size(plan, gpu)).rejects.toBe(memory);
  });

  test('cancelling is never a result', async () => {
    const plan = planStreams(request());
    const gpu = new PaperGpu(plan.paths, mid);
    const cancelled = new TrtforgeError('TF_CANCELLED', 'Cancelled.');
    gpu.failures.set('build 128', cancelled);
    await expect(size(plan, gpu)).rejects.toBe(cancelled);
  });

  test('an estimate saves a build that cannot fit', async () => {
    const plan = planStreams(request());
    const gpu = new PaperGpu(plan.paths, mid, { contextBytes: 800 << 20 });
    const { stop, maxBatch } = await size(plan, gpu);
    expect(stop.reason).toBe('memory-estimate');
    expect({ did: gpu.did, maxBatch }).toEqual({ did: all.slice(0, 3), maxBatch: 64 });
  });

  test.each([
    ['Orin', true],
    ['NVIDIA L4', false],
  ])('a plan counts twice where processor and GPU share the memory: %s', async (name, stops) => {
    const plan = planStreams(request());
    // With the 27 bytes of the plan once it just fits into 95 % of a GiB.
    const gpu = new PaperGpu(plan.paths, mid, { contextBytes: 510_027_352, gpu: name });
    expect((await size(plan, gpu)).stop.reason === 'memory-estimate').toBe(stops);
  });

  test('time: a second engine that does not fit is not begun, and without any answer it is inconclusive', async () => {
    const plan = planStreams(request({ limits: { ...request().limits, timeLimitSeconds: 50 } }));
    let clock = 0;
    const now = () => (clock += 1000);
    expect(await size(plan, new PaperGpu(plan.paths, mid), { now })).toMatchObject({
      stop: { reason: 'time' },
      maxBatch: 64,
      exitCode: 0,
    });
    const none = planStreams(request({ limits: { ...request().limits, timeLimitSeconds: 0 }, fresh: true }));
    const result = await size(none, new PaperGpu(none.paths, mid), { now });
    expect(result).toMatchObject({
      stop: { reason: 'time' },
      maxBatch: null,
      peakGpuStreams: null,
      exitCode: 4,
    });
    expect(result.summary.join('\n')).toContain('PEAK_GPU_STREAMS (GPU-only upper bound): unknown streams');
  });
});

describe('resuming', () => {
  const deaths = all.flatMap((deed, index) =>
    (['before', 'after'] as const).map((when) => ({ deed, when, at: index + 1 })),
  );

  test.each(deaths)(
    'killed $when "$deed": the next call does the rest and comes to the same',
    async ({ at, when }) => {
      const plan = planStreams(request());
      const first = new PaperGpu(plan.paths, mid);
      first.death = { at, when };
      await expect(size(plan, first)).rejects.toThrow('killed');
      const second = new PaperGpu(plan.paths, mid);
      const result = await size(plan, second);
      // An engine that was published is sound by itself; a log is believed only with its record, which comes after it.
      const kept = when === 'after' && (all[at - 1] ?? '').startsWith('build') ? at : at - 1;
      expect(second.did).toEqual(all.slice(kept));
      expect(result).toMatchObject({ maxBatch: 128, peakGpuStreams: 96, stop: { reason: 'enough' } });
    },
  );

  test('a finished sizing is read, not repeated, and its times are those of the work', async () => {
    const plan = planStreams(request());
    const before = await size(plan, new PaperGpu(plan.paths, mid));
    const again = new PaperGpu(plan.paths, mid);
    const after = await size(plan, again);
    expect(again.did).toEqual([]);
    expect(after.steps).toEqual(before.steps);
    expect(after.engines.map(({ source }) => source)).toEqual(['disk', 'disk']);
    expect(after.summary).toEqual(before.summary);
  });

  test('--fresh reuses nothing', async () => {
    const plan = planStreams(request());
    await size(plan, new PaperGpu(plan.paths, mid));
    const again = new PaperGpu(plan.paths, mid);
    await size(planStreams(request({ fresh: true })), again);
    expect(again.did).toEqual(all);
  });

  test.each<[string, (plan: StreamsPlan) => void, readonly string[]]>([
    ['a log was cut short', ({ paths }) => truncateSync(paths.log(64), 700), ['measure 64 on 64']],
    [
      'a log was edited',
      ({ paths }) =>
        writeFileSync(paths.log(1), readFileSync(paths.log(1), 'utf8').replace('600 qps', '900 qps')),
      all.slice(1, 2),
    ],
    ['a log is gone', ({ paths }) => rmSync(paths.log(128)), ['measure 128 on 128']],
    ['a record is gone', ({ paths }) => rmSync(recordPath(paths.log(128))), ['measure 128 on 128']],
    [
      'a record is no JSON',
      ({ paths }) => writeFileSync(recordPath(paths.log(128)), '{'),
      ['measure 128 on 128'],
    ],
    ['an engine was replaced', ({ paths }) => writeFileSync(paths.engine(128), 'other bytes'), ['build 128']],
    ['the data file is gone', ({ paths }) => rmSync(paths.data), []],
  ])('%s: only that is done again', async (_what, damage, expected) => {
    const plan = planStreams(request());
    await size(plan, new PaperGpu(plan.paths, mid));
    damage(plan);
    const again = new PaperGpu(plan.paths, mid);
    const result = await size(plan, again);
    expect(again.did.slice(0, expected.length)).toEqual(expected);
    expect(result).toMatchObject({ maxBatch: 128, peakGpuStreams: 96 });
    expect(data(plan)).toMatchObject({ peak_gpu_streams: 96 });
  });

  test('another model or another mode is measured anew', async () => {
    const plan = planStreams(request());
    await size(plan, new PaperGpu(plan.paths, mid));
    const graph = new PaperGpu(plan.paths, mid);
    await size(plan, graph, { mode: { ...seedMode, graph: true } });
    expect(graph.did).toEqual(all.filter((deed) => deed.startsWith('measure')));
    const other = new PaperGpu(plan.paths, mid);
    other.identity = 'b';
    await size(plan, other);
    expect(other.did).toEqual(all);
  });

  test('another model of GPU is measured anew with the same engines', async () => {
    const plan = planStreams(request());
    await size(plan, new PaperGpu(plan.paths, mid));
    const other = new PaperGpu(plan.paths, mid);
    await size(plan, other, { model: 'Another GPU' });
    expect(other.did).toEqual(all.filter((deed) => deed.startsWith('measure')));
  });

  test('a smaller limit does not reach for a larger engine that lies there', async () => {
    const plan = planStreams(request());
    await size(plan, new PaperGpu(plan.paths, mid));
    const limited = planStreams(request({ limits: { ...request().limits, maxBatchLimit: 64 } }));
    const gpu = new PaperGpu(plan.paths, mid);
    expect(await size(limited, gpu)).toMatchObject({ maxBatch: 64, stop: { reason: 'max-batch-limit' } });
    expect(gpu.did).toEqual([]);
  });
});

describe('the batches beside', () => {
  const jagged: Rates = (batch) => (batch === 50 ? 500 : 1280);

  test('N − 8, N and N + 8 are measured apart from the fixed logs, and a notable loss is reported', async () => {
    const plan = planStreams(request({ sensitivity: true }));
    const gpu = new PaperGpu(plan.paths, jagged);
    const { sensitivity, warnings } = await size(plan, gpu);
    expect(sensitivity?.map(({ batch, imagesPerSecond }) => [batch, Math.round(imagesPerSecond)])).toEqual([
      [34, 1280],
      [42, 1280],
      [50, 500],
    ]);
    expect(sensitivity?.[2]?.changePercent).toBeCloseTo(-60.9, 1);
    expect(warnings).toEqual(expect.arrayContaining([expect.stringMatching(/^Batch 50 has 61 % fewer/)]));
    expect(existsSync(join(plan.paths.benchmarks, 'sensitivity/b34/trtexec_b34.log'))).toBe(true);
    expect(existsSync(plan.paths.log(34))).toBe(false);
  });

  test('that fail leave the sizing as it is, which it states', async () => {
    const plan = planStreams(request({ sensitivity: true }));
    const gpu = new PaperGpu(plan.paths, jagged);
    gpu.failures.set('measure 50 on 64', new TrtforgeError('TF_GPU_MEMORY', 'no room'));
    const result = await size(plan, gpu);
    expect(result).toMatchObject({ sensitivity: null, peakGpuStreams: 42, exitCode: 4 });
    expect(result.warnings.at(-1)).toBe('The batches beside could not be measured: TF_GPU_MEMORY no room');
    expect(data(plan)).toMatchObject({ peak_gpu_streams: 42 });
  });

  test('is resumed too, and stays within the engine’s batches', async () => {
    const plan = planStreams(request({ sensitivity: true }));
    await size(plan, new PaperGpu(plan.paths, () => 1900));
    const again = new PaperGpu(plan.paths, () => 1900);
    const { sensitivity } = await size(plan, again);
    expect(again.did).toEqual([]);
    expect(sensitivity?.map(({ batch }) => batch)).toEqual([55, 63]);
  });
});

describe('runs of deepstream-app', () => {
  const PERF = '**PERF:  30.01 (29.98)\t30.03 (30.00)\t30.01 (29.9)\t29.99 (30.1)\n';
  const place = (plan: StreamsPlan, name: string) => {
    const ds = join(plan.paths.benchmarks, 'ds');
    mkdirSync(ds, { recursive: true });
    writeFileSync(join(ds, name), PERF.repeat(3));
  };

  test('are in benchmark_data.json by their logs', async () => {
    const plan = planStreams(request());
    place(plan, 'ds_s4_run1.log');
    await size(plan, new PaperGpu(plan.paths, mid));
    expect(data(plan)).toMatchObject({
      deepstream: {
        run1: { streams: 4, total_fps: 120.04, fps_per_stream: 30.01 },
        run2: { streams: null, total_fps: null, fps_per_stream: null },
      },
    });
  });

  test('stand in the report of the sizing, from its folder and from what --json printed', async () => {
    const plan = planStreams(request());
    const { peakGpuStreams } = await size(plan, new PaperGpu(plan.paths, mid));
    const printed = join(folder, 'size.json');
    writeFileSync(printed, readFileSync(plan.paths.sizing));
    place(plan, 'ds_s4_run1.log');
    for (const from of [plan.paths.model, printed]) {
      const { exitCode, out } = await trtforge(['report', from, '--format', 'markdown', '-o', '-']);
      expect(exitCode).toBe(0);
      for (const shown of [`${peakGpuStreams} streams`, 'trtexec_b128.log', 'ds_s4_run1.log'])
        expect(out).toContain(shown);
    }
    expect((await trtforge(['report', plan.paths.model])).exitCode).toBe(0);
    expect(readFileSync(join(plan.paths.model, 'report.html'), 'utf8')).toContain('ds_s4_run1.log');
  });

  test('whatever an earlier benchmark_data.json holds, the figures are those measured', async () => {
    const plan = planStreams(request());
    const { answers, engine } = await size(plan, new PaperGpu(plan.paths, mid));
    const run = { streams: 64, total_fps: 1920.5, fps_per_stream: 30.01 };
    const whole = data(plan) as Record<string, unknown>;
    const earlier = Buffer.from(JSON.stringify({ ...whole, deepstream: { run1: run, run2: run } }));
    for (const damaged of mutations(earlier, runs(300))) {
      writeFileSync(plan.paths.data, damaged);
      expect(await size(plan, new PaperGpu(plan.paths, mid))).toMatchObject({ answers, engine });
      const { deepstream } = data(plan) as { deepstream: Record<string, object> };
      for (const each of [deepstream.run1, deepstream.run2])
        for (const value of Object.values(each ?? { missing: 'run' }))
          expect(value === null || typeof value === 'number').toBe(true);
    }
  });
});
