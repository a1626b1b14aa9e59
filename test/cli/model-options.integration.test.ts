import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { attribute } from '../../src/formats/onnx/index.js';
import { writeNpz } from '../../src/formats/tensor/npz.js';
import { floats, modelFile } from '../engines/runtime/onnxruntime/models.js';
import { compileFakeOnnxRuntime, fakeProviders } from '../fakes/onnxruntime/library.js';
import { describeWith } from '../support/needs.js';
import { trtforge } from '../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-model-options-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const image = fileURLToPath(new URL('../fixtures/images/baseline.jpg', import.meta.url));
let model: string;
let plugged: string;
const waves = (size: number, step: number) =>
  Array.from({ length: size }, (_, at) => Math.sin(at * step + 1) / 3);

beforeAll(async () => {
  await compileFakeOnnxRuntime();
  model = await modelFile((graph) => {
    graph.input('image', 'float32', ['n', 3, 'h', 'w']);
    graph.initializer('kernel', floats('float32', [16, 3, 1, 1], waves(48, 7)));
    graph.initializer('wide', floats('float32', [32, 16, 1, 1], waves(512, 3)));
    graph.initializer('hidden', floats('float32', [32, 64], waves(2048, 5)));
    graph.initializer('matrix', floats('float32', [64, 16], waves(1024, 5)));
    graph.node('Conv', { inputs: ['image', 'kernel'], outputs: ['features'], name: 'conv' });
    graph.node('Relu', { inputs: ['features'], outputs: ['positive'], name: 'relu' });
    graph.node('Conv', { inputs: ['positive', 'wide'], outputs: ['more'], name: 'conv2' });
    graph.node('GlobalAveragePool', { inputs: ['more'], outputs: ['pooled'], name: 'pool' });
    graph.node('Flatten', { inputs: ['pooled'], outputs: ['flat'], attributes: { axis: attribute.int(1) } });
    graph.node('MatMul', { inputs: ['flat', 'hidden'], outputs: ['mixed'], name: 'mix' });
    graph.node('Relu', { inputs: ['mixed'], outputs: ['kept'], name: 'relu2' });
    graph.node('MatMul', { inputs: ['kept', 'matrix'], outputs: ['logits'], name: 'head' });
    graph.output('logits', 'float32', ['n', 16]);
  });
  plugged = await modelFile((graph) => {
    graph.input('x', 'float32', [2, 4]);
    graph.node('Foo', { inputs: ['x'], outputs: ['y'], name: 'foo' });
    graph.output('y', 'float32', [2, 4]);
  });
  for (let i = 0; i < 4; i++)
    writeNpz(
      at(`sample${i}.npz`),
      new Map([['image', floats('float32', [1, 3, 16, 16], waves(768, 3 + i))]]),
    );
});

async function run(...line: readonly string[]) {
  const { exitCode, json } = await trtforge([...line, '--json']);
  const answer = json();
  expect([0, 1, 4], JSON.stringify(answer.error)).toContain(exitCode);
  return answer;
}
const samples = () => [0, 1, 2].flatMap((i) => ['--calibration', at(`sample${i}.npz`)]);
const images = ['--calibration', image, '--preprocess', 'yolo', '--imgsz', '16'];
const inspected = (path: string) => run('inspect', path);

describe('convert', () => {
  test('to a typed model takes what keeps nodes, types and weights', async () => {
    const line = ['convert', model, '-o', at('typed.onnx')];
    const kept = await run(...line, '--init-max', '0.3', '--external-data', 'always');
    expect(JSON.stringify(kept)).toContain('0.3');
    expect(existsSync(at('typed.onnx.data'))).toBe(true);
    const types = ['--plugin-types', 'Foo:fp16'];
    const typed = await run('convert', plugged, '-o', at('plugged.onnx'), ...types);
    expect(JSON.stringify(typed)).toContain('Foo');
    const deep = await run(
      ...line,
      '--max-reduction-depth',
      '8',
      '--io-types',
      'convert',
      '--external-data',
      'never',
    );
    expect(JSON.stringify(deep)).not.toEqual(JSON.stringify(kept));
    expect((await inspected(at('typed.onnx'))).inputs).toMatchObject([{ dtype: 'float16' }]);
  });

  test('to a quantized model prepares images and calibrates as requested', async () => {
    const log = at('calibration.log');
    writeFileSync(log, '');
    const { ORT_HOME, ...fake } = fakeProviders('Conv,Relu,MatMul', log);
    for (const [name, value] of Object.entries(fake)) vi.stubEnv(name, value);
    const place = [
      '--provider',
      'cuda',
      '--device',
      '0',
      '--provider-option',
      'use_tf32=0',
      '--onnxruntime',
      ORT_HOME!,
    ];
    const line = ['convert', model, '-o', at('int8.onnx'), '--precision', 'int8', ...images];
    const answer = await run(...line, '--calibration-method', 'max', ...place, '--allow-fallback');
    vi.unstubAllEnvs();
    expect(readFileSync(log, 'utf8')).toContain('use_tf32');
    expect((await inspected(at('int8.onnx'))).ops).toHaveProperty('QuantizeLinear');
    expect(JSON.stringify(answer)).toContain('max');
  });
});

