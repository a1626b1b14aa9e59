import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type NodePlacement,
  placementOf,
  placementWarnings,
} from '../../../../src/engines/runtime/onnxruntime/ort-placement.js';
import { ortBackend, providerInBackend } from '../../../../src/engines/runtime/onnxruntime/ort-provider.js';
import {
  type OrtSessionOptions,
  openOrtSession,
} from '../../../../src/engines/runtime/onnxruntime/ort-session.js';
import { float32Values } from '../../../../src/formats/tensor/values.js';
import { cudaBinding } from '../../../fakes/cuda-provider.js';
import { floats, modelFile } from './models.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-ort-cuda-'));
const log = join(folder, 'asked.jsonl');
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const profiles = () => readdirSync(tmpdir()).filter((name) => name.startsWith('trtforge-profile-'));

/** Relu of the product, given the shape it has already. */
const product = (dtype: 'float32' | 'float16' | 'bfloat16') =>
  modelFile((graph) => {
    graph.input('x', dtype, ['n', 2]);
    graph.initializer('w', floats(dtype, [2, 2], [2, 0, 0, 2]));
    graph.node('MatMul', { inputs: ['x', 'w'], outputs: ['m'] });
    graph.node('Shape', { inputs: ['m'], outputs: ['s'] });
    graph.node('Relu', { inputs: ['m'], outputs: ['r'] });
    graph.node('Reshape', { inputs: ['r', 's'], outputs: ['y'] });
    graph.output('y', dtype, ['n', 2]);
  });

let model = '';
beforeAll(async () => {
  model = await product('float32');
});
const x = floats('float32', [1, 2], [-1, 3]);

/** Where the package's own script puts it. */
const library = join(
  dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json')),
  `bin/napi-v6/${process.platform}/${process.arch}/libonnxruntime_providers_cuda.so`,
);
const isLinux = process.platform === 'linux' && process.arch === 'x64';

describe('CUDA that was asked for and is not here', () => {
  it.skipIf(!isLinux || existsSync(library))(
    'is an error with the loader’s own words and a way out, never the CPU',
    async () => {
      const before = profiles();
      await expect(openOrtSession(model, { provider: 'cuda' })).rejects.toThrow(
        expect.objectContaining({
          code: 'TF_ONNXRUNTIME_MISSING',
          message: expect.stringMatching(
            /^ONNX Runtime cannot load its CUDA provider: lib\S+\.so[.\d]*: cannot open shared object file/,
          ),
          remedy: expect.stringMatching(/ONNXRUNTIME_NODE_INSTALL=cuda12 node .*install\.js.*cuDNN 9/),
        }),
      );
      expect(profiles()).toEqual(before);
    },
  );
});

