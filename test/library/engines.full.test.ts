import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../scripts/build-native.mjs';
import { LeaseFolder } from '../../src/engines/store/claims/lease.js';
import { makeKeys } from '../../src/engines/store/sign-engines.js';
import { readPrivateKey, signaturePath, signDocument } from '../../src/engines/store/trust.js';
import type { WorkEvent } from '../../src/events.js';
import { forge as forgeWith } from '../../src/forge/forge.js';
import { writeNpy } from '../../src/formats/tensor/npy.js';
import { float32Values, tensorFrom } from '../../src/formats/tensor/tensor.js';
import type {
  BenchRequest,
  BuildOptions,
  CudaGraph,
  EngineLoadOptions,
  ForgeOptions,
} from '../../src/index.js';
import { defaultRequest } from '../../src/quality/bench/options.js';
import { modelFile } from '../engines/runtime/onnxruntime/models.js';
import { copyingBuilder } from '../fakes/builder.js';
import { affineModel, fakeIdentity, manyLayers } from '../fakes/tensorrt/affine.js';
import { fakeEngine } from '../fakes/tensorrt/engine.js';
import { fakeTrtexec } from '../fakes/trtexec.js';
import { noted } from '../support/noted-library.js';
import { samplePassport } from '../support/sample-engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-library-engines-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const file = at('affine.engine');
const keys = makeKeys(at('team.pem'));
let environment: NodeJS.ProcessEnv = {};
let identity: string;
let model: string;

/** A fake of TensorRT 10.3 on two of its GPUs and of its trtexec, and a signed engine y = 2x + 1 that needs host code allowed and streams its weights. */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  environment = engine.environment({
    TENSORRT_HOME: at('none'),
    TRTFORGE_TOOLCHAINS: at('none'),
    TRTEXEC: fakeTrtexec(folder, { version: '10.6', says: '10.3.0.26' }),
    XDG_CACHE_HOME: at('cache'),
    FAKE_CALLS: at('calls'),
    FAKE_COMPUTE_US: '2000',
    FAKE_GPUS: '2',
  });
  engine.install(at('home'));
  engine.bench.enter(environment);
  writeFileSync(at('a.so'), 'a library of plug-ins');
  const network = { kind: 'affine', inner: 4, layers: manyLayers } as const;
  const x = { min: [1, 4], opt: [8, 4], max: [64, 4], values: false };
  for (const [path, more] of [
    [file, { hostCode: true, streamable: 1 << 20 }],
    [at('plain.engine'), {}],
  ] as const) {
    engine.writePlan(path, { ...network, ...more });
    const document = fakeIdentity();
    const recipe = { ...document.recipe, profiles: [{ x }] };
    const sample = samplePassport(readFileSync(path), { ...document, recipe });
    const inputs = [{ name: 'x', dtype: 'float32', shape: [null, 4] }];
    const passport = { ...sample, plan: { ...sample.plan, inputs } };
    identity = passport.identity.digest;
    writeFileSync(`${path}.passport.json`, JSON.stringify(passport));
    if (path !== file) continue;
    const signature = signDocument(passport, readPrivateKey(keys.privateKey));
    writeFileSync(signaturePath(path), JSON.stringify(signature));
  }
  engine.writePlan(at('bare.engine'), network);
  const profiles = [1, 4].map((least) => [least, 8, 64] as const);
  const two = engine.writePlan(at('two.engine'), { ...network, profiles });
  const passport = samplePassport(readFileSync(two), fakeIdentity());
  writeFileSync(`${two}.passport.json`, JSON.stringify(passport));
  model = await affineModel();
  writeNpy(at('x4.npy'), tensorFrom('float32', [4, 4], new Float32Array(16).fill(3)));
});

/** What the libraries were asked since the last look. */
const calls = (): readonly string[] => {
  const said = existsSync(at('calls')) ? readFileSync(at('calls'), 'utf8').split('\n') : [];
  rmSync(at('calls'), { force: true });
  return said;
};

function context() {
  const events: WorkEvent[] = [];
  const signal = new AbortController().signal;
  return { events, work: { emit: (event: WorkEvent) => void events.push(event), signal, environment } };
}

