import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { WorkEvent } from '../../src/events.js';
import { writeNpz } from '../../src/formats/tensor/npz.js';
import type { PlaceOptions, VerifyRequest } from '../../src/index.js';
import { floats, modelFile } from '../engines/runtime/onnxruntime/models.js';
import { fakeBackEnd } from '../fakes/back-end.js';
import { compileFakeOnnxRuntime, fakeProviders } from '../fakes/onnxruntime/library.js';
import { noise } from '../formats/precision/judge.js';
import { noted } from '../support/noted-library.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-library-models-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const log = at('log');
const images = join(import.meta.dirname, '../fixtures/images');
let model: string;
let picture: string;

beforeAll(async () => {
  await compileFakeOnnxRuntime();
  model = await modelFile((graph) => {
    graph.input('x', 'float32', ['n', 64]);
    graph.initializer('w', noise([64, 64], 0.1, 1));
    graph.node('MatMul', { name: 'product', inputs: ['x', 'w'], outputs: ['p'] });
    graph.node('Relu', { name: 'relu', inputs: ['p'], outputs: ['y'] });
    graph.output('y', 'float32', ['n', 64]);
  });
  picture = await modelFile((graph) => {
    graph.input('image', 'float32', ['n', 3, 'h', 'w']);
    graph.initializer('kernel', noise([16, 3, 1, 1], 0.3, 2));
    graph.node('Conv', { name: 'conv', inputs: ['image', 'kernel'], outputs: ['c'] });
    graph.node('GlobalAveragePool', { name: 'pool', inputs: ['c'], outputs: ['y'] });
    graph.output('y', 'float32', ['n', 16, 1, 1]);
  });
  writeNpz(at('x.npz'), new Map([['x', noise([4, 64], 1, 5)]]));
});

describe('a model runs where requested', () => {
  let library: string;
  /** Of the fake CUDA, whose operators are these. */
  const withFake = (takes: string) => {
    const { ORT_HOME = '', ...rest } = fakeProviders(takes, log);
    library = ORT_HOME;
    for (const [name, value] of Object.entries(rest)) vi.stubEnv(name, value);
  };
  beforeEach(() => {
    writeFileSync(log, '');
    return () => vi.unstubAllEnvs();
  });
  const place = (): PlaceOptions => ({
    ...{ provider: 'cuda', onnxRuntime: library, device: 1, allowFallback: true },
    providerOptions: { gpu_mem_limit: '1000' },
  });
  const runners: Readonly<Record<string, (place: PlaceOptions) => Promise<unknown>>> = {
    runFile: (options) => noted.runFile({ file: model, sources: [{ kind: 'random' }], ...options }),
    openSession: async (options) => {
      await using session = await noted.openSession(model, options);
      await session.run({ x: noise([2, 64], 1, 3) });
      await session.facts();
    },
    verifyModel: (options) =>
      noted.verifyModel({ reference: model, candidate: model, samples: 1, ...options }),
    calibrationOf: async (options) => {
      const calibration = await noted.calibrationOf({ data: [at('x.npz')], method: 'max', ...options });
      return noted.convertModel(model, at('int8.onnx'), { precision: 'int8', calibration });
    },
  };

  test.each(Object.entries(runners))('by %s', async (_, run) => {
    withFake('MatMul');
    await run(place());
    const said = readFileSync(log, 'utf8');
    expect(said).toContain('cuda device_id=1');
    expect(said).toContain('gpu_mem_limit=1000');
    await expect(run({ ...place(), allowFallback: false })).rejects.toMatchObject({
      code: 'TF_PROVIDER_FALLBACK',
    });
    await expect(run({ ...place(), onnxRuntime: at('none') })).rejects.toMatchObject({
      code: 'TF_ONNXRUNTIME_MISSING',
    });
    await expect(run({ ...place(), providerOptions: { gpu_mem: '1' } })).rejects.toMatchObject({
      code: 'TF_USAGE',
    });
  });
});

test('runFile and verifyModel take other back ends', async () => {
  const binding = (name: string) => ({ name, dtype: 'float32' as const, shape: ['n', 64] });
  const fake = fakeBackEnd({
    inputs: [binding('x')],
    outputs: [binding('y')],
    run: (inputs) => new Map([['y', inputs.get('x')!]]),
  });
  const backEnds = [fake];
  const ran = await noted.runFile({ file: model, sources: [{ kind: 'random' }] }, { backEnds });
  expect(ran.backend).toBe('Fake 1.0');
  const verified = await noted.verifyModel({ reference: model, candidate: model, samples: 1 }, { backEnds });
  expect(verified.candidateBackend).toBe('Fake 1.0');
  expect(fake.sessions()).toBe(0);
});

