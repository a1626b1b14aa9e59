import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readTrtexecLog } from '../../../../src/tensorrt/trtexec/log/log.js';
import { recordedLogs } from '../../../fakes/trtexec.js';
import { mutations } from '../../../support/mutations.js';
import { refusal } from '../../../support/refusal.js';

const read = (name: string) => readTrtexecLog(join(recordedLogs, `${name}.log`));
const linesOf = (name: string) => readFileSync(join(recordedLogs, `${name}.log`), 'utf8').split('\n');
const names = readdirSync(recordedLogs).map((file) => file.replace(/\.log$/, ''));

test('a heading called like a method opens no section', () => {
  const lines = linesOf('10.6-build_fp16').map((line) =>
    line.replace('=== Build Options ===', '=== constructor ==='),
  );
  expect(lines.join('\n')).toContain('=== constructor ===');
  expect(readTrtexecLog(lines).options.build).toEqual({});
});

describe('every recorded run', () => {
  test.each([
    ['10.6-bench_r50_b1', 'passed', 0],
    ['10.6-bench_r50_b64', 'passed', 0],
    ['10.6-bench_r50t_b1', 'passed', 0],
    ['10.6-bench_seed_b1', 'passed', 0],
    ['10.6-bench_transfers_graph_b1', 'passed', 0],
    ['10.6-build_enc_fp16', 'passed', 0],
    ['10.6-build_fp16', 'passed', 0],
    ['10.6-build_fp16_warm', 'passed', 0],
    ['10.6-build_typed', 'passed', 0],
    ['10.6-build_vc_excluded', 'passed', 0],
    ['10.6-err_bad_input_name', 'failed', 5],
    ['10.6-err_loadinputs_size', 'failed', 1],
    ['10.6-err_mempool_mib', 'passed', 0],
    ['10.6-err_min_gt_max', 'failed', 6],
    ['10.6-err_no_file', 'failed', 6],
    ['10.6-err_no_gpu', 'unfinished', 1],
    ['10.6-err_no_shapes', 'passed', 0],
    ['10.6-err_other_version', 'passed', 0],
    ['10.6-err_text_plan', 'failed', 4],
    ['10.6-err_trunc_onnx', 'failed', 5],
    ['10.6-err_ultralytics_header', 'unfinished', 1],
    ['10.6-err_unknown_flag', 'failed', 1],
    ['10.6-err_vc_no_lean', 'failed', 5],
    ['10.6-err_workspace_flag', 'failed', 1],
    ['10.6-output_b1', 'passed', 0],
    ['10.6-planversion', 'passed', 0],
    ['10.6-profile_b32', 'passed', 0],
    ['11.1-build', 'failed', 4],
    ['11.1-build2', 'unfinished', 2],
    ['11.1-err_lean_no_driver', 'unfinished', 1],
    ['11.1-err_unknown_flag', 'unfinished', 1],
    ['8.6-bench_b1', 'passed', 0],
    ['8.6-build_fp16', 'passed', 1],
    ['8.6-build_fp16_warm', 'passed', 5],
    ['8.6-err_bad_input_name', 'failed', 5],
    ['8.6-err_mempool_g', 'passed', 0],
    ['8.6-err_text_plan', 'failed', 4],
    ['8.6-err_truncated_plan', 'failed', 4],
    ['8.6-err_unknown_flag', 'failed', 1],
    ['8.6-profile_b8', 'passed', 0],
  ])('%s: %s, %d errors', (name, outcome, errors) => {
    const log = read(name);
    const version = { '8': '8.6.1', '10': '10.6.0.26', '11': '11.1.0.106' }[name.split('.')[0] ?? ''];
    expect({ outcome: log.outcome, errors: log.errorCount, version: log.version, runs: log.runs }).toEqual({
      outcome,
      errors,
      version,
      runs: 1,
    });
    expect(log.commandLine).toContain('trtexec');
  });

  test('is in the table above', () => {
    expect(names).toHaveLength(40);
  });
});