type Loading = Omit<EngineLoadOptions, 'cudaGraph'> & { readonly device?: number };
const loading = (): Loading => ({
  ...{ toolchain: at('home'), identity, plugins: [at('a.so')] },
  ...{ allowHostCode: true, weightBudget: 0, device: 1 },
});
const mode = {
  ...{ transfers: false, graph: true, spinWait: true, streams: 2 },
  ...{ warmUpMs: 2, durationMs: 50, iterations: 5, idleMs: 1 },
};
const measuring = (more: Partial<BenchRequest>): BenchRequest => ({
  ...defaultRequest(file),
  mode: { ...mode, streams: 1 },
  ...more,
});
const pair = (candidate: Loading, reference: Loading) =>
  noted.benchCompare(
    { candidate: measuring(candidate), reference: measuring(reference), rounds: 3 },
    context().work,
  );

/** Each gives the text in which it names the GPU. */
const loaders: Readonly<Record<string, (options: Loading) => Promise<string | undefined>>> = {
  runFile: async (options) =>
    (await noted.runFile({ file, sources: [{ kind: 'random' }], ...options }, context().work)).backend,
  openSession: async (options) => {
    await using session = await noted.openSession(file, options, context().work);
    return session.backend;
  },
  openEngineSession: async (options) => {
    await using session = await noted.openEngineSession(file, { ...options, ...context().work });
    return session.backend;
  },
  verifyModel: async (options) =>
    (await noted.verifyModel({ reference: model, candidate: file, ...options }, context().work))
      .candidateBackend,
  benchWith: async (options) =>
    (await noted.benchWith('trtforge', measuring(options), context().work)).gpu?.name,
  'benchCompare, the candidate': async (options) =>
    (await pair(options, { ...loading(), device: options.device })).gpu?.name,
  'benchCompare, the reference': async (options) =>
    (await pair({ ...loading(), device: options.device }, options)).gpu?.name,
  layersOf: async (options) => {
    const { loaded } = await noted.layersOf(file, { ...options, ...context().work });
    return loaded?.gpu.name;
  },
};

describe('an engine is loaded with the options passed', () => {
  const wrong: readonly (readonly [Loading, string])[] = [
    [{ toolchain: at('nowhere') }, 'TF_TOOLCHAIN_NOT_FOUND'],
    [{ identity: 'f'.repeat(64) }, 'TF_PASSPORT_INVALID'],
    [{ plugins: [at('none.so')] }, 'TF_FILE_NOT_FOUND'],
    [{ allowHostCode: false }, 'TF_PLAN_LOAD_FAILED'],
    [{ device: 7 }, 'TF_GPU_UNAVAILABLE'],
  ];

  test.each(Object.entries(loaders))('by %s', async (_, load) => {
    calls();
    expect(await load(loading())).toContain('NVIDIA Fake 1');
    const asked = calls();
    expect(asked).toContain(`loadLibrary ${at('a.so')}`);
    expect(asked).toContain('setWeightStreamingBudgetV2 0');
  });

  test.each(Object.entries(loaders))('by %s, which rejects what is not there', async (_, load) => {
    for (const [options, code] of wrong)
      await expect(load({ ...loading(), ...options }), JSON.stringify(options)).rejects.toMatchObject({
        code,
      });
  });
});

