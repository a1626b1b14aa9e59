import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startSupervised } from '../../../../src/base/process/supervise.js';
import { providerLibrary } from '../../../../src/engines/runtime/onnxruntime/find-library.js';
import { openOrtSession } from '../../../../src/engines/runtime/onnxruntime/ort-session.js';
import { ignoreEvents } from '../../../../src/events.js';
import { float32Values, tensorFrom } from '../../../../src/formats/tensor/tensor.js';
import { fakeElf } from '../../../fakes/elf.js';
import { compileFakeOnnxRuntime, fakeProviders, realLibrary } from '../../../fakes/onnxruntime/library.js';
import { castTo, floats, modelFile } from './models.js';

type OrtSessionOptions = NonNullable<Parameters<typeof openOrtSession>[1]>;

const folder = mkdtempSync(join(tmpdir(), 'trtforge-providers-'));
const log = join(folder, 'log');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Relu of the product, in the shape that it has already. */
const product = (dtype: 'float32' | 'float16') =>
  modelFile((graph) => {
    graph.input('x', dtype, ['n', 2]);
    graph.initializer('w', floats(dtype, [2, 2], [2, 0, 0, 2]));
    graph.node('MatMul', { name: 'mm', inputs: ['x', 'w'], outputs: ['m'] });
    graph.node('Shape', { name: 'shape', inputs: ['m'], outputs: ['s'] });
    graph.node('Relu', { name: 'relu', inputs: ['m'], outputs: ['r'] });
    graph.node('Reshape', { name: 'reshape', inputs: ['r', 's'], outputs: ['y'] });
    graph.output('y', dtype, ['n', 2]);
  });
const ALL = 'MatMul,Shape,Relu,Reshape';

let model = '';
beforeAll(async () => {
  [model] = await Promise.all([product('float32'), compileFakeOnnxRuntime()]);
});
const x = floats('float32', [1, 2], [-1, 3]);

beforeEach(() => {
  writeFileSync(log, '');
  vi.stubEnv('NVIDIA_TF32_OVERRIDE', undefined);
  vi.stubEnv('ORT_DISABLE_TELEMETRY', undefined);
  vi.stubEnv('ORT_HOME', undefined);
  return () => vi.unstubAllEnvs();
});
const lines = (about: string) =>
  readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith(about));
function withFake(
  takes: string,
  options: OrtSessionOptions = {},
  more: Parameters<typeof fakeProviders>[2] = {},
  path = model,
) {
  for (const [name, value] of Object.entries(fakeProviders(takes, log, more))) vi.stubEnv(name, value);
  return openOrtSession(path, { provider: 'cuda', threads: 1, ...options });
}

describe('a provider that is not installed', () => {
  it.skipIf(existsSync(providerLibrary(realLibrary() ?? '', 'cuda')))(
    'is an error that names its library and where it was looked for, never the CPU',
    async () => {
      for (const provider of ['cuda', 'tensorrt'] as const)
        await expect(openOrtSession(model, { provider, onnxRuntime: realLibrary() })).rejects.toMatchObject({
          code: 'TF_ONNXRUNTIME_MISSING',
          message: expect.stringContaining(
            `libonnxruntime_providers_${provider}.so is not beside ${realLibrary()}`,
          ),
          remedy: expect.stringMatching(/onnxruntime-gpu.*ORT_HOME/),
        });
    },
  );

  it('a folder without a library is named with the option that named it', async () => {
    const opened = (options: OrtSessionOptions) => openOrtSession(model, options);
    await expect(opened({ onnxRuntime: folder })).rejects.toMatchObject({
      code: 'TF_ONNXRUNTIME_MISSING',
      message: expect.stringContaining('--onnxruntime'),
    });
    vi.stubEnv('ORT_HOME', folder);
    await expect(opened({})).rejects.toMatchObject({
      code: 'TF_ONNXRUNTIME_MISSING',
      message: expect.stringContaining('ORT_HOME'),
    });
  });

  it('a provider that lacks libraries names all of them', async () => {
    const home = join(folder, 'capi');
    mkdirSync(home, { recursive: true });
    const core = join(home, 'libonnxruntime.so.1');
    writeFileSync(core, readFileSync(realLibrary()!));
    const needed = ['libcublasLt.so.99', 'libc.so.6', 'libcudnn.so.99'];
    for (const name of ['shared', 'cuda'] as const)
      writeFileSync(providerLibrary(core, name), fakeElf({ needed: name === 'cuda' ? needed : [] }));
    await expect(openOrtSession(model, { provider: 'cuda', onnxRuntime: home })).rejects.toMatchObject({
      code: 'TF_ONNXRUNTIME_MISSING',
      message: expect.stringMatching(
        /CUDA provider: libcublasLt\.so\.99, libcudnn\.so\.99 cannot be loaded\.$/,
      ),
      details: { library: core, missing: ['libcublasLt.so.99', 'libcudnn.so.99'] },
      remedy: expect.stringMatching(/onnxruntime-gpu/),
    });
  });
});

