import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { sha256 } from '../../../../src/base/files/digest.js';
import { identityDigest } from '../../../../src/engines/identity/identity.js';
import type { Passport } from '../../../../src/engines/identity/passport.js';
import { defaultRecipe } from '../../../../src/engines/identity/recipe.js';
import { LeaseFolder } from '../../../../src/engines/store/claims/lease.js';
import type { TrtforgeError } from '../../../../src/errors.js';
import { type EventListener, ignoreEvents } from '../../../../src/events.js';
import { writeNpy } from '../../../../src/formats/tensor/npy.js';
import { integerTensor } from '../../../../src/formats/tensor/tensor.js';
import { gpuAt } from '../../../../src/quality/bench/gpu.js';
import { type BenchRequest, defaultMode } from '../../../../src/quality/bench/options.js';
import { benchResultSchema } from '../../../../src/quality/bench/result.js';
import { benchTrtexec } from '../../../../src/quality/bench/trtexec/trtexec-bench.js';
import { type FoundToolchain, surveyToolchains } from '../../../../src/tensorrt/toolchain/find.js';
import type { ModeRequest } from '../../../../src/tensorrt/trtexec/options.js';
import { type FakeVersion, fakeTrtexec, fakeVersions } from '../../../fakes/trtexec.js';
import { sampleIdentity, samplePassport, sampleToolchain } from '../../../support/sample-engine.js';

/** Fakes are no installations, so the search for TensorRT gives them. */
vi.mock('../../../../src/tensorrt/toolchain/find.js', async (original) => ({
  ...(await original<typeof import('../../../../src/tensorrt/toolchain/find.js')>()),
  surveyToolchains: vi.fn(),
}));

const folder = mkdtempSync(join(tmpdir(), 'trtforge-trtexec-bench-'));
afterAll(() => rmSync(folder, { recursive: true }));
const engines = new Map<string, string>();
beforeAll(() => {
  for (const version of ['8.6', '10.6', '11.1'] as const) engines.set(version, writeEngine(version, true));
});

const MIB = 1 << 20;
const range = { min: [1, 3], opt: [32, 3], max: [64, 3], values: false };

/** A plan of a version with one input `data`, open from 1 to 64, and with its passport or without. */
function writeEngine(
  version: FakeVersion,
  withPassport: boolean,
  flags: readonly string[] = [],
  dtype = 'float32',
  says: string = fakeVersions[version],
): string {
  const plan = Buffer.alloc(4096, 7);
  plan.fill(0, 0, 28);
  plan.write('ftrt', 0, 'latin1');
  plan.set(says.split('.').map(Number), 24);
  const path = join(folder, `${[says, withPassport ? dtype : 'bare', ...flags].join('-')}.engine`);
  writeFileSync(path, plan);
  if (!withPassport) return path;
  const document = {
    ...sampleIdentity(),
    recipe: { ...defaultRecipe, profiles: [{ data: range }], flags: [...flags] },
    target: {
      product: 'tensorrt' as const,
      version: says,
      cudaMajor: null,
      computeCapabilities: [90],
      os: 'linux' as const,
      arch: 'x86_64' as const,
    },
  };
  const sample = samplePassport(plan, document);
  const passport: Passport = {
    ...sample,
    identity: { digest: identityDigest(document), document },
    plan: {
      ...sample.plan,
      sha256: sha256(plan),
      inputs: [{ name: 'data', dtype, shape: [null, 3] }],
    },
  };
  writeFileSync(`${path}.passport.json`, JSON.stringify(passport));
  return path;
}

const gpuOnly: ModeRequest = { ...defaultMode, transfers: false, graph: true, spinWait: true };

const installed: FoundToolchain = {
  ...sampleToolchain,
  name: 'tensorrt',
  product: 'tensorrt',
  version: fakeVersions['10.6'],
  libraries: { inference: '/nowhere/libnvinfer.so', parser: null, plugins: null },
  cudaMajor: null,
};