describe('a CUDA graph is captured as requested', () => {
  const plain = at('plain.engine');
  const toolchain = () => at('home');
  const refused = () => ({ ...environment, FAKE_CAPTURE: 'refused' });
  const x = tensorFrom('float32', [2, 4], new Float32Array(8).fill(3));
  /** What each reports of graphs that could not be captured. */
  const runners: Readonly<Record<string, (cudaGraph: CudaGraph) => Promise<readonly string[] | null>>> = {
    runFile: async (cudaGraph) => {
      const request = { file: plain, sources: [{ kind: 'random' }], iterations: 3 } as const;
      const { work } = context();
      const ran = await noted.runFile(
        { ...request, cudaGraph, toolchain: toolchain() },
        { ...work, environment: refused() },
      );
      expect(ran.cudaGraph?.asked).toBe(cudaGraph);
      return ran.cudaGraph?.fallbacks ?? null;
    },
    openSession: async (cudaGraph) => {
      const { work } = context();
      const options = { cudaGraph, toolchain: toolchain() };
      await using session = await noted.openSession(plain, options, { ...work, environment: refused() });
      await session.runRepeatedly(new Map([['x', x]]), { iterations: 3 });
      return (await session.facts()).cudaGraphFallbacks;
    },
    openEngineSession: async (cudaGraph) => {
      process.env.FAKE_CAPTURE = 'refused';
      const options = { ...context().work, cudaGraph, toolchain: toolchain() };
      await using session = await noted.openEngineSession(plain, options);
      for (let run = 0; run < 3; run++) await session.run({ x });
      delete process.env.FAKE_CAPTURE;
      return session.facts.cudaGraphFallbacks;
    },
    verifyModel: async (cudaGraph) => {
      const { work, events } = context();
      const request = { reference: model, candidate: plain, cudaGraph, toolchain: toolchain() };
      await noted.verifyModel({ ...request, samples: 2 }, { ...work, environment: refused() });
      return events.flatMap((event) =>
        event.type === 'log' && event.message.includes('without a CUDA graph') ? [event.message] : [],
      );
    },
  };

  test.each(Object.entries(runners))('by %s', async (_, run) => {
    expect(await run('always')).toHaveLength(1);
    expect(await run('never')).toEqual([]);
  });
});

describe('a session in this process', () => {
  const rows = (count: number) => ({
    x: tensorFrom('float32', [count, 4], new Float32Array(4 * count).fill(3)),
  });
  const open = (more: Parameters<typeof noted.openEngineSession>[1], path = at('plain.engine')) =>
    noted.openEngineSession(path, { toolchain: at('home'), environment, ...more });

  test('keeps as many calls and bytes as it may, in as many contexts', async () => {
    const runs = async (keepCalls: { readonly count?: number; readonly bytes?: number }) => {
      await using session = await open({ keepCalls });
      await session.run(rows(2));
      const answer = await session.run(rows(4));
      expect([...float32Values(answer.get('y')!)]).toEqual(Array(16).fill(7));
      return session.runSync(rows(2)).get('y')?.shape;
    };
    expect(await runs({ count: 2, bytes: 1 << 20 })).toEqual([2, 4]);
    for (const little of [{ count: 1 }, { bytes: 1 }])
      await expect(runs(little)).rejects.toMatchObject({ code: 'TF_SESSION_NOT_PREPARED' });
    const made = async (contexts: number) => {
      calls();
      await using session = await open({ contexts });
      await Promise.all([1, 2, 3].map(() => session.run(rows(2))));
      return calls().filter((call) => call.startsWith('createExecutionContext')).length;
    };
    expect(await made(2)).toBe(2 * (await made(1)));
  });

  test('computes in memory that several sessions share', async () => {
    const memory = await noted.activationPool();
    await using one = await open({ memory });
    await using other = await open({ memory });
    for (const session of [one, other])
      expect([...float32Values((await session.run(rows(2))).get('y')!)]).toEqual(Array(8).fill(7));
    expect(memory.separateBytes).toBe(2 * memory.bytes);
  });

  test('requires a passport and signatures as requested', async () => {
    await expect(open({}, at('bare.engine'))).rejects.toMatchObject({ code: 'TF_PASSPORT_MISSING' });
    const { work, events } = context();
    await using bare = await open({ requirePassport: false, ...work }, at('bare.engine'));
    expect(bare.facts.passport).toBe(false);
    expect(events.some((event) => event.type === 'log' && event.message.includes('no passport'))).toBe(true);
    const signed = { requireSignature: true, trustKeys: [keys.publicKey] };
    await using session = await open({ ...signed, allowHostCode: true }, file);
    expect(session.facts.passport).toBe(true);
    await expect(open(signed)).rejects.toMatchObject({ code: 'TF_SIGNATURE_INVALID' });
    const stranger = makeKeys(at('other.pem')).publicKey;
    await expect(open({ ...signed, trustKeys: [stranger] }, file)).rejects.toMatchObject({
      code: 'TF_SIGNATURE_INVALID',
    });
  });

  test('proves itself as requested, and is not opened once its signal was aborted', async () => {
    const warned = async (check: 'warn' | 'off') => {
      const { work, events } = context();
      await using _ = await open({ check, ...work });
      return events.flatMap((event) => (event.type === 'log' ? [event.severity] : []));
    };
    expect([await warned('warn'), await warned('off')]).toEqual([['warning'], []]);
    const signal = AbortSignal.abort();
    await expect(open({ signal })).rejects.toMatchObject({ code: 'TF_CANCELLED' });
  });

  test('looks for TensorRT in the environment that it gets', async () => {
    const elsewhere = { ...environment, TENSORRT_HOME: at('home') };
    await using session = await open({ toolchain: undefined, environment: elsewhere });
    expect(session.facts.toolchain.version).toContain('10.3.0');
    await expect(open({ toolchain: undefined })).rejects.toMatchObject({ code: 'TF_TOOLCHAIN_NOT_FOUND' });
  });
});