describe('over a library that plays the providers', () => {
  it('options, place and environment arrive; TF32 and telemetry are off', async () => {
    await using session = await withFake(ALL, {
      device: 1,
      providerOptions: { gpu_mem_limit: '1000', 'session.disable_prepacking': '1' },
    });
    expect(session.backend).toMatch(/^ONNX Runtime \d+\.\d+\.\d+ \(CUDA, GPU 1\)$/);
    expect(session.arithmetic).toBe('fp32');
    for (let run = 0; run < 3; run++) {
      const y = (await session.run(new Map([['x', x]]))).get('y');
      expect([...float32Values(y!)]).toEqual([0, 6]);
    }
    expect(lines('cuda')).toEqual(['cuda device_id=1 use_tf32=0 gpu_mem_limit=1000']);
    expect(lines('memory')).toEqual(['memory Cuda 1']);
    expect(lines('config session.disable_prepacking')).toHaveLength(1);
    expect(lines('environment')).toEqual(['environment tf32=0 telemetry-off=1']);
    // Asked once, for the version that is loaded.
    expect(lines('api')).toHaveLength(1);
    expect(await session.facts()).toMatchObject({
      library: expect.stringContaining('fake-onnxruntime'),
      buildInfo: expect.stringContaining('git-commit-id'),
      provider: 'cuda',
      providerOptions: { gpu_mem_limit: '1000' },
      tf32: false,
      placement: { providers: [{ provider: 'CUDAExecutionProvider', nodes: 4 }], fallback: [] },
    });
  });

  it('TensorRT is appended alone, and before CUDA where nodes may run elsewhere', async () => {
    const options = { provider: 'tensorrt', providerOptions: { trt_engine_cache_enable: '1' } } as const;
    const wish = { wish: 'tensorrt' } as const;
    await using alone = await withFake(ALL, options, wish);
    expect(alone.backend).toMatch(/\(TensorRT(?: [\d.]+)?, GPU 0\)$/);
    const [line, ...others] = [...lines('tensorrt'), ...lines('cuda')];
    expect(line).toMatch(/^tensorrt device_id=0 trt_engine_cache_enable=1 trt_engine_cache_prefix=\w{16}$/);
    expect(others).toEqual([]);
    writeFileSync(log, '');
    await using _both = await withFake('MatMul', { ...options, allowFallback: true }, wish);
    expect(lines('cuda')).toEqual(['cuda device_id=0 use_tf32=0']);
    await using narrow = await withFake(
      ALL,
      { provider: 'tensorrt', providerOptions: { trt_fp16_enable: '1' } },
      wish,
    );
    expect(narrow.arithmetic).toBe('mixed');
    writeFileSync(log, '');
    await using _typed = await withFake(ALL, { provider: 'tensorrt' }, wish, await product('float16'));
    expect(lines('tensorrt')).toEqual(['tensorrt device_id=0 trt_fp16_enable=1']);
  });

  it('engines in the cache of the provider are named by model and options', async () => {
    const prefixOf = async (file: string, more: Readonly<Record<string, string>> = {}) => {
      writeFileSync(log, '');
      const providerOptions = { trt_engine_cache_enable: '1', ...more };
      await using _session = await withFake(
        ALL,
        { provider: 'tensorrt', providerOptions },
        { wish: 'tensorrt' },
        file,
      );
      return /trt_engine_cache_prefix=(\w+)/.exec(lines('tensorrt')[0] ?? '')?.[1];
    };
    const own = await prefixOf(model);
    expect(await prefixOf(model, { trt_engine_cache_path: folder })).toBe(own);
    expect(await prefixOf(model, { use_tf32: '1' })).not.toBe(own);
    expect(await prefixOf(await product('float16'))).not.toBe(own);
    expect(await prefixOf(model, { trt_engine_cache_prefix: 'mine' })).toBe('mine');
    expect(await prefixOf(model, { trt_engine_cache_enable: '0' })).toBeUndefined();
  });

  it.each([
    ['float32', 'trt_int8_enable=1'],
    ['float16', 'trt_int8_enable=1 trt_fp16_enable=1'],
  ] as const)('TensorRT gets the flags that INT8 pairs among %s need', async (dtype, flags) => {
    const quantized = await modelFile((graph) => {
      graph.input('x', 'float32', [1, 2]);
      graph.initializer('scale', floats('float32', [], [1]));
      graph.initializer('zero', tensorFrom('int8', [], Int8Array.of(0)));
      graph.node('Cast', { inputs: ['x'], outputs: ['n'], attributes: castTo(dtype) });
      graph.node('Cast', { inputs: ['n'], outputs: ['w'], attributes: castTo('float32') });
      graph.node('QuantizeLinear', { inputs: ['w', 'scale', 'zero'], outputs: ['q'] });
      graph.node('DequantizeLinear', { inputs: ['q', 'scale', 'zero'], outputs: ['y'] });
      graph.output('y', 'float32', [1, 2]);
    });
    const takes = 'Cast,QuantizeLinear,DequantizeLinear';
    const wish = { wish: 'tensorrt' } as const;
    await using session = await withFake(takes, { provider: 'tensorrt' }, wish, quantized);
    expect(lines('tensorrt')).toEqual([`tensorrt device_id=0 ${flags}`]);
    expect(session.arithmetic).toBe('mixed');
    expect((await session.facts()).providerOptions).toMatchObject({ trt_int8_enable: '1' });
    writeFileSync(log, '');
    const providerOptions = { trt_int8_enable: '0' };
    await using _own = await withFake(takes, { provider: 'tensorrt', providerOptions }, wish, quantized);
    expect(lines('tensorrt')[0]).toContain('trt_int8_enable=0');
  });

  it("an engine that TensorRT does not build is an error with TensorRT's reason", async () => {
    await expect(withFake(ALL, { provider: 'tensorrt' }, { wish: 'not-built' })).rejects.toMatchObject({
      code: 'TF_ONNXRUNTIME_FAILED',
      message: expect.stringMatching(/Error Code 4: API Usage Error \(no kernel\)$/),
    });
  });

  it('nodes that the provider did not take are an error by name, and a record where they are allowed', async () => {
    await expect(withFake('MatMul,Relu')).rejects.toMatchObject({
      code: 'TF_PROVIDER_FALLBACK',
      message: expect.stringMatching(
        /took 2 of 4 nodes; the others are shape \(Shape\), reshape \(Reshape\)\.$/,
      ),
      details: { nodes: [{ name: 'shape' }, { name: 'reshape' }] },
    });
    await using session = await withFake('MatMul,Relu', { allowFallback: true });
    expect((await session.facts()).placement).toMatchObject({
      providers: expect.arrayContaining([{ provider: 'CPUExecutionProvider', nodes: 2 }]),
      fallback: [{ operator: 'Shape' }, { operator: 'Reshape' }],
    });
    await expect(withFake('', { allowFallback: true })).rejects.toMatchObject({
      code: 'TF_PROVIDER_FALLBACK',
    });
  });

  it('before 1.24 the record of the first run reports the placement', async () => {
    await using session = await withFake(ALL, { allowFallback: true }, { version: '1.23.0' });
    expect((await session.facts()).placement).toBeNull();
    // The record is the real library's, which ran all on the CPU.
    await expect(session.run(new Map([['x', x]]))).rejects.toMatchObject({
      code: 'TF_PROVIDER_FALLBACK',
      message: expect.stringMatching(/took 0 of 4 nodes; the others are mm \(MatMul\)/),
    });
  });

  it('before 1.20 is rejected with the version that is needed', async () => {
    await expect(withFake(ALL, {}, { version: '1.19.2' })).rejects.toMatchObject({
      code: 'TF_LIBRARY_TOO_OLD',
      message: expect.stringMatching(/1\.19\.2.*1\.20/),
    });
  });

  it.each([
    [
      'no-device',
      'TF_GPU_UNAVAILABLE',
      /cannot use GPU 0: CUDA failure 100: no CUDA-capable device is detected\.$/,
    ],
    ['other-device', 'TF_GPU_UNAVAILABLE', /cannot use GPU 0: Invalid device ID: 9/],
    ['hidden-device', 'TF_GPU_UNAVAILABLE', /cannot use GPU 0: CUDA failure 100: no CUDA-capable device/],
    ['no-memory', 'TF_GPU_MEMORY', /CUDA failure 2: out of memory/],
    ['no-kernel', 'TF_ONNXRUNTIME_FAILED', /pool.*MaxPool/],
    ['lost-library', 'TF_ONNXRUNTIME_MISSING', /CUDA provider: .*libonnxruntime_providers_shared\.so/],
    ['bad-option', 'TF_USAGE', /rejects the options of its CUDA provider: .*Failed to parse/],
  ] as const)('%s', async (wish, code, message) => {
    await expect(withFake(ALL, {}, { wish })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });

  it.each([
    ['by the variable', {}, '1'],
    ['by the option', { use_tf32: '1' }, undefined],
  ] as const)(
    'TF32 that is allowed %s stays allowed, and the session states it',
    async (_, providerOptions, variable) => {
      vi.stubEnv('NVIDIA_TF32_OVERRIDE', variable);
      await using session = await withFake(ALL, { providerOptions });
      expect(session.backend).toMatch(/\(CUDA, GPU 0, TF32 allowed\)$/);
      expect(session.arithmetic).toBe('tf32');
      expect(lines('cuda')).toEqual(['cuda device_id=0 use_tf32=1']);
      expect(lines('environment')).toEqual([`environment tf32=${variable ?? 'unset'} telemetry-off=1`]);
    },
  );

  it.each([undefined, '0', '1'])(
    'an engine in the model finds NVIDIA_TF32_OVERRIDE as it is (%s)',
    async (variable) => {
      vi.stubEnv('NVIDIA_TF32_OVERRIDE', variable);
      const engine = await modelFile((graph) => {
        graph.input('x', 'float32', [1, 2]);
        graph.node('EPContext', { domain: 'com.microsoft', inputs: ['x'], outputs: ['y'] });
        graph.output('y', 'float32', [1, 2]);
      });
      // The provider that plays TensorRT has no engine to run.
      await expect(withFake('EPContext', { provider: 'tensorrt' }, {}, engine)).rejects.toMatchObject({
        code: 'TF_ONNXRUNTIME_FAILED',
      });
      expect(lines('environment')).toEqual([`environment tf32=${variable ?? 'unset'} telemetry-off=1`]);
    },
  );

  it('float16 runs as it is, which is not full float32', async () => {
    await using session = await withFake(ALL, { allowFallback: true }, {}, await product('float16'));
    expect(session).toMatchObject({ rounding: undefined, arithmetic: 'mixed' });
    const y = (await session.run(new Map([['x', floats('float16', [1, 2], [-1, 3])]]))).get('y');
    expect(y?.dtype).toBe('float16');
    expect([...float32Values(y!)]).toEqual([0, 6]);
  });

  it('bfloat16 crosses', async () => {
    const path = await modelFile((graph) => {
      graph.input('x', 'bfloat16', [2]);
      graph.node('Identity', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'bfloat16', [2]);
    });
    await using session = await withFake('Identity', {}, {}, path);
    const given = floats('bfloat16', [2], [-1, 3]);
    expect((await session.run(new Map([['x', given]]))).get('y')).toMatchObject({
      dtype: 'bfloat16',
      bytes: given.bytes,
    });
  });

  it('a session on the CPU has no provider appended, and nothing is recorded', async () => {
    await using session = await withFake('', { provider: 'cpu' });
    await session.run(new Map([['x', x]]));
    expect(await session.facts()).toMatchObject({ provider: 'cpu', placement: null });
    expect(session.backend).toMatch(/\(CPU\)$/);
    expect([...lines('cuda'), ...lines('tensorrt'), ...lines('config')]).toEqual([]);
    expect(lines('environment')).toEqual(['environment tf32=unset telemetry-off=1']);
  });
});

describe('state that stays on the device', () => {
  const adder = () =>
    modelFile((graph) => {
      graph.input('x', 'float32', [2]);
      graph.input('sum', 'float32', [2]);
      graph.node('Add', { name: 'add', inputs: ['x', 'sum'], outputs: ['next'] });
      graph.node('Neg', { name: 'neg', inputs: ['next'], outputs: ['y'] });
      graph.output('next', 'float32', [2]);
      graph.output('y', 'float32', [2]);
    });

  it('is the input of the next run, and only what is asked for comes back', async () => {
    await using session = await withFake('Add,Neg', {}, {}, await adder());
    const one = floats('float32', [2], [1, 10]);
    const state = { sum: 'next' };
    const runs = [
      new Map([
        ['x', one],
        ['sum', floats('float32', [2], [0, 0])],
      ]),
      new Map([['x', one]]),
      new Map([['x', one]]),
    ];
    const seen: number[][] = [];
    for (const inputs of runs) {
      const outputs = await session.run(inputs, { state });
      expect([...outputs.keys()]).toEqual(['y']);
      seen.push([...float32Values(outputs.get('y')!)]);
    }
    expect(seen).toEqual([
      [-1, -10],
      [-2, -20],
      [-3, -30],
    ]);
    const last = await session.run(new Map([['x', one]]));
    expect([...float32Values(last.get('next')!)]).toEqual([4, 40]);
  });

  it.each([
    [{ sum: 'none' }, /no output "none"/],
    [{ none: 'next' }, /no input "none"/],
  ])('%j is rejected', async (state, message) => {
    await using session = await openOrtSession(await adder(), { threads: 1 });
    const one = floats('float32', [2], [1, 10]);
    const inputs = new Map([
      ['x', one],
      ['sum', one],
    ]);
    await expect(session.run(inputs, { state: state as Record<string, string> })).rejects.toMatchObject({
      code: 'TF_SESSION_INPUT',
      message: expect.stringMatching(message),
    });
  });
});

describe('without the addon', () => {
  it('onnxruntime-node runs a model on the CPU, in the same child and with the same answers', async () => {
    const child = startSupervised(
      new URL('../../../../dist/engines/runtime/onnxruntime/ort-child.js', import.meta.url),
      { emit: ignoreEvents, doing: 'running a model', env: process.env },
    );
    const opened = await child.request({ kind: 'open', modelPath: model, threads: 1, native: null });
    expect(opened).toMatchObject({ version: expect.stringMatching(/^1\./), buildInfo: null });
    const request = { kind: 'run', inputs: [['x', x]], iterations: 2, state: [] };
    const { outputs, ms } = (await child.request(request)) as { outputs: [string, typeof x][]; ms: number[] };
    expect([...float32Values(outputs[0]![1])]).toEqual([0, 6]);
    expect(ms).toHaveLength(2);
    await child.close();
  });
});

it('the fake has the library of onnxruntime-node behind it', () => {
  expect(dirname(realLibrary() ?? '')).toContain('onnxruntime-node');
});