function bench(
  version: FakeVersion,
  request: Partial<BenchRequest> = {},
  fault?: string,
  emit: EventListener = ignoreEvents,
) {
  const trtexec = fakeTrtexec(folder, { version, ...(fault === undefined ? {} : { fault }) });
  return benchWith({ ...installed, version: fakeVersions[version], trtexec }, version, request, {}, emit);
}

/** An engine with a mebibyte of streamed weights, measured by a trtexec that says it is of a version, with a fault. */
function benchStreamed(
  weightBudget: BenchRequest['weightBudget'],
  { says = '10.6.0.26', version = '10.6' as FakeVersion, fault = 'none', streamable = MIB } = {},
) {
  const trtexec = fakeTrtexec(folder, { version, says, fault, streamable });
  const engine = writeEngine(version, true, ['weight-streaming'], 'float32', says);
  const asked = weightBudget === undefined ? {} : { weightBudget };
  return benchWith({ ...installed, version: says, trtexec }, version, { engine, ...asked });
}

/** A lean runtime came without trtexec: the one of a version is named beside it. */
function benchLean(library: string, version: FakeVersion, request: Partial<BenchRequest> = {}) {
  const lean: FoundToolchain = { ...installed, version: library, flavour: 'lean' };
  const environment = { TRTEXEC: fakeTrtexec(folder, { version }) };
  return benchWith(lean, version, { allowHostCode: true, ...request }, environment);
}

function benchWith(
  toolchain: FoundToolchain,
  version: FakeVersion,
  request: Partial<BenchRequest>,
  environment: NodeJS.ProcessEnv = {},
  emit: EventListener = ignoreEvents,
) {
  vi.mocked(surveyToolchains).mockResolvedValue({ toolchains: [toolchain], damaged: [] });
  return benchTrtexec(
    {
      engine: engines.get(version) ?? '',
      toolchain: undefined,
      device: 0,
      plugins: [],
      allowHostCode: false,
      shapes: { kind: 'batches', batches: [64] },
      inputs: { seed: 0, ranges: [], files: [] },
      mode: gpuOnly,
      layers: false,
      samples: undefined,
      wait: false,
      ...request,
    },
    {
      emit,
      signal: new AbortController().signal,
      environment: { ...process.env, ...environment, XDG_CACHE_HOME: join(folder, 'cache') },
      trtexecLog: join(folder, 'trtexec.log'),
    },
  );
}

const commandLine = () => readFileSync(join(folder, 'trtexec.log'), 'utf8').split('\n')[0];

const failure = (attempt: Promise<unknown>): Promise<TrtforgeError> =>
  attempt.then(
    () => expect.unreachable('an error was expected'),
    (error: TrtforgeError) => error,
  );