describe('a measurement', () => {
  const four = [{ name: 'x', shape: [4, 4] }];
  const files = [{ name: 'x', path: at('x4.npy') }];

  test('of an engine is made as requested', async () => {
    const { work, events } = context();
    const request = measuring({
      ...{ ...loading(), mode, layers: true, samples: at('samples.json'), percentiles: [50] },
      inputs: { seed: 3, ranges: [{ name: 'x', low: 0, high: 1 }], files: [] },
      shapes: { kind: 'batches', batches: [2, 8] },
    });
    const measured = await noted.benchWith('trtforge', request, work);
    const { transfers: _, graph: __, ...echoed } = mode;
    expect(measured.mode).toMatchObject({ ...echoed, kind: 'gpu-only' });
    expect(measured.mode.graph || measured.mode.graphFallback).toBeTruthy();
    expect(measured).toMatchObject({
      runs: [{ batch: 2 }, { batch: 8 }],
      gpuMs: { percentiles: { p50: expect.any(Number) } },
    });
    for (const { samples } of measured.runs) expect(existsSync(samples!)).toBe(true);
    expect(measured.layers).not.toBeNull();
    expect(events.some(({ type }) => type === 'phase-start')).toBe(true);
    const shapes = { kind: 'shapes', shapes: new Map([['x', [4, 4]]]) } as const;
    const shaped = await noted.benchWith('trtforge', measuring({ ...loading(), shapes }), work);
    expect(shaped.runs).toMatchObject([{ shapes: four }]);
    const read = measuring({ ...loading(), inputs: { seed: 0, ranges: [], files } });
    expect((await noted.benchWith('trtforge', read, work)).runs).toMatchObject([{ shapes: four }]);
    const ranges = [{ name: 'none', low: 0, high: 1 }];
    const drawn = measuring({ ...loading(), inputs: { seed: 0, ranges, files: [] } });
    const rejected = noted.benchWith('trtforge', drawn, work);
    await expect(rejected).rejects.toMatchObject({ code: 'TF_SESSION_INPUT' });
  });

  test('starts new processes where requested', async () => {
    const { cold } = await noted.benchWith(
      'trtforge',
      measuring({ ...loading(), cold: true }),
      context().work,
    );
    expect(cold?.starts).toBe(5);
    expect(cold?.dropped.ms.total?.median).toBeGreaterThan(0);
    await expect(
      noted.benchWith('trtexec', measuring({ ...loading(), cold: true }), context().work),
    ).rejects.toMatchObject({ code: 'TF_USAGE' });
  });

  test('takes turns with another where requested', async () => {
    const { gpu } = await noted.benchWith('trtforge', measuring(loading()), context().work);
    const leases = new LeaseFolder(join(at('cache'), 'trtforge', 'gpu-leases'));
    const { lease } = leases.tryAcquire(gpu!.uuid.replace(/[^\w-]/g, '_'));
    const beside = await noted.benchWith('trtforge', measuring(loading()), context().work);
    expect(beside.warnings.join('\n')).toContain('--wait');
    const { work, events } = context();
    const emit = (event: WorkEvent) => {
      work.emit(event);
      if (event.type === 'phase-start' && event.phase === 'wait for the GPU') lease?.release();
    };
    const after = await noted.benchWith('trtforge', measuring({ ...loading(), wait: true }), {
      ...work,
      emit,
    });
    expect(after.warnings.join('\n')).not.toContain('--wait');
    expect(events).toContainEqual(expect.objectContaining({ phase: 'wait for the GPU' }));
  });

  test('with trtexec writes its log where requested', async () => {
    const request = measuring({
      ...{ ...defaultRequest(at('plain.engine')), toolchain: undefined, device: 0 },
      shapes: { kind: 'batches', batches: [8] },
    });
    const elsewhere = { ...environment, TENSORRT_HOME: at('home') };
    const trtexecLog = at('trtexec.log');
    const measured = await noted.benchWith('trtexec', request, {
      ...{ ...context().work, environment: elsewhere, trtexecLog },
    });
    expect(measured.backend).toContain('trtexec');
    expect(readFileSync(trtexecLog, 'utf8')).toContain('&&&& PASSED');
  });

  test('of two engines is made as requested', async () => {
    const { work, events } = context();
    const side = (more: Partial<BenchRequest>) =>
      measuring({
        ...{ ...loading(), mode, percentiles: [50], wait: true, layers: false },
        inputs: { seed: 3, ranges: [{ name: 'x', low: 0, high: 1 }], files: [] },
        ...more,
      });
    const batches = { kind: 'batches', batches: [8] } as const;
    const both = await noted.benchCompare(
      {
        candidate: side({ shapes: batches }),
        reference: side({ shapes: batches }),
        rounds: 3,
        failAbove: 100,
      },
      work,
    );
    const { transfers: _, graph: __, durationMs: ___, ...echoed } = mode;
    for (const compared of [both.candidate, both.reference])
      expect(compared.mode).toMatchObject({ ...echoed, kind: 'gpu-only' });
    expect(both).toMatchObject({ rounds: 3, batch: 8, gate: { limit: 100 } });
    expect(events.some(({ type }) => type === 'phase-start')).toBe(true);
    const shapes = { kind: 'shapes', shapes: new Map([['x', [4, 4]]]) } as const;
    for (const sides of [
      { candidate: side({ shapes }), reference: side({ shapes }) },
      {
        candidate: side({ inputs: { seed: 0, ranges: [], files } }),
        reference: side({ inputs: { seed: 0, ranges: [], files } }),
      },
    ])
      expect((await noted.benchCompare({ ...sides, rounds: 3 }, work)).batch).toBe(4);
    for (const name of ['candidate', 'reference'] as const) {
      const asked = (more: Partial<BenchRequest>) =>
        noted.benchCompare(
          { ...{ candidate: side({}), reference: side({}), rounds: 3 }, [name]: side(more) },
          work,
        );
      await expect(asked({ samples: at('pair.json') })).rejects.toMatchObject({ code: 'TF_USAGE' });
      // Times of one side alone are beside nothing: both are taken.
      const { layers } = await asked({ layers: true });
      expect([layers?.candidate, layers?.reference]).not.toContain(null);
    }
  });
});