describe('a build', () => {
  test('10.6: times, sizes and memory of the engine', () => {
    expect(read('10.6-build_typed').engine).toMatchObject({
      parseSeconds: 0.0655913,
      builtSeconds: 20.8187,
      deserializedSeconds: 0.0416774,
      bytes: Math.round(50.3187 * 2 ** 20),
      inputs: 1,
      outputs: 1,
      scheduledLayers: 138,
      hostPersistentBytes: 386560,
      devicePersistentBytes: 0,
      scratchBytes: 512,
      activationBytes: 263325184,
      weightsBytes: 51048192,
      peakCpuBytes: 4 * 2 ** 20,
      peakGpuBytes: 221 * 2 ** 20,
      timingCacheLoadedBytes: 845523,
      timingCacheSavedBytes: 851763,
    });
  });

  test('8.6 spells memory without its unit, states no size, and has no device list', () => {
    const { engine, device } = read('8.6-build_fp16');
    expect(engine).toMatchObject({
      builtSeconds: 62.7243,
      bytes: null,
      scratchBytes: 512,
      activationBytes: 64274432,
      weightsBytes: null,
      timingCacheLoadedBytes: null,
      timingCacheSavedBytes: 68219,
    });
    expect(device).toEqual({
      name: 'NVIDIA H200',
      id: null,
      uuid: null,
      computeCapability: 90,
      sms: 132,
      memoryMiB: 143155,
    });
  });

  test('the device by name, number and UUID from 10 on', () => {
    expect(read('10.6-build_typed').device).toMatchObject({
      name: 'NVIDIA H200',
      id: 0,
      uuid: 'GPU-5d79154c-9c5b-cf28-bc7b-921b9b01acd2',
    });
  });

  test.each([
    ['10.6-err_mempool_mib', 32768],
    ['8.6-err_mempool_g', 8 * 2 ** 20],
    ['10.6-build_fp16', 4096 * 2 ** 20],
    ['10.6-build_typed', null],
  ])('%s: the workspace as trtexec understood it is %d bytes', (name, bytes) => {
    expect(read(name).build.memoryPools.workspace).toBe(bytes);
  });

  test.each([
    ['8.6-build_fp16', 'FP32+FP16'],
    ['10.6-build_typed', 'Strongly Typed'],
    ['10.6-err_no_shapes', 'FP32'],
    ['11.1-build', 'Strongly Typed'],
  ])('%s: precision %s', (name, precision) => {
    expect(read(name).build.precision).toBe(precision);
  });

  test('shapes of several inputs', () => {
    expect(read('10.6-build_enc_fp16').build.profiles).toEqual([
      { profile: 0, input: 'x', min: [1, 16, 768], opt: [4, 64, 768], max: [8, 128, 768] },
      { profile: 0, input: 'state', min: [1, 768], opt: [4, 768], max: [8, 768] },
    ]);
    expect(read('10.6-build_enc_fp16').measurement.shapes).toEqual({ state: [4, 768], x: [4, 64, 768] });
  });

  test('11.1 logs an engine of no bytes before it dies', () => {
    const log = read('11.1-build2');
    expect(log.engine.bytes).toBe(0);
    expect(log.errors.at(-1)?.message).toContain('Attempting to access an empty engine!');
  });

  test('options that are rejected are named, and the help printed with them is not taken for an echo', () => {
    expect(read('10.6-err_unknown_flag').unknownOptions).toEqual(['--nosuchflag']);
    expect(read('10.6-err_workspace_flag').unknownOptions).toEqual(['--workspace']);
    expect(read('10.6-err_unknown_flag').options.build).toEqual({});
  });

  test('the version of a plan', () => {
    expect(read('10.6-planversion').engine.planVersion).toBe('10.6.0.26');
  });
});