describe('a measurement with trtexec', () => {
  test('10.6: figures from its samples, which agree with what it printed', async () => {
    const result = benchResultSchema.parse(await bench('10.6'));
    expect(result).toMatchObject({
      backend: 'trtexec 10.6.0.26',
      subject: { bytes: 4096, contextBytes: expect.any(Number), layers: null },
      mode: {
        kind: 'gpu-only',
        graph: true,
        graphFallback: null,
        spinWait: true,
        streams: 1,
        warmUpMs: 200,
        durationMs: 3000,
        iterations: 10,
      },
      endToEndMs: null,
    });
    expect(result.gpuMs?.count).toBe(1598);
    expect(result.itemsPerSecond).toBeCloseTo(result.qps * 64, 6);
    expect(result.runs[0]).toMatchObject({
      batch: 64,
      profile: 0,
      shapes: [{ name: 'data', shape: [64, 3] }],
    });
    expect(result.warnings.filter((warning) => warning.startsWith('trtexec printed'))).toEqual([]);
  });

  test('64-bit integers go to 8.6 as the 32-bit ones that it computes with, and are rejected where they do not fit', async () => {
    const engine = writeEngine('8.6', true, [], 'int64');
    const given = (first: number) => {
      const path = join(folder, 'data.npy');
      writeNpy(
        path,
        integerTensor(
          'int64',
          [64, 3],
          Array.from({ length: 192 }, (_, at) => (at === 0 ? first : 1)),
        ),
      );
      return { engine, inputs: { seed: 0, ranges: [], files: [{ name: 'data', path }] } };
    };
    expect((await bench('8.6', given(2 ** 31 - 1))).runs[0]?.shapes).toEqual([
      { name: 'data', shape: [64, 3] },
    ]);
    const error = await failure(bench('8.6', given(2 ** 40)));
    expect(error.code).toBe('TF_SESSION_INPUT');
    expect(error.message).toMatch(
      /data\.npy holds 1099511627776 \(element 0\), which the input "data" of type int32 cannot/,
    );
  });

  test('8.6 and 11.1 are asked in their own words for the same mode', async () => {
    for (const version of ['8.6', '11.1'] as const)
      expect((await bench(version)).mode).toMatchObject({ kind: 'gpu-only', graph: true, spinWait: true });
    const transfers = { ...gpuOnly, transfers: true, graph: false, spinWait: false };
    for (const version of ['8.6', '10.6', '11.1'] as const) {
      const { mode, runs } = await bench(version, { mode: transfers });
      expect(mode).toMatchObject({ kind: 'with-transfers', graph: false, spinWait: false });
      expect(runs[0]?.endToEndMs?.count).toBe(runs[0]?.gpuMs?.count);
    }
  });

  test('figures that its samples do not give are a warning', async () => {
    const { warnings } = await bench('10.6', {}, 'other-times');
    expect(warnings).toContain('trtexec printed 1598 queries and exported 300.');
    expect(warnings.find((warning) => /mean GPU compute time/.test(warning))).toBeDefined();
  });

  test('benches on one GPU wait for each other, whichever tool measures', async () => {
    const gpus = new LeaseFolder(join(folder, 'cache/trtforge/gpu-leases'));
    const name = gpuAt(0)?.uuid ?? 'device-0';
    const { lease } = gpus.tryAcquire(name);
    const beside = await bench('10.6');
    expect(beside.warnings).toContainEqual(expect.stringMatching(/^Another bench measures on this GPU/));
    const events: string[] = [];
    const waiting = bench('10.6', { wait: true }, undefined, (event) => {
      if (event.type !== 'phase-start') return;
      events.push(event.phase);
      if (event.phase === 'wait for the GPU') setTimeout(() => lease?.release(), 50);
    });
    expect((await waiting).warnings).not.toContainEqual(expect.stringMatching(/^Another bench/));
    expect(events[0]).toBe('wait for the GPU');
    expect(gpus.tryAcquire(name).lease).not.toBeNull();
  });

  test('a graph that was rejected is reported', async () => {
    expect((await bench('10.6', {}, 'refuses-graph')).mode).toMatchObject({
      graph: false,
      graphFallback: expect.stringMatching(/not permitted under CUDA graph capture/),
    });
  });

  test('several batches, the optimum, and shapes', async () => {
    const batches = await bench('10.6', { shapes: { kind: 'batches', batches: [1, 64] } });
    expect(batches.runs.map(({ batch }) => batch)).toEqual([1, 64]);
    expect((await bench('10.6', { shapes: { kind: 'optimum' } })).runs[0]?.batch).toBe(32);
    const shapes = new Map([['data', [5, 3]]]);
    expect((await bench('10.6', { shapes: { kind: 'shapes', shapes } })).runs[0]?.batch).toBe(5);
  });

  test.each([
    ['10.6', 612],
    ['8.6', 975],
  ] as const)('%s: layers of its profile beside those of its inspector', async (version, runs) => {
    const { layers } = await bench(version, { layers: true });
    expect(layers?.runs).toBe(runs);
    expect(layers?.layers.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 6);
    const conv = layers?.layers.find(({ name }) => name === '/conv1/Conv + /relu/Relu');
    expect(conv).toMatchObject({ index: expect.any(Number), onnxNodes: ['/conv1/Conv', '/relu/Relu'] });
  });
});