test.each([
  ['verify', () => [at('typed.onnx'), '--against', model]],
  ['verify', () => [at('typed.onnx'), '--against', model, '--inputs', at('a.npz')]],
  ['compare layers', () => [at('typed.onnx'), '--against', model]],
  ['convert', () => ['-o', at('n.onnx'), '--precision', 'fp16', model]],
  ['bisect', () => [at('typed.onnx'), '--against', model, '-o', at('none')]],
  ['convert advise', () => [model, '--calibration', at('a.npz'), '--budget', '30dB', '-o', at('none')]],
])('%s: a size of images without images is an error', async (verb, line) => {
  const { exitCode, json } = await trtforge([...verb.split(' '), ...line(), '--imgsz', '64', '--json']);
  expect([exitCode, json().error]).toMatchObject([2, { code: 'TF_USAGE', details: { option: '--imgsz' } }]);
});

test('compare layers prepares its inputs as requested', async () => {
  await run('convert', model, '-o', at('q.onnx'), '--precision', 'int8', ...samples());
  const line = ['compare', 'layers', at('q.onnx'), '--against', model, '--inputs', image];
  const seen = [];
  for (const size of ['16', '32'])
    seen.push(await run(...line, '--preprocess', 'imagenet', '--imgsz', size, '--threads', '1'));
  expect(JSON.stringify(seen[0])).not.toEqual(JSON.stringify(seen[1]));
});

test('compare and compare layers allow what the options allow', async () => {
  writeNpz(at('a.npz'), new Map([['y', floats('float32', [3], [1, 2, Number.NaN])]]));
  writeNpz(at('b.npz'), new Map([['y', floats('float32', [3], [1.01, 2.02, Number.NaN])]]));
  const line = ['compare', at('a.npz'), at('b.npz'), '--atol', '0'];
  expect(await run(...line, '--rtol', '0.1')).toMatchObject({ exitCode: 0 });
  expect(await run(...line, '--rtol', '1e-4')).toMatchObject({ exitCode: 1 });
  expect(await run(...line, '--rtol', '0.1', '--strict-non-finite')).toMatchObject({ exitCode: 1 });
  const layers = ['compare', 'layers', at('typed.onnx'), '--against', model, '--inputs', image];
  expect(await run(...layers, '--preprocess', 'yolo', '--imgsz', '16')).toMatchObject({
    ok: expect.any(Boolean),
  });
  const verify = [
    'verify',
    at('typed.onnx'),
    '--against',
    model,
    '--inputs',
    image,
    '--preprocess',
    'yolo',
    '--imgsz',
    '16',
  ];
  expect(await run(...verify, '--atol', '1', '--rtol', '1', '--report', at('page.html'))).toMatchObject({
    samples: 1,
  });
  expect(readFileSync(at('page.html'), 'utf8')).toContain('<html');
  const drawn = ['verify', at('typed.onnx'), '--against', model, '--shapes', 'image:1x3x16x16', '--seed'];
  expect((await run(...drawn, '5')).seed).toBe(5);
});