describe('verifyModel', () => {
  test('draws at every end of profiles', async () => {
    const x = { min: [1, 64], opt: [4, 64], max: [16, 64], values: false };
    const request = { reference: model, candidate: model, profiles: [{ x }] };
    const { samplesFrom } = await noted.verifyModel(request);
    const origins = samplesFrom?.samples.map(({ origin }) => origin).join('\n');
    for (const end of ['minimum', 'maximum']) expect(origins).toContain(`${end} of profile 0`);
  });

  test('prepares pictures as requested, and leaves those out that fit in no profile', async () => {
    const files = [join(images, 'baseline.jpg'), join(images, 'palette.png')];
    const request = { reference: picture, candidate: picture };
    const seen = async (data: NonNullable<Parameters<typeof noted.verifyModel>[0]['data']>) => {
      const warnings: string[] = [];
      const emit = (event: WorkEvent) =>
        event.type === 'log' && event.severity === 'warning' && warnings.push(event.message);
      const { inputs } = await noted.verifyModel({ ...request, data }, { emit });
      return { shape: inputs[0]?.shape, warnings: warnings.join('\n') };
    };
    const prepared = { files, preprocess: 'yolo', imgsz: 16 };
    expect((await seen(prepared)).shape).toEqual([1, 3, 16, 16]);
    const other = await seen({ ...prepared, imgsz: 32 });
    expect(other.shape).toEqual([1, 3, 32, 32]);
    const sized = (size: number) => {
      const shape = [1, 3, size, size];
      return [{ image: { min: shape, opt: shape, max: shape, values: false } }];
    };
    expect((await seen({ ...prepared, profiles: sized(16) })).warnings).toBe('');
    expect((await seen({ ...prepared, profiles: sized(32) })).warnings).toContain('left out');
  });

  test('goes on from the conversion requested', async () => {
    const reference = await modelFile((graph) => {
      graph.input('x', 'float32', [4, 8]);
      graph.initializer('w', noise([8, 8], 0.5, 1));
      graph.initializer('k', floats('float32', [], [600]));
      graph.node('MatMul', { name: 'product', inputs: ['x', 'w'], outputs: ['p'] });
      graph.node('Tanh', { name: 'bend', inputs: ['p'], outputs: ['t'] });
      graph.node('Mul', { name: 'first', inputs: ['t', 'k'], outputs: ['large'] });
      graph.node('Mul', { name: 'second', inputs: ['large', 'k'], outputs: ['y'] });
      graph.output('y', 'float32', [4, 8]);
    });
    writeNpz(at('fixed.npz'), new Map([['x', noise([4, 8], 1, 5)]]));
    const calibration = await noted.calibrationOf({ data: [at('fixed.npz')], method: 'max' });
    const stated = {
      ...{ keepNodes: [/^bend$/], keepOps: ['Softmax'], convertOps: ['Exp'], initMax: 5000, dataMax: 1e9 },
      ...{ maxReductionDepth: 4096, calibration, rest: 'fp16' as const, ioTypes: 'keep' as const },
      allowUnconverted: true,
    };
    const converted = { ...stated, precision: 'fp16' as const };
    await noted.convertModel(reference, at('overflowing.onnx'), converted);
    const request = { reference, candidate: at('overflowing.onnx'), data: { files: [at('fixed.npz')] } };
    const failed = await noted.verifyModel({ ...request, conversion: stated });
    expect(failed.outcome).toBe('fail');
    for (const option of [
      ...['--keep-nodes ^bend$', '--keep-ops Softmax', '--convert-ops Exp', '--init-max 5000'],
      ...['--data-max 1000000000', '--max-reduction-depth 4096', '--calibration-method max'],
    ])
      expect(failed.next?.bisect?.replaceAll("'", '')).toContain(option);
    const next = async (conversion: NonNullable<VerifyRequest['conversion']>) =>
      (await noted.verifyModel({ ...request, conversion })).next;
    // bisect takes no such option.
    const more = await next({ unquantizedNodes: [/first/] });
    expect(more).toMatchObject({ passes: true, keepNodes: ['^second$'], bisect: null });
    // An output of FP16 holds none of the values, whatever its nodes compute in.
    expect(await next({ ioTypes: 'convert' })).toMatchObject({ passes: false, keepNodes: [] });
    const pluginTypes = new Map([['Foo', { all: 'float16' }]] as const);
    expect((await next({ pluginTypes }))?.message).toContain('The model has no operator Foo.');
  });
});

test('convertModel types plug-ins as requested', async () => {
  const plugged = await modelFile((graph) => {
    graph.input('x', 'float32', [2, 4]);
    graph.node('Foo', { inputs: ['x'], outputs: ['y'], name: 'foo' });
    graph.output('y', 'float32', [2, 4]);
  });
  const converted = await noted.convertModel(plugged, at('plugged.onnx'), {
    precision: 'fp16',
    pluginTypes: { Foo: { all: 'float16' } },
  });
  expect(JSON.stringify(converted)).toContain('Foo');
  await expect(noted.convertModel(plugged, at('kept.onnx'), { precision: 'fp16' })).rejects.toMatchObject({
    code: expect.stringMatching(/^TF_/),
  });
});

test('calibrationOf prepares pictures as requested', async () => {
  const ranges = async (imgsz: number, preprocess: string) => {
    const calibration = await noted.calibrationOf({
      data: [join(images, 'baseline.jpg')],
      ...{ imgsz, preprocess, method: 'max' },
    });
    expect(calibration.preprocess).toBe(preprocess);
    return calibration.digest();
  };
  const digests = [await ranges(16, 'yolo'), await ranges(32, 'yolo'), await ranges(16, 'imagenet')];
  expect(new Set(digests).size).toBe(3);
});