describe('a budget for streamed weights', () => {
  test.each([
    ['10.6', '10.6.0.26', 1000, '1000', 1000],
    ['10.6', '10.6.0.26', 0, '0', 0],
    ['10.6', '10.6.0.26', 'automatic', '-1', MIB / 2],
    ['11.1', '11.1.0.106', 1000, '1000', 1000],
    ['11.1', '11.1.0.106', 'automatic', '-1', MIB / 2],
    ['10.6', '10.0.1.6', 300_000, '300000', 300_000],
    ['10.6', '10.0.1.6', 0, '100%', MIB / 4],
    ['10.6', '10.0.1.6', 'automatic', '-1', undefined],
  ] as const)(
    'in the format of %s, as %s: %s is %s, and what was set is reported',
    async (version, says, asked, word, set) => {
      const { subject } = benchResultSchema.parse(await benchStreamed(asked, { version, says }));
      expect(commandLine()).toContain(` --weightStreamingBudget=${word} --allowWeightStreaming`);
      expect([subject.weightBudgetAsked, subject.weightBudgetBytes]).toEqual([asked, set]);
      expect(subject.streamableWeightsBytes).toBeUndefined();
    },
  );

  test.each([
    ['10.6.0.26', { streamableWeightsBytes: MIB, weightBudgetBytes: MIB }],
    ['10.0.1.6', {}],
  ])('%s: without one all weights stay on the GPU', async (says, told) => {
    const { subject } = await benchStreamed(undefined, { says });
    const { streamableWeightsBytes, weightBudgetBytes, weightBudgetAsked } = subject;
    const expected = { streamableWeightsBytes: undefined, weightBudgetBytes: undefined, ...told };
    expect({ streamableWeightsBytes, weightBudgetBytes }).toEqual(expected);
    expect(weightBudgetAsked).toBeUndefined();
    expect(commandLine()).not.toMatch(/--\w+Streaming/);
  });

  test.each([
    ['ignores-budget', 1000, 'trtexec was passed --weightStreamingBudget 1000 and echoes 100.000000%.'],
    ['ignores-budget', 0, 'trtexec was passed --weightStreamingBudget 0 and echoes 100.000000%.'],
    ['ignores-budget', 'automatic', 'trtexec was passed --weightStreamingBudget -1 and echoes 100.000000%.'],
    ['clamps-budget', 1000, 'trtexec was passed --weightStreamingBudget 1000 and echoes a limit of 500.'],
  ] as const)('a trtexec that %s of %s is not trusted', async (fault, asked, message) => {
    const error = await failure(benchStreamed(asked, { fault }));
    expect([error.code, error.message]).toEqual(['TF_TRTEXEC_MISREAD', message]);
  });

  test('weights that are not streamed have none, by the passport before trtexec runs and by its log after', async () => {
    const shapes = { kind: 'shapes' as const, shapes: new Map([['data', [64, 3]]]) };
    writeFileSync(join(folder, 'trtexec.log'), 'nobody ran');
    const known = await failure(bench('10.6', { weightBudget: 1000 }));
    expect(commandLine()).toBe('nobody ran');
    const bare = { engine: writeEngine('10.6', false), shapes };
    const found = await failure(bench('10.6', { ...bare, weightBudget: 'automatic' }));
    expect(commandLine()).toContain('--weightStreamingBudget=-1');
    for (const error of [known, found])
      expect([error.code, error.message]).toEqual([
        'TF_OPTION_UNSUPPORTED',
        expect.stringContaining('was not built with weight streaming'),
      ]);
    const engine = writeEngine('8.6', false);
    const old = await failure(bench('8.6', { engine, shapes, weightBudget: 1000 }));
    expect(old.message).toBe(
      'trtexec 8.6.1.6 has no --weightStreamingBudget; trtexec 10.0 and newer has it.',
    );
  });

  test.each([-1, -2, Number.NaN, 1.5, 2 ** 60])('a budget of %s bytes is rejected', async (bytes) => {
    expect((await failure(benchStreamed(bytes))).code).toBe('TF_SIZE_INVALID');
  });
});

