import { describe, expect, test } from 'vitest';
import { readTrtexecLog } from '../../../src/tensorrt/trtexec/log/log.js';
import { benchMisreadings, buildMisreadings } from '../../../src/tensorrt/trtexec/misreadings.js';
import type { TrtexecBenchRequest, TrtexecBuildRequest } from '../../../src/tensorrt/trtexec/options.js';
import { measured, noPlugins, plain } from '../../support/trtexec-requests.js';

/** A log that echoes lines of one section. */
const echoing = (code: string, section: string, ...lines: readonly string[]) =>
  readTrtexecLog([
    `&&&& RUNNING TensorRT.trtexec [TensorRT v${code}] # trtexec`,
    ...[`=== ${section} Options ===`, ...lines].map((line) => `[11/20/2026-21:32:52] [I] ${line}`),
  ]);

describe('what a build echoes, in the words of each version', () => {
  // Version, line of the echo, request that means the same, request that means something else.
  test.each<[string, string, Partial<TrtexecBuildRequest>, Partial<TrtexecBuildRequest>]>([
    ['9100', 'Precision: FP32 (Strongly Typed)', { stronglyTyped: true }, {}],
    ['100001', 'Precision: FP32 (Strongly Typed)', { stronglyTyped: true }, {}],
    ['100200', 'Precision: Strongly Typed', { stronglyTyped: true }, {}],
    ['110100', 'Precision: Strongly Typed', { stronglyTyped: true }, {}],
    ['8601', 'Precision: FP32+FP16', { precisions: ['fp16'] }, { precisions: [] }],
    [
      '8601',
      'Precision: FP32 (obey precision constraints)',
      { switches: ['obey-precision-constraints'] },
      { switches: ['prefer-precision-constraints'] },
    ],
    [
      '100600',
      'Precision: FP32 (prefer precision constraints)',
      { switches: ['prefer-precision-constraints'] },
      {},
    ],
    [
      '100600',
      'Memory Pools: workspace: 4096 MiB, dlaSRAM: default, dlaLocalDRAM: default, dlaGlobalDRAM: default, tacticSharedMem: 48 KiB',
      { memoryPools: { workspace: 2 ** 32, tacticSharedMem: 48 << 10 } },
      { memoryPools: { workspace: 2 ** 32, tacticSharedMem: 48 << 20 } },
    ],
    [
      '100001',
      'Memory Pools: workspace: default, dlaSRAM: default, dlaLocalDRAM: default, dlaGlobalDRAM: default, tacticSharedMem: 0.046875 MiB',
      { memoryPools: { tacticSharedMem: 48 << 10 } },
      { memoryPools: { tacticSharedMem: 48 } },
    ],
    [
      '100600',
      'Memory Pools: workspace: 3.05176e-05 MiB, dlaSRAM: default, dlaLocalDRAM: default, dlaGlobalDRAM: default, tacticSharedMem: default',
      { memoryPools: { workspace: 32 } },
      { memoryPools: { workspace: 32 * 2 ** 30 } },
    ],
    ['8601', 'Restricted mode: Enabled', { switches: ['safety-scope'] }, {}],
    ['8601', 'Heuristic: Enabled', { switches: ['enable-tactic-heuristic'] }, {}],
    ['110100', 'Allow GPU fallback for DLA: Enabled', { switches: ['gpu-fallback'] }, {}],
    ['100600', 'Enable Monitor Memory: Enabled', { switches: ['monitor-memory'] }, {}],
    ['110100', 'Distributive Independence: Enabled', { switches: ['distributive-independence'] }, {}],
    ['100600', 'Enable Compilation Cache: Disabled', { switches: ['disable-compilation-cache'] }, {}],
    ['100600', 'errorOnTimingCacheMiss: Enabled', { switches: ['error-on-timing-cache-miss'] }, {}],
    ['8601', 'timingCacheMode: disable', { switches: ['disable-timing-cache'] }, {}],
    ['8601', 'timingCacheMode: global', { timingCache: 't.cache' }, {}],
    ['8601', 'timingCacheMode: local', {}, { timingCache: 't.cache' }],
    ['100600', 'timingCacheFile: /a b/t=1.cache', { timingCache: '/a b/t=1.cache' }, {}],
    ['8601', 'Profiling verbosity: 2', { profilingVerbosity: 'detailed' }, { profilingVerbosity: 'none' }],
    ['100600', 'Runtime Platform: Windows AMD64', { runtimePlatform: 'windows-amd64' }, {}],
    [
      '8601',
      'Tactic sources: cublas [OFF], cublasLt [OFF], cudnn [ON], edge mask convolutions [OFF], JIT convolutions [ON], ',
      { tacticSources: ['jit-convolutions', 'cudnn'] },
      { tacticSources: ['jit-convolutions'] },
    ],
    ['110100', 'Tactic sources: Using default tactic sources', {}, { tacticSources: [] }],
    [
      '8601',
      'Preview Features: kPROFILE_SHARING_0806 [ON], ',
      { previewFeatures: ['profile-sharing-0806'] },
      { previewFeatures: ['faster-dynamic-shapes-0805'] },
    ],
    [
      '100600',
      'Preview Features: Use default preview flags.',
      { previewFeatures: ['profile-sharing-0806'] },
      { previewFeatures: ['aliased-plugin-io-10-03'] },
    ],
    ['100600', 'Save engine: m.plan', {}, { saveEngine: 'n.plan' }],
    ['100600', 'Input build shapes: model', {}, { profiles: [{ x: { min: [1], opt: [1], max: [1] } }] }],
  ])('%s: "%s" is %j, not %j', (code, line, same, other) => {
    const log = echoing(code, 'Build', line);
    expect(buildMisreadings({ ...plain, ...same }, log)).toEqual([]);
    expect(buildMisreadings({ ...plain, ...other }, log)).toHaveLength(1);
  });

  test.each<[string, string]>([
    ['8601', 'Plugins: b.so a.so'],
    ['100600', 'Plugins: b.so a.so'],
    // From 10.16 on.
    ['110100', 'Loaded static plugins: b.so a.so'],
  ])('%s: "%s", in an order of its own', (code, line) => {
    const log = echoing(code, 'System', 'Device: 1', line);
    const request = { ...plain, device: 1, plugins: { ...noPlugins, static: ['a.so', 'b.so'] } };
    expect(buildMisreadings(request, log)).toEqual([]);
    expect(buildMisreadings(plain, log).map(({ option }) => option)).toEqual(['--device', '--staticPlugins']);
  });
});

