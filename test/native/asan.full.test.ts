import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GpuList, LibraryFacts, NativeBuildResult } from '../../src/addon/addon.js';
import { abiTable } from '../../src/tensorrt/toolchain/abi.js';
import {
  type Answer,
  type Fake,
  FakeBench,
  fakes,
  sanitizerLibrary,
  setting,
} from '../fakes/tensorrt/library.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-fake-'));
const everyGeneration = Object.keys(fakes) as Fake[];
let bench: FakeBench;

beforeAll(async () => {
  bench = await FakeBench.sanitized(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const build = (
  fake: Fake,
  more: Parameters<FakeBench['buildRequest']>[1] = {},
  environment: Record<string, string> = {},
  cancelAfterMs?: number,
) => bench.call<NativeBuildResult>('build', bench.buildRequest(fake, more), environment, cancelAfterMs);

/** Objects the fake handed out and never got back. */
function unreturned({ calls }: Answer<unknown>): string[] {
  const open: string[] = [];
  for (const call of calls) {
    const [verb, name] = call.split(' ');
    if (verb === 'create' && name !== undefined) open.push(name);
    if (verb === 'destroy' && name !== undefined) open.splice(open.lastIndexOf(name), 1);
  }
  return open;
}

const sanitizer = sanitizerLibrary();
test.skipIf(sanitizer === undefined)(
  'AddressSanitizer watches these tests (libasan is not installed)',
  async () => {
    expect(readFileSync(bench.addon).includes('__asan_init')).toBe(true);
  },
);

describe.each(everyGeneration)('the addon over a library of generation %s', (fake) => {
  const { code, version } = fakes[fake];
  const monitored = fake !== '8';

  test('reports its version', () => {
    const { result } = bench.call<LibraryFacts>('probe', bench.library(fake));
    expect(result).toEqual({
      product: fake === 'rtx1' ? 'tensorrt-rtx' : 'tensorrt',
      version,
      code,
      generation: fake,
    });
  });

  test('parses, builds, writes the plan and gives every object back', () => {
    const answer = build(fake);
    expect(answer.error).toBeUndefined();
    expect(answer.result).toMatchObject({
      bytes: 64,
      libraryVersion: version,
      layers: 3,
      timingCache: 'none',
      inputs: [{ name: 'x', dtype: 0, shape: [-1, 64] }],
      outputs: [{ name: 'y', dtype: 0, shape: [-1, 64] }],
    });
    expect(readFileSync(bench.path('plan')).toString('latin1', 0, 4)).toBe(fake === 'rtx1' ? 'vtrt' : 'ftrt');
    expect(answer.calls).toContain(`createInferBuilder ${code}`);
    expect(answer.calls).toContain('createNvOnnxParser 100');
    expect(answer.calls).toContain('parseFromFile /models/m.onnx 2');
    expect(answer.calls).toContain('buildSerializedNetwork INetworkDefinition IBuilderConfig');
    expect(unreturned(answer)).toEqual([]);
    expect(answer.calls.filter((call) => call.startsWith('destroy')).at(-1)).toBe('destroy IBuilder');
  });

  test('flags of the parser arrive before the model; none leaves it its own', () => {
    const parsed = (parserFlags: number) =>
      build(fake, { parserFlags }).calls.filter((call) => /setFlags|parseFromFile/.test(call));
    expect(parsed(1)).toEqual(['IParser setFlags 1', 'parseFromFile /models/m.onnx 2']);
    expect(parsed(0)).toEqual(['parseFromFile /models/m.onnx 2']);
  });

  test('profiles arrive with their selectors and 32- or 64-bit dimensions', () => {
    const { calls } = build(fake);
    expect(calls.filter((call) => call.startsWith('setDimensions'))).toEqual([
      'setDimensions x 0 1x64',
      'setDimensions x 1 8x64',
      'setDimensions x 2 32x64',
    ]);
  });

  test('values of a shape tensor go through the function this version has', () => {
    const profiles = [
      [
        { input: 'x', values: false, min: [1, 64], opt: [8, 64], max: [32, 64] },
        { input: 's', values: true, min: [1, 1], opt: [4, 16], max: [8, 128] },
      ],
    ];
    const { calls } = build(fake, { profiles }, { FAKE_MODEL: 'shape' });
    const name = fake === '8' || fake === '10' ? 'setShapeValues' : 'setShapeValuesV2';
    expect(calls.filter((call) => call.startsWith(name))).toEqual([
      `${name} s 0 1 1`,
      `${name} s 1 4 16`,
      `${name} s 2 8 128`,
    ]);
  });

  test('a fixed network whose output depends on the data gets a profile from 8.6 only, which cannot run it without', () => {
    const { calls } = build(fake, { profiles: [] }, { FAKE_MODEL: 'found' });
    expect(calls.filter((call) => call.startsWith('setDimensions'))).toEqual(
      fake === '8' ? [0, 1, 2].map((selector) => `setDimensions x ${selector} 8x64`) : [],
    );
  });

  test('every setting reaches its own function with its own numbers', () => {
    const table = abiTable(fake);
    const common = [
      setting('setFlag', 7),
      setting('clearFlag', 6),
      setting('setMemoryPoolLimit', 0, 2 ** 40),
      setting('setBuilderOptimizationLevel', 4),
      setting('setMaxAuxStreams', 2),
      setting('setAvgTimingIterations', 8),
      setting('setProfilingVerbosity', 2),
      setting('setHardwareCompatibilityLevel', 1),
      setting('setEngineCapability', 0),
      setting('setTacticSources', 24),
      setting('setPreviewFeature', 1, 1),
    ];
    const later = [
      'setRuntimePlatform',
      'setMaxNbTactics',
      'setTilingOptimizationLevel',
      'setL2LimitForTiling',
    ];
    const had = later.filter((name) =>
      table.classes.IBuilderConfig?.slots.some(
        (slot) => slot.name === name && (slot.since === undefined || slot.since <= '10.3.0'),
      ),
    );
    const settings = [
      ...common,
      ...had.map((name) => setting(name, name === 'setL2LimitForTiling' ? 2 ** 33 : 1)),
    ];
    const { calls, error } = build(fake, { settings });
    expect(error).toBeUndefined();
    const expected = settings.map(({ call, arguments: numbers }) =>
      call === 'setPreviewFeature' ? 'setPreviewFeature 1 on' : `${call} ${numbers.join(' ')}`,
    );
    expect(calls.filter((call) => expected.includes(call))).toEqual(expected);
  });

  test('log lines of all threads and phases become events, in order, before the end', () => {
    const { events } = build(fake);
    expect(
      events.filter((event) => event.type === 'log' && event.message.includes('another thread')),
    ).toHaveLength(100);
    expect(events.filter(({ type }) => type !== 'log' && type !== 'inside')).toEqual(
      monitored
        ? [
            { type: 'phase-start', phase: 'Building engine', steps: 2 },
            { type: 'step', phase: 'Building engine', step: 0 },
            { type: 'phase-end', phase: 'Building engine' },
          ]
        : [],
    );
  });

  test.runIf(monitored)(
    'of a thousand phases inside a phase the first is printed, and then what is going on',
    () => {
      const { events } = build(fake, {}, { FAKE_BUILD: 'slowly' });
      const inside = events.filter(({ type }) => type === 'inside');
      expect(inside[0]).toEqual({ type: 'inside', phase: 'Timing tactics', step: -1, steps: 3 });
      expect(inside.at(-1)).toEqual({ type: 'inside', phase: 'Timing tactics', step: 1, steps: 3 });
      // Two, and one more for each tenth of a second that the sanitizer took.
      expect(inside.length).toBeLessThan(100);
    },
  );

  test('a builder that ends with its process is left as it is, and nothing else is', () => {
    expect(unreturned(build(fake))).toEqual([]);
    expect(unreturned(build(fake, { keepBuilder: true }))).toEqual(['IBuilder']);
  });

  test('a rejected model lists every node, and nothing is left behind', () => {
    const answer = build(fake, {}, { FAKE_MODEL: 'refused' });
    expect(answer.error?.code).toBe('TF_MODEL_REJECTED');
    expect(answer.error?.message.split('\n').slice(1)).toEqual(
      fake === '8'
        ? [
            'node 0: No importer registered for op: Frobnicate',
            'node 1: No importer registered for op: Frobnicate',
          ]
        : [
            'node first (Frobnicate): No importer registered for op: Frobnicate',
            'node second (Frobnicate): No importer registered for op: Frobnicate',
          ],
    );
    expect(unreturned(answer)).toEqual([]);
  });

  test('a build that fails carries the library’s lines, and nothing is left behind', () => {
    const answer = build(fake, {}, { FAKE_BUILD: 'fails' });
    expect(answer.error?.code).toBe('TF_BUILD_FAILED');
    expect(answer.error?.message).toContain('Could not find any implementation for node');
    expect(unreturned(answer)).toEqual([]);
  });

  test('GPU memory that runs out while it builds is reported as such, and nothing is left behind', () => {
    const answer = build(fake, {}, { FAKE_BUILD: 'memory' });
    // tensorrt-rtx builds on the CPU.
    expect(answer.error?.code).toBe(fake === 'rtx1' ? 'TF_BUILD_FAILED' : 'TF_GPU_MEMORY');
    expect(answer.error?.message).toContain('Error Code 1: Cuda Runtime (out of memory)');
    expect(unreturned(answer)).toEqual([]);
  });

  test('a build that fails with little GPU memory free ran out of it, whatever the library states', () => {
    const failing = (bytes: number) =>
      build(fake, {}, { FAKE_BUILD: 'fails', FAKE_GPU_BYTES: String(bytes) }).error;
    // tensorrt-rtx builds on the CPU.
    const code = fake === 'rtx1' ? 'TF_BUILD_FAILED' : 'TF_GPU_MEMORY';
    expect(failing(2 ** 30 - 1)?.code).toBe(code);
    if (fake !== 'rtx1') expect(failing(2 ** 30 - 1)?.details?.totalBytes).toBe(2 ** 30 - 1);
    expect(failing(2 ** 32)?.code).toBe('TF_BUILD_FAILED');
  });

  test('a warning that passes over a setting is found after thousands of others', () => {
    const { error } = build(
      fake,
      { settings: [setting('setFlag', 3)] },
      { FAKE_REFUSES: 'flags', FAKE_WARNINGS: '5000' },
    );
    expect(error?.code).toBe('TF_OPTION_UNSUPPORTED');
  });

  test('a GPU without room for a CUDA context is TF_GPU_MEMORY before the library, which would abort, is asked', () => {
    const { error, signal, calls } = build(fake, {}, { FAKE_GPU: 'full' });
    expect(signal).toBeNull();
    expect(error?.code).toBe(fake === 'rtx1' ? undefined : 'TF_GPU_MEMORY');
    expect(calls.some((call) => call.startsWith('createInferBuilder'))).toBe(fake === 'rtx1');
  });

  test('an abort inside the library ends the process, its last words on stderr', () => {
    const answer = build(fake, {}, { FAKE_BUILD: 'aborts' });
    expect(answer.signal).toBe('SIGABRT');
    expect(answer.stderr).toContain("nvinfer1::Fake'");
  });

  test('a library that cannot make a builder is TF_BUILDER_UNAVAILABLE', () => {
    const answer = build(fake, {}, { FAKE_BUILDER: 'missing' });
    expect(answer.error?.code).toBe('TF_BUILDER_UNAVAILABLE');
    expect(answer.error?.message).toContain('libnvinfer_builder_resource_sm90.so');
  });

  test.skipIf(!monitored)('a cancelled build stops at its next step, and nothing is left behind', () => {
    const answer = build(fake, {}, { FAKE_BUILD: 'waits' }, 100);
    expect(answer.error?.code).toBe('TF_CANCELLED');
    expect(answer.calls.filter((call) => call.startsWith('setProgressMonitor'))).toEqual([
      'setProgressMonitor',
      'setProgressMonitor null',
    ]);
    expect(unreturned(answer)).toEqual([]);
  });

  test('timing caches are new, taken, merged, or rejected one by one', () => {
    const paths = ['a', 'b', 'c'].map((name) => bench.path(`${name}.timing`));
    const timingCacheOutputPath = bench.path('timing.cache.out');
    const use = (...contents: readonly string[]) => {
      for (const path of [...paths, timingCacheOutputPath]) rmSync(path, { force: true });
      for (const [at, content] of contents.entries()) writeFileSync(paths[at]!, content);
      const { result, ...answer } = build(fake, { timingCachePaths: paths, timingCacheOutputPath });
      expect(unreturned({ ...answer, result })).toEqual([]);
      const named = (list: readonly string[] = []) => list.map((path) => 'abc'[paths.indexOf(path)]).join('');
      return [result?.timingCache, named(result?.timingCachesMerged), named(result?.timingCachesRejected)];
    };
    const [bad, refused] = ['of another version', 'REFUSED'];
    expect(use()).toEqual(['new', '', '']);
    const made = readFileSync(timingCacheOutputPath, 'utf8');
    expect(made).toMatch(/^CACHE\0\nkernels of \d+ at level 0\n$/);
    expect(use('')).toEqual(['new', '', '']);
    expect(use(made)).toEqual(['hit', 'a', '']);
    expect(use(bad)).toEqual(['rejected', '', 'a']);
    // Older libraries find only while they build that one is not valid, and store nothing in it; in place of one that is not taken there is a new one.
    const isEarly = fake === '11' || fake === 'rtx1';
    expect(existsSync(timingCacheOutputPath)).toBe(isEarly);
    expect(use(refused)).toEqual(['rejected', '', 'a']);
    expect(readFileSync(timingCacheOutputPath, 'utf8')).toBe(made);
    expect(use('CACHE\0\none\n', bad, 'CACHE\0\ntwo\n')).toEqual(['hit', 'ac', 'b']);
    expect(readFileSync(timingCacheOutputPath, 'utf8')).toBe(`${made}one\ntwo\n`);
    expect(use(refused, made)).toEqual(['hit', 'b', 'a']);
    // Nothing is known of what could not be merged into one that is not valid.
    expect(use(bad, made)).toEqual(isEarly ? ['hit', 'b', 'a'] : ['rejected', '', 'a']);
  });

  test('plug-in libraries are loaded before the parser and let go after it', () => {
    const { calls } = build(fake, { pluginPaths: ['/plugins/a.so', '/plugins/b.so'] });
    const steps = calls.filter((call) => /loadLibrary|deregister|IParser/.test(call));
    expect(steps).toEqual([
      'loadLibrary /plugins/a.so',
      'loadLibrary /plugins/b.so',
      'create IParser',
      'destroy IParser',
      'deregisterLibrary',
      'deregisterLibrary',
    ]);
  });

  test('a plug-in library that does not load is named, and the others are let go', () => {
    const answer = build(fake, { pluginPaths: ['/plugins/a.so', '/plugins/missing.so'] });
    expect(answer.error?.code).toBe('TF_LIBRARY_LOAD_FAILED');
    expect(answer.error?.message).toContain('/plugins/missing.so');
    expect(answer.calls.filter((call) => call === 'deregisterLibrary')).toHaveLength(1);
    expect(unreturned(answer)).toEqual([]);
  });

  test('a standard plug-in library that does not load is a warning', () => {
    const { events, error } = build(fake, { pluginLibrary: '/nowhere/libnvinfer_plugin.so' });
    expect(error).toBeUndefined();
    const warning = events.find((event) => event.type === 'log' && event.severity === 2);
    expect(warning).toMatchObject({ message: expect.stringContaining('/nowhere/libnvinfer_plugin.so') });
  });

  test('a setting the library passes over in a warning is rejected by its name', () => {
    const answer = build(
      fake,
      { settings: [{ ...setting('setFlag', 3), option: 'builder flag refit' }] },
      { FAKE_REFUSES: 'flags' },
    );
    expect(answer.error?.code).toBe('TF_OPTION_UNSUPPORTED');
    expect(answer.error?.message).toContain('rejects the builder flag refit: this flag is not supported');
  });
});

test('a function newer than the library is an error that names the version, and is never called', () => {
  const answer = build('10', { settings: [setting('setTilingOptimizationLevel', 1)] });
  expect(answer.error?.code).toBe('TF_LIBRARY_TOO_OLD');
  expect(answer.error?.message).toBe(
    'IBuilderConfig::setTilingOptimizationLevel is not in TensorRT 10.3.0; it needs version 10.8.0.',
  );
  expect(answer.calls.filter((call) => call.startsWith('unexpected'))).toEqual([]);
  expect(unreturned(answer)).toEqual([]);
});

test('a function that no version of the major has is reported as such', () => {
  const { error } = build('8', { settings: [setting('setRuntimePlatform', 1)] });
  expect(error?.message).toBe(
    'IBuilderConfig::setRuntimePlatform is not in TensorRT 8.6.1; no version of its major has it.',
  );
});

test('compute capabilities are tensorrt-rtx’s alone, each given with its place', () => {
  const { calls } = build('rtx1', { computeCapabilities: [80, 89] });
  expect(calls.filter((call) => call.includes('ComputeCapabilit'))).toEqual([
    'setNbComputeCapabilities 2',
    'setComputeCapability 80 0',
    'setComputeCapability 89 1',
  ]);
  expect(build('rtx1', { computeCapabilities: [90] }).error?.code).toBe('TF_TARGET_UNSUPPORTED');
  expect(build('11', { computeCapabilities: [90] }).error?.code).toBe('TF_LIBRARY_TOO_OLD');
});

test('TensorRT is not even asked for a builder where there is no GPU; tensorrt-rtx needs none', () => {
  const answer = build('10', {}, { FAKE_GPU: 'none' });
  expect(answer.error?.code).toBe('TF_BUILDER_UNAVAILABLE');
  expect(answer.calls.some((call) => call.startsWith('createInferBuilder'))).toBe(false);
  expect(build('rtx1', {}, { FAKE_GPU: 'none' }).error).toBeUndefined();
});

test('the GPUs of a machine are listed by the driver', () => {
  expect(bench.call<GpuList>('gpus', null).result).toEqual({
    gpus: [
      {
        index: 0,
        name: 'NVIDIA Fake',
        uuid: 'GPU-00112233-4455-6677-8899-aabbccddeeff',
        computeCapability: 90,
        memoryBytes: 150 * 2 ** 30,
        multiprocessors: 132,
      },
    ],
    cudaVersion: '13.0',
    driverVersion: '580.65.06',
    reason: null,
  });
});

test.each([
  ['', 'shows no GPU (CUDA_VISIBLE_DEVICES is empty, which hides every GPU).'],
  ['7', 'shows no GPU (CUDA_VISIBLE_DEVICES is «7», which may hide them).'],
])('CUDA_VISIBLE_DEVICES «%s» that hides every GPU is named', (visible, reason) => {
  const environment = { CUDA_VISIBLE_DEVICES: visible };
  const { result } = bench.call<GpuList>('gpus', null, environment);
  expect(result).toMatchObject({ gpus: [], reason: `the CUDA driver ${reason}` });
  const { error } = build('10', {}, environment);
  expect(error).toMatchObject({ code: 'TF_BUILDER_UNAVAILABLE', message: expect.stringContaining(reason) });
});

test.each([
  ['none', 'shows no GPU'],
  ['broken', 'unknown error (CUDA error 999)'],
])('with a driver whose state is %s the list is empty, with the reason', (state, reason) => {
  const { result } = bench.call<GpuList>('gpus', null, { FAKE_GPU: state });
  expect(result?.gpus).toEqual([]);
  expect(result?.reason).toContain(reason);
});

test.each([
  ['a path', 17],
  ['a request', { inferenceLibrary: 'x' }],
])('%s of another type is an error, not a crash', (_, request) => {
  const call = typeof request === 'number' ? 'probe' : 'build';
  const answer = bench.call(call, request);
  expect(answer.error?.code).toBe('TF_INTERNAL');
  expect(answer.signal).toBeNull();
});