describe('a measurement over a lean runtime', () => {
  test('trtexec of its major is instructed to open that library, in its own words, and the result names both', async () => {
    const engine = writeEngine('10.6', true, ['version-compatible']);
    const result = benchResultSchema.parse(await benchLean('11.3.0.99', '11.1', { engine }));
    expect(result.backend).toBe('trtexec 11.1.0.106 with the lean runtime 11.3.0.99');
    expect(result.mode).toMatchObject({ kind: 'gpu-only', graph: true, spinWait: true });
    expect(commandLine()).toMatch(/ --useRuntime=lean --versionCompatible$/);
    expect(commandLine()).not.toMatch(/--useCudaGraph/);
  });

  test('an engine that is of its very version is version-compatible all the same, or rejected', async () => {
    const engine = writeEngine('10.6', true, ['version-compatible']);
    expect((await benchLean('10.6.0.26', '10.6', { engine })).backend).toContain('lean runtime 10.6.0.26');
    for (const request of [{ engine, allowHostCode: false }, { engine: writeEngine('10.6', true) }])
      expect((await failure(benchLean('10.6.0.26', '10.6', request))).code).toBe(
        'TF_ENGINE_VERSION_MISMATCH',
      );
  });

  test.each([
    ['of another major', '11.3.0.99', '10.6'],
    ['newer than the library', '11.0.0.50', '11.1'],
  ] as const)('a trtexec %s is rejected before it runs', async (_, library, version) => {
    const engine = writeEngine('10.6', true, ['version-compatible']);
    const error = await failure(benchLean(library, version, { engine }));
    expect(error).toMatchObject({
      code: 'TF_TRTEXEC_VERSION',
      message: expect.stringContaining(`, and the lean runtime is ${library}.`),
      remedy: expect.stringContaining(`not newer than ${library}`),
    });
  });

  test('a program that states no version is rejected', async () => {
    const engine = writeEngine('10.6', true, ['version-compatible']);
    const lean: FoundToolchain = { ...installed, flavour: 'lean' };
    const attempt = benchWith(lean, '10.6', { engine, allowHostCode: true }, { TRTEXEC: '/bin/true' });
    expect((await failure(attempt)).message).toContain('/bin/true');
  });
});

describe('a measurement that is rejected', () => {
  test.each([
    ['misreads-mode', 'TF_TRTEXEC_MISREAD', /spin wait true and echoes false/],
    ['fails', 'TF_TRTEXEC_FAILED', /Its errors:/],
    ['killed', 'TF_CHILD_DIED', /SIGKILL/],
    ['no-last-line', 'TF_TRTEXEC_FAILED', /PASSED/],
  ])('%s: %s', async (fault, code, why) => {
    const error = await failure(bench('10.6', {}, fault));
    expect({ code: error.code, message: error.message }).toEqual({
      code,
      message: expect.stringMatching(why),
    });
  });

  test('a batch outside every profile', async () => {
    const error = await failure(bench('10.6', { shapes: { kind: 'batches', batches: [65] } }));
    expect(error.code).toBe('TF_PROFILE_MISFIT');
  });

  test('without a passport only named shapes are known', async () => {
    const engine = writeEngine('10.6', false);
    expect((await failure(bench('10.6', { engine }))).code).toBe('TF_PASSPORT_MISSING');
    const shapes = new Map([['data', [64, 3]]]);
    const result = await bench('10.6', { engine, shapes: { kind: 'shapes', shapes } });
    expect(result.runs[0]?.batch).toBe(64);
    expect(readFileSync(engine)).toHaveLength(4096);
  });
});
