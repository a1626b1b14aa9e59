import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { requireSuccess } from '../../../src/tensorrt/trtexec/failure.js';
import { readTrtexecLog } from '../../../src/tensorrt/trtexec/log/log.js';
import type { TrtexecRun } from '../../../src/tensorrt/trtexec/run.js';
import { recordedLogs } from '../../fakes/trtexec.js';
import { refusal } from '../../support/refusal.js';

/** A recorded run as if it had just ended. */
function ended(
  lines: string | readonly string[],
  exitCode: number | null,
  signal: NodeJS.Signals | null = null,
): TrtexecRun {
  const text =
    typeof lines === 'string' ? readFileSync(join(recordedLogs, `${lines}.log`), 'utf8').split('\n') : lines;
  return {
    arguments: [],
    log: readTrtexecLog(text),
    exitCode,
    signal,
    wallMs: 1,
    peakMemoryBytes: null,
    lastLines: text.slice(-3),
    logPath: '/tmp/x.log',
  };
}

describe('recorded runs, judged', () => {
  test.each([
    ['10.6-build_typed', 0],
    ['8.6-build_fp16', 0],
    ['8.6-build_fp16_warm', 0],
    ['10.6-err_other_version', 0],
  ])('%s ended well, whatever it printed as an error', (name, exitCode) => {
    expect(() => requireSuccess(ended(name, exitCode), 'building', 'TF_BUILD_FAILED')).not.toThrow();
  });

  test.each([
    ['10.6-err_trunc_onnx', 1, 'TF_MODEL_REJECTED'],
    ['10.6-err_no_file', 1, 'TF_MODEL_REJECTED'],
    ['10.6-err_no_gpu', 1, 'TF_BUILDER_UNAVAILABLE'],
    ['11.1-build', 1, 'TF_BUILDER_UNAVAILABLE'],
    ['11.1-build2', 1, 'TF_BUILD_FAILED'],
    ['11.1-err_lean_no_driver', 1, 'TF_BUILDER_UNAVAILABLE'],
    ['10.6-err_vc_no_lean', 1, 'TF_BUILD_FAILED'],
    ['10.6-err_ultralytics_header', 134, 'TF_CHILD_DIED'],
    ['10.6-err_min_gt_max', 1, 'TF_BUILD_FAILED'],
    ['10.6-err_text_plan', 1, 'TF_PLAN_LOAD_FAILED'],
    ['8.6-err_truncated_plan', 1, 'TF_PLAN_LOAD_FAILED'],
  ])('%s, exit code %d: %s', (name, exitCode, code) => {
    const error = refusal(() => requireSuccess(ended(name, exitCode), 'building m.onnx', 'TF_BUILD_FAILED'));
    expect(error.code).toBe(code);
    expect(error.message).toContain('building m.onnx (log: /tmp/x.log)');
  });

  test.each([
    ['Error Code 1: Cask (no further information)', 1 << 20, 'TF_GPU_MEMORY'],
    ['invalid resource handle', 1 << 20, 'TF_GPU_MEMORY'],
    ['invalid resource handle', 2 ** 33, 'TF_BUILD_FAILED'],
    ['invalid resource handle', null, 'TF_BUILD_FAILED'],
    ['Error Code 2: Internal Error', 1 << 20, 'TF_BUILD_FAILED'],
  ])('%s with %s bytes free: %s', (message, free, code) => {
    const run = ended([`[11/26/2026-10:00:00] [E] ${message}`, '&&&& FAILED TensorRT.trtexec'], 1);
    expect(refusal(() => requireSuccess(run, 'building', 'TF_BUILD_FAILED', () => free)).code).toBe(code);
  });

  test('a loader that finds no library', () => {
    const lines = [
      'trtexec: error while loading shared libraries: libnvinfer.so.10: cannot open shared object file',
    ];
    const error = refusal(() => requireSuccess(ended(lines, 127), 'building', 'TF_BUILD_FAILED'));
    expect(error.code).toBe('TF_LIBRARY_LOAD_FAILED');
  });

  test.each<[string, number | null, NodeJS.Signals | null]>([
    ['by a signal', null, 'SIGKILL'],
    ['behind a shell', 137, null],
  ])('killed %s: the remedy is about memory', (_how, exitCode, signal) => {
    const error = refusal(() =>
      requireSuccess(ended('10.6-build_typed', exitCode, signal), 'building', 'TF_BUILD_FAILED'),
    );
    expect([error.code, error.remedy]).toEqual(['TF_CHILD_DIED', expect.stringContaining('memory')]);
  });

  test.each([
    ['out of memory', 'TF_GPU_MEMORY'],
    ['no CUDA-capable device is detected', 'TF_BUILDER_UNAVAILABLE'],
    ['an illegal memory access was encountered', 'TF_CHILD_DIED'],
  ])('trtexec 8.6 aborts where CUDA answers "%s": %s', (answer, code) => {
    const lines = ['&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec', `Cuda failure: ${answer}`];
    const error = refusal(() => requireSuccess(ended(lines, null, 'SIGABRT'), 'building', 'TF_BUILD_FAILED'));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(
      new RegExp(`^trtexec was killed by SIGABRT while building.*${answer}$`, 's'),
    );
  });

  test.each([
    // The CHECK macro prints the number alone, to 10.6.
    ['100600', 'Cuda failure: 2', 'TF_GPU_MEMORY'],
    ['100600', 'Cuda failure: 100', 'TF_BUILDER_UNAVAILABLE'],
    ['100600', 'Cuda failure: out of memory', 'TF_GPU_MEMORY'],
    ['100600', 'Cuda failure: invalid device ordinal', 'TF_GPU_UNAVAILABLE'],
    // From 10.7 on with the place.
    ['110100', 'Cuda failure at /s/samples/common/sampleDevice.cpp:99: out of memory', 'TF_GPU_MEMORY'],
    [
      '110100',
      'Cuda failure at /s/sampleDevice.cpp:99: an illegal memory access was encountered',
      'TF_BUILD_FAILED',
    ],
    // Said as information; nothing else says why it ends.
    ['100600', '[11/20/2026-21:40:19] [I] Cannot find device ID 3!', 'TF_GPU_UNAVAILABLE'],
    [
      '110100',
      '[11/20/2026-21:40:19] [I] Cannot find any available devices (GPUs)!',
      'TF_BUILDER_UNAVAILABLE',
    ],
    [
      '100600',
      '[11/20/2026-21:40:19] [E] Uncaught exception detected: Unable to open library: ./p.so due to ./p.so: undefined symbol: f',
      'TF_LIBRARY_LOAD_FAILED',
    ],
    [
      '8601',
      '[11/20/2026-21:40:19] [E] Uncaught exception detected: libnvinfer_plugin.so.8: error loading symbol: initLibNvInferPlugins',
      'TF_LIBRARY_LOAD_FAILED',
    ],
  ])('v%s ends with exit code 1 after "%s": %s', (version, line, code) => {
    const lines = [`&&&& RUNNING TensorRT.trtexec [TensorRT v${version}] # trtexec`, line];
    const error = refusal(() => requireSuccess(ended(lines, 1), 'building', 'TF_BUILD_FAILED'));
    expect(error.code).toBe(code);
    expect(error.message).toContain(line.replace(/^\[.*\] \[.\] /, ''));
  });

  test('an assertion of 8.6 aborts it, and the error before it states why', () => {
    const lines = [
      '&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec',
      '[11/20/2026-21:40:19] [E] Could not load library libnvonnxparser.so.8: Unable to open library: libnvonnxparser.so.8 due to libnvonnxparser.so.8: cannot open shared object file: No such file or directory',
      '[11/20/2026-21:40:19] [E] Assertion failure: parser.onnxParser != nullptr',
    ];
    const error = refusal(() => requireSuccess(ended(lines, null, 'SIGABRT'), 'building', 'TF_BUILD_FAILED'));
    expect(error.code).toBe('TF_LIBRARY_LOAD_FAILED');
  });

  test('exit code 0 on a log that stops is not a success', () => {
    const cut = readFileSync(join(recordedLogs, '10.6-build_typed.log'), 'utf8').split('\n').slice(0, 120);
    expect(refusal(() => requireSuccess(ended(cut, 0), 'building', 'TF_BUILD_FAILED')).message).toMatch(
      /without its line "PASSED"/,
    );
  });
});