test('the layers of an engine are taken from a file of them', async () => {
  const layers = await noted.layersOf(file, { ...loading(), ...context().work });
  writeFileSync(at('layers.json'), JSON.stringify(layers));
  const read = await noted.layersOf(file, { from: at('layers.json') });
  expect(read).toMatchObject({ layersFrom: at('layers.json'), planSha256: layers.planSha256 });
});

test('forge loads what it built as requested', async () => {
  const request = {
    ...{
      model,
      profiles: ['x:1x4/8x4/64x4'],
      store: at('store'),
      remote: false as const,
      toolchain: at('home'),
    },
    ...{ settings: { flags: ['weight-streaming'] }, runRoot: at('run') },
  } satisfies ForgeOptions;
  const build = copyingBuilder(file);
  await forgeWith({ ...request, skip: ['verify', 'bench'] }, { environment, build });
  const { work } = context();
  const refused = await noted.forge({ ...request, runRoot: at('refused') }, work);
  expect(refused.error?.code).toBe('TF_PLAN_LOAD_FAILED');
  calls();
  const forged = await noted.forge({ ...request, allowHostCode: true, weightBudget: 0 }, work);
  expect(forged.error).toBeNull();
  expect(forged.engineVerification?.outcome).toBe('pass');
  expect(calls()).toContain('setWeightStreamingBudgetV2 0');
});