describe('a measurement', () => {
  test('10.6: how it was measured and what came of it', () => {
    const log = read('10.6-bench_seed_b1');
    expect(log.measurement).toEqual({
      iterations: 10,
      durationSeconds: 5,
      warmUpMs: 1000,
      idleMs: 0,
      sleepMs: 0,
      streams: 1,
      transfers: false,
      spinWait: false,
      graph: false,
      exposeDma: false,
      separateProfileRun: false,
      shapes: { data: [1, 3, 224, 224] },
      averageRuns: 10,
      percentiles: [90, 95, 99],
    });
    expect(log.performance).toMatchObject({
      throughputQps: 1326.22,
      gpuCompute: {
        min: 0.595215,
        max: 5.13672,
        mean: 0.730544,
        median: 0.726562,
        percentiles: [
          { percent: 90, ms: 0.78418 },
          { percent: 95, ms: 0.843262 },
          { percent: 99, ms: 1.3219 },
        ],
      },
      h2d: { mean: 0 },
      hostWalltimeSeconds: 5.00145,
      gpuComputeTimeSeconds: 4.8457,
    });
    expect(log.run).toEqual({
      warmUpQueries: 1226,
      warmUpMs: 1000,
      queries: 6633,
      seconds: 5.00145,
      graphCaptured: null,
      profiledIterations: null,
    });
    expect(log.engine.contextBytes).toBe(Math.round(251.126 * 2 ** 20));
  });

  test.each([
    ['8.6-bench_b1', 2390.48, null],
    ['10.6-bench_r50_b1', 1902.09, true],
  ])('%s: %d qps; only 10 reports that it captured a graph', (name, qps, captured) => {
    const log = read(name);
    expect(log.measurement).toMatchObject({ transfers: false, spinWait: true, graph: true });
    expect(Math.abs((log.performance?.throughputQps ?? 0) - qps)).toBeLessThan(qps * 0.01);
    expect(log.run.graphCaptured).toBe(captured);
  });

  test.each([
    // In the words of 8.6 to 10.16, of 8.6 to 11.1, of 8.6 to 10.16 with CUDA before 11.1, and of 11.1.
    'The specified --useCudaGraph flag has been ignored. The inference will be launched without using CUDA graph launch.',
    'The CUDA graph capture on the stream has failed.',
    'Graph profiling only works with CUDA 11.1 and beyond. Ignored --useCudaGraph flag and disabled CUDA graph.',
    'CUDA graph capture failed. The inference will be launched without using CUDA graph.',
  ])('"%s": no graph', (message) => {
    expect(readTrtexecLog([`[11/20/2026-21:32:52] [W] ${message}`]).run.graphCaptured).toBe(false);
  });

  test.each([
    // 8.6 to 10.15, and 10.16 on.
    ['Loaded 7 bytes of timing cache from t', 'Saved 9 bytes of timing cache to t'],
    ['Loaded 7 bytes of cache from file: t', 'Saved 9 bytes of cache to file: t'],
  ])('"%s", "%s"', (...lines) => {
    const { engine } = readTrtexecLog(lines.map((line) => `[11/20/2026-21:32:52] [I] ${line}`));
    expect(engine).toMatchObject({ timingCacheLoadedBytes: 7, timingCacheSavedBytes: 9 });
  });

  test('per-layer tables state how many inferences they sum', () => {
    expect(read('10.6-profile_b32').run.profiledIterations).toBe(612);
    expect(read('8.6-profile_b8').run.profiledIterations).toBe(975);
  });

  test('warnings and errors with their lines', () => {
    const { warnings } = read('10.6-bench_seed_b1');
    expect(warnings.map(({ line }) => line)).toEqual([495, 496, 497, 498]);
    expect(warnings[2]?.message).toBe(
      '* GPU compute time is unstable, with coefficient of variance = 20.051%.',
    );
  });

  test('11.1 echoes that it measures without transfers, with spin wait and a graph unless requested otherwise', () => {
    for (const name of ['11.1-build', '11.1-err_lean_no_driver'])
      expect(read(name).measurement).toMatchObject({ transfers: false, spinWait: true, graph: true });
  });
});