describe('over a binding that says it has CUDA', () => {
  beforeEach(() => {
    writeFileSync(log, '');
    for (const [name, value] of Object.entries(cudaBinding('falls-back', log))) vi.stubEnv(name, value);
    vi.stubEnv('NVIDIA_TF32_OVERRIDE', undefined);
    return () => vi.unstubAllEnvs();
  });
  const asked = () =>
    readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  async function onCuda(operators: string, options: OrtSessionOptions = {}, path = model) {
    vi.stubEnv('FAKE_CUDA', operators);
    return openOrtSession(path, { provider: 'cuda', threads: 1, ...options });
  }

  it('the GPU goes through, TF32 is off, the first run alone is recorded, and nodes left on the CPU are counted', async () => {
    await using session = await onCuda('MatMul,Relu', { device: 1 });
    expect(session.backend).toMatch(/^ONNX Runtime \d+\.\d+\.\d+ \(CUDA, GPU 1\)$/);
    expect(session.arithmetic).toBe('fp32');
    expect(await session.placement()).toBeNull();
    for (let run = 0; run < 3; run++) {
      const y = (await session.run(new Map([['x', x]]))).get('y');
      expect([...float32Values(y!)]).toEqual([0, 6]);
    }
    const placement = await session.placement();
    expect(placement).toEqual({ onGpu: 2, onCpu: 2, cpuOperators: ['Reshape', 'Shape'] });
    expect(placementWarnings(placement)).toEqual([
      expect.stringMatching(/^2 of 4 nodes ran on the CPU, .*: Reshape, Shape\.$/),
    ]);
    const cuda = [{ name: 'cuda', deviceId: 1 }];
    expect(asked()).toEqual([
      { executionProviders: cuda, profiled: false, tf32: '0' },
      { executionProviders: cuda, profiled: true, tf32: '0' },
    ]);
  });

  it('what falls back to the CPU without a word is found by its first run, and by every later one', async () => {
    const before = profiles();
    const session = await onCuda('falls-back');
    for (let run = 0; run < 2; run++)
      await expect(session.run(new Map([['x', x]]))).rejects.toThrow(
        expect.objectContaining({
          code: 'TF_GPU_UNAVAILABLE',
          message: expect.stringMatching(
            /CUDA was asked for, and ONNX Runtime ran all 4 nodes .* on the CPU/,
          ),
        }),
      );
    await session.close();
    expect(profiles()).toEqual(before);
  });

  it.each([
    [
      'no-device',
      'TF_GPU_UNAVAILABLE',
      /cannot use GPU 0: CUDA failure 100: no CUDA-capable device is detected\.$/,
    ],
    [
      'lost-library',
      'TF_ONNXRUNTIME_MISSING',
      /provider: libcublasLt\.so\.12: cannot open shared object file/,
    ],
  ])('%s', async (wish, code, message) => {
    await expect(onCuda(wish)).rejects.toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    );
  });

  it('TF32 that somebody allows stays allowed, and the session says so', async () => {
    vi.stubEnv('NVIDIA_TF32_OVERRIDE', '1');
    await using session = await onCuda('MatMul');
    expect(session.backend).toMatch(/\(CUDA, GPU 0, TF32 allowed\)$/);
    expect(session.arithmetic).toBe('tf32');
    expect(asked().map(({ tf32 }) => tf32)).toEqual(['1', '1']);
  });

  it('a session on the CPU is asked for as before, with nothing recorded', async () => {
    vi.stubEnv('FAKE_CUDA', 'no-device');
    await using session = await openOrtSession(model, { threads: 1 });
    await session.run(new Map([['x', x]]));
    expect(await session.placement()).toBeNull();
    expect(session.backend).toMatch(/\(CPU\)$/);
    expect(asked()).toEqual([{ executionProviders: ['cpu'], profiled: false, tf32: null }]);
  });

  it('float16 runs as it is, which is not full float32; bfloat16 cannot cross', async () => {
    await using session = await onCuda('MatMul', {}, await product('float16'));
    expect(session).toMatchObject({ rounding: undefined, arithmetic: 'mixed' });
    const y = (await session.run(new Map([['x', floats('float16', [1, 2], [-1, 3])]]))).get('y');
    expect(y?.dtype).toBe('float16');
    expect([...float32Values(y!)]).toEqual([0, 6]);
    await expect(onCuda('MatMul', {}, await product('bfloat16'))).rejects.toThrow(
      expect.objectContaining({ code: 'TF_SESSION_BINDING', message: expect.stringMatching(/bfloat16/) }),
    );
  });
});

describe('what ONNX Runtime records of a run', () => {
  const event = (name: string, op_name: string, provider: string, node_index = '0') => ({
    cat: 'Node',
    name,
    args: { op_name, provider, node_index },
  });

  it('counts a node once however often a loop ran it, and no copies', () => {
    const events = [
      { cat: 'Session', name: 'model_loading_uri', args: {} },
      event('a_kernel_time', 'Add', 'CUDAExecutionProvider'),
      event('a_kernel_time', 'Add', 'CUDAExecutionProvider'),
      event('Memcpy_token_1_kernel_time', 'MemcpyToHost', 'CUDAExecutionProvider', '7'),
      event('_kernel_time', 'Where', 'CPUExecutionProvider', '1'),
      event('_kernel_time', 'Gather', 'CPUExecutionProvider', '2'),
    ];
    expect(placementOf(JSON.stringify(events))).toEqual({
      onGpu: 1,
      onCpu: 2,
      cpuOperators: ['Gather', 'Where'],
    } satisfies NodePlacement);
  });

  it('says nothing where there is nothing on the CPU', () => {
    expect(placementWarnings({ onGpu: 5, onCpu: 0, cpuOperators: [] })).toEqual([]);
    expect(placementWarnings(null)).toEqual([]);
  });

  it.each([
    ['CPU', ortBackend('1.30.0', {}, false)],
    ['CUDA', ortBackend('1.30.0', { provider: 'cuda', device: 2 }, false)],
    ['CUDA', ortBackend('1.30.0', { provider: 'cuda' }, true)],
    [undefined, 'TensorRT 10.6.0.26 (NVIDIA H200)'],
  ])('%s is read out of the backend %s', (provider, backend) => {
    expect(providerInBackend(backend)).toBe(provider);
  });
});