describe('what a measurement echoes', () => {
  test.each<[string, string, string, Partial<TrtexecBenchRequest>, Partial<TrtexecBenchRequest>]>([
    ['100600', 'Inference', 'Optimization Profile Index: 2', { profile: 2 }, {}],
    ['100600', 'Inference', 'Separate profiling: Enabled', { exports: { profile: 'p' } }, {}],
    [
      '8601',
      'Inference',
      'Duration: 1.5s (+ 0.5ms warm up)',
      { durationMs: 1500, warmUpMs: 0.5 },
      { durationMs: 1500 },
    ],
    [
      '8601',
      'Inference',
      'Duration: 2e+06s (+ 1e+07ms warm up)',
      { durationMs: 2e9, warmUpMs: 1e7 },
      { warmUpMs: 1e7 },
    ],
    ['110100', 'Inference', 'Input inference shapes: model', {}, { shapes: { x: [1] } }],
    ['110100', 'Reporting', 'Export timing to JSON file: t.json', { exports: { times: 't.json' } }, {}],
    ['8601', 'Build', 'TensorRT runtime: lean', { runtime: 'lean' }, {}],
    ['8601', 'Build', 'Version Compatible: Enabled', { allowHostCode: true }, {}],
  ])('%s, %s: "%s" is %j, not %j', (code, section, line, same, other) => {
    const log = echoing(code, section, line);
    expect(benchMisreadings({ ...measured, ...same }, log)).toEqual([]);
    expect(benchMisreadings({ ...measured, ...other }, log)).toHaveLength(1);
  });

  test.each([
    ['Averages: 100 inferences', '--avgRuns'],
    ['Percentiles: 99', '--percentile'],
  ])('"%s" is not passed to every measurement', (line, option) => {
    expect(benchMisreadings(measured, echoing('100600', 'Reporting', line))).toMatchObject([{ option }]);
  });
});