test('convert advise takes the options of a conversion, and judges by the samples held out', async () => {
  const line = [
    'convert',
    'advise',
    model,
    '-o',
    at('advice'),
    ...samples(),
    '--held-out',
    at('sample3.npz'),
  ];
  const keeping = [
    '--keep-ops',
    'Relu',
    '--convert-ops',
    'Relu',
    '--init-max',
    '5',
    '--max-reduction-depth',
    '9999',
  ];
  const more = ['--high-precision', 'fp32', '--io-types', 'keep', '--threads', '1'];
  const answer = await run(
    ...line,
    ...keeping,
    ...more,
    '--keep-nodes',
    '^mix$',
    '--calibration-method',
    'max',
    '--budget',
    '10dB',
  );
  expect(JSON.stringify(answer)).toContain('mix');
  const pictures = ['convert', 'advise', model, '-o', at('advice2'), ...images, '--held-out', image];
  expect(await run(...pictures, '--budget', '5dB')).toMatchObject({ schema: 'trtforge.convert-advise/1' });
});

test('bisect judges by the options passed', async () => {
  await run('convert', model, '-o', at('bad.onnx'), '--precision', 'bf16');
  const line = ['bisect', at('bad.onnx'), '--against', model, '-o', at('bisected'), '--precision', 'bf16'];
  const drawn = [
    '--shapes',
    'image:1x3x16x16',
    '--seed',
    '4',
    '--atol',
    '1e-7',
    '--rtol',
    '1e-7',
    '--budget',
    '6',
  ];
  const config = at('bisect.json');
  writeFileSync(config, JSON.stringify({ threads: 1, 'keep-ops': 'GlobalAveragePool', 'init-max': 9 }));
  expect(await run(...line, ...drawn, '--config', config)).toMatchObject({ schema: 'trtforge.bisect/1' });
  const pictures = ['--inputs', image, '--preprocess', 'yolo', '--imgsz', '16', '--budget', '6'];
  expect(
    await run(...line.with(5, at('bisected2')), ...pictures, '--atol', '1e-7', '--rtol', '1e-7'),
  ).toMatchObject({ schema: 'trtforge.bisect/1' });
});

describeWith('toolchain', 'a build calibrates where its configuration says, and keeps the ranges', () => {
  test.each(['build', 'forge'])('by %s', async (verb) => {
    const log = at(`${verb}.log`);
    writeFileSync(log, '');
    const { ORT_HOME, ...fake } = fakeProviders('Conv,Relu,MatMul', log);
    for (const [name, value] of Object.entries(fake)) vi.stubEnv(name, value);
    const config = at(`${verb}.json`);
    const keys = {
      provider: 'cuda',
      onnxruntime: ORT_HOME,
      'provider-option': 'use_tf32=0',
      'allow-fallback': true,
    };
    writeFileSync(config, JSON.stringify(keys));
    const to =
      verb === 'build'
        ? ['-o', at('calibrated.engine')]
        : ['--run-root', at('calibrated'), '--skip', 'verify,bench'];
    const line = [
      verb,
      model,
      '--target',
      'tensorrt-rtx:sm_89',
      '--precision',
      'int8',
      '--dim',
      'h=16,w=16',
      ...to,
    ];
    const ranges = ['--calibration-cache', at(`${verb}-ranges.json`), '--no-cache', '--config', config];
    await run(...line, '--batch', '1', ...images, ...ranges);
    vi.unstubAllEnvs();
    expect(readFileSync(log, 'utf8')).toContain('use_tf32');
    expect(existsSync(at(`${verb}-ranges.json`))).toBe(true);
  });
});

describeWith('toolchain', 'forge', () => {
  test('verifies as requested, and names the engine', async () => {
    const config = at('forge.json');
    writeFileSync(
      config,
      JSON.stringify({
        threads: 1,
        'val-range': '[0,1]',
        'weight-budget': 'automatic',
        'allow-host-code': true,
      }),
    );
    const line = [
      'forge',
      model,
      '--target',
      'tensorrt-rtx:sm_89',
      '--precision',
      'fp16',
      '--dim',
      'h=16,w=16',
      '--batch',
      '1/1/2',
    ];
    const told = [
      '--samples',
      '2',
      '--atol',
      '1e-1',
      '--rtol',
      '1e-1',
      '--name',
      'pool:2',
      '--builder-config',
      'flags=weight-streaming',
      '--run-root',
      at('root'),
      '--no-cache',
    ];
    const load = ['--timeout', '500', '--config', config];
    const answer = await run(...line, ...told, ...load);
    // Two at each end of the profile, and at its optimum.
    expect(answer).toMatchObject({ verification: { samples: 6 } });
    expect(JSON.stringify(answer)).toContain('pool_2_fp16_sm_89');
    expect(existsSync(at('root/report.json'))).toBe(true);
  });
});