test('engines whose weights can be replaced are built as requested', async () => {
  const request = {
    ...{ model, profiles: ['x:1x4/8x4/64x4'], store: at('refittable'), remote: false as const },
    ...{ toolchain: at('home'), refit: true },
  } satisfies ForgeOptions;
  const { work } = context();
  const building = { ...work, environment: { ...environment, FAKE_PLAN: at('plain.engine') } };
  const { engine } = await noted.buildOrLoad(request, building);
  const { identity } = await noted.readPassport(engine);
  expect(identity.document.recipe.flags).toEqual(['refit']);
  const forged = await noted.forge(
    { ...request, runRoot: at('refit'), skip: ['verify', 'bench'] },
    { ...building, commandLine: 'trtforge forge' },
  );
  expect(forged).toMatchObject({ error: null, build: { identity: identity.digest } });
});

test('runFile and openSession run in the profile requested', async () => {
  const inputs = new Map([['x', tensorFrom('float32', [2, 4], new Float32Array(8))]]);
  const file = at('two.engine');
  const toolchain = at('home');
  const sources = [{ kind: 'tensor', name: 'x', path: at('x4.npy') }] as const;
  for (const profile of [0, 1])
    expect((await noted.runFile({ file, toolchain, sources, profile }, context().work)).profile).toBe(
      profile,
    );
  await using first = await noted.openSession(file, { toolchain, profile: 0 }, context().work);
  expect((await first.run(inputs)).get('y')?.shape).toEqual([2, 4]);
  await using second = await noted.openSession(file, { toolchain, profile: 1 }, context().work);
  await expect(second.run(inputs)).rejects.toMatchObject({ code: 'TF_PROFILE_MISFIT' });
});

describe('a build by trtexec of a TensorRT before 11', () => {
  let plugged: string;
  beforeAll(async () => {
    plugged = await modelFile((graph) => {
      graph.input('x', 'float32', [4, 4]);
      graph.node('Foo', { inputs: ['x'], outputs: ['y'], name: 'foo' });
      graph.output('y', 'float32', [4, 4]);
    });
  });
  const builders = {
    buildOrLoad: async (request: BuildOptions) =>
      (await noted.buildOrLoad(request, { environment })).passport,
    forge: async (request: BuildOptions) => {
      const options = { ...request, runRoot: mkdtempSync(at('run-')), skip: ['verify', 'bench'] as const };
      const { build, error } = await noted.forge(options, { environment });
      expect(error).toBeNull();
      return build?.passport;
    },
  };

  test.each(Object.entries(builders))('by %s is typed as requested', async (name, build) => {
    const request = {
      ...{
        target: 'tensorrt:sm_90',
        toolchain: at('home'),
        builder: 'trtexec' as const,
        precision: 'fp16' as const,
      },
      ...{ store: at(`store-${name}`), remote: false as const, knownAnswer: false },
    };
    const weak = await build({ ...request, model, batch: 4, weaklyTyped: true });
    expect(weak?.identity.document.recipe).toMatchObject({ stronglyTyped: false, conversion: null });
    const withPlugin = { ...request, model: plugged, plugins: [at('a.so')] };
    const pluginTypes = new Map([['Foo', { all: 'float16' }]] as const);
    const typed = await build({ ...withPlugin, conversion: { pluginTypes } });
    const { conversion, pluginDigests } = typed!.identity.document.recipe;
    expect(JSON.stringify(conversion)).toContain('Foo');
    expect(pluginDigests).toHaveLength(1);
  });
});