describe('logs as they come', () => {
  const name = '10.6-bench_seed_b1';

  test('with \\r\\n', () => {
    expect(readTrtexecLog(linesOf(name).map((line) => `${line}\r`)).performance).toEqual(
      read(name).performance,
    );
  });

  test('with two streams glued into one line', () => {
    const glued = readTrtexecLog([
      '[11/20/2026-21:33:49] [I] Throughput: 100 qps[11/20/2026-21:33:49] [W] * GPU compute time is unstable&&&& PASSED TensorRT.trtexec [TensorRT v100600] [b26] # trtexec',
    ]);
    expect(glued.performance?.throughputQps).toBe(100);
    expect(glued.warnings).toEqual([{ line: 1, message: '* GPU compute time is unstable' }]);
    expect(glued.outcome).toBe('passed');
  });

  test('cut short: what was read stays, the rest is null', () => {
    const lines = linesOf(name);
    const at = lines.findIndex((line) => line.includes('H2D Latency'));
    const log = readTrtexecLog([...lines.slice(0, at), (lines[at] ?? '').slice(0, 60)]);
    expect(log.outcome).toBe('unfinished');
    expect(log.performance).toMatchObject({ throughputQps: 1326.22, h2d: null, gpuCompute: null });
  });

  test('only the lines that grep left', () => {
    const grepped = linesOf(name).filter((line) => /Throughput|GPU Compute Time:/.test(line));
    expect(readTrtexecLog(grepped).performance).toMatchObject({
      throughputQps: 1326.22,
      gpuCompute: { mean: 0.730544 },
      latency: null,
    });
  });

  test('two runs in one file: the last counts', () => {
    const log = readTrtexecLog([...linesOf('10.6-bench_r50_b64'), ...linesOf('8.6-bench_b1')]);
    expect(log).toMatchObject({ runs: 2, version: '8.6.1', performance: { throughputQps: 2390.48 } });
  });

  test('inf and nan are no numbers', () => {
    const log = readTrtexecLog([
      '[11/20/2026-21:33:49] [I] Throughput: inf qps',
      '[11/20/2026-21:33:49] [I] Latency: min = nan ms, max = 1.2e+06 ms, mean = -nan ms, median = 3 ms, percentile(99%) = inf ms',
    ]);
    expect(log.performance).toMatchObject({
      throughputQps: null,
      latency: { min: null, max: 1.2e6, mean: null, median: 3, percentiles: [{ percent: 99, ms: null }] },
    });
  });

  test('of tensorrt_rtx', () => {
    const log = readTrtexecLog([
      '&&&& RUNNING TensorRT-RTX.tensorrt_rtx [TensorRT v10200] [b54] # tensorrt_rtx',
    ]);
    expect(log).toMatchObject({ product: 'tensorrt-rtx', version: '1.2.0.54' });
  });

  test('a file that is not there', () => {
    expect(refusal(() => readTrtexecLog('/nowhere/x.log')).code).toBe('TF_FILE_NOT_FOUND');
  });
});

describe('damaged logs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-log-'));

  test.each([
    '10.6-build_typed',
    '8.6-build_fp16',
    '11.1-build2',
    '10.6-err_unknown_flag',
    '10.6-bench_transfers_graph_b1',
  ])('%s: every mutation is read, as plain data', (name) => {
    const original = readFileSync(join(recordedLogs, `${name}.log`));
    for (const [number, bytes] of [...mutations(original, 150, names.indexOf(name) + 1)].entries()) {
      const path = join(folder, `${name}.${number}`);
      writeFileSync(path, bytes);
      const log = readTrtexecLog(path);
      expect(JSON.parse(JSON.stringify(log))).toEqual(log);
      rmSync(path);
    }
  });

  test('a hundred megabytes on one line, or of warnings, stay small', () => {
    const line = '[11/20/2026-21:33:49] [W] something is not as it should be';
    const log = readTrtexecLog(
      (function* () {
        for (let index = 0; index < 1_000_000; index++) yield line;
        yield 'x'.repeat(100 << 20);
      })(),
    );
    expect(log.warningCount).toBe(1_000_000);
    expect(log.warnings).toHaveLength(500);
    expect(JSON.stringify(log).length).toBeLessThan(1 << 20);
    rmSync(folder, { recursive: true });
  });
});
