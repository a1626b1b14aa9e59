import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../../scripts/build-native.mjs';
import { readPassport } from '../../../../src/engines/identity/passport.js';
import { buildModel, GraphBuilder, writeModel } from '../../../../src/formats/onnx/index.js';
import { writeNpz } from '../../../../src/formats/tensor/npz.js';
import { compileFakeOnnxRuntime, fakeProviders } from '../../../fakes/onnxruntime/library.js';
import { manyLayers } from '../../../fakes/tensorrt/affine.js';
import { fakeEngine } from '../../../fakes/tensorrt/engine.js';
import { fakeTrtexec } from '../../../fakes/trtexec.js';
import { noise } from '../../../formats/precision/judge.js';
import { writeBundle } from '../../../support/bundle.js';
import { trtforge } from '../../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-bundle-stand-in-'));
const at = (...names: readonly string[]) => join(folder, ...names);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const image = join(import.meta.dirname, '../../../fixtures/images/baseline.jpg');
let environment: NodeJS.ProcessEnv = {};
let meta: string;
let outputs = 0;

/** A fake of TensorRT 10.3 on two of its GPUs, which builds and runs the joint network of a bundle. */
beforeAll(async () => {
  await Promise.all([buildAddon({ say: () => {} }), compileFakeOnnxRuntime()]);
  const engine = await fakeEngine('10');
  const log = at('providers.log');
  writeFileSync(log, '');
  environment = engine.environment({
    TENSORRT_HOME: at('none'),
    TRTFORGE_TOOLCHAINS: at('none'),
    XDG_CACHE_HOME: at('cache'),
    TENSORRT_CACHE_DIR: at('store'),
    ARTIFACTS_BUCKET: '',
    TRTEXEC: fakeTrtexec(folder, { version: '10.6', says: '10.3.0.0' }),
    FAKE_CALLS: at('calls'),
    FAKE_GPUS: '2',
    FAKE_PLAN: at('joint.engine'),
    ...fakeProviders('MatMul,Relu,Add', log),
  });
  engine.install(at('home'));
  engine.bench.enter(environment);
  engine.writePlan(at('joint.engine'), {
    kind: 'means',
    inputs: [
      ['encoder_output', 'float32', [-1, 32, -1]],
      ['predictor_output', 'float32', [-1, 16, -1]],
    ],
    outputs: [['joint_output', 'float32', [-1, -1, -1, 38]]],
    streamable: 1 << 20,
    layers: manyLayers,
    profiles: [[1, 1, 64]],
  });
  meta = await writeBundle(folder);
  engine.writePlan(at('camera.engine'), {
    kind: 'means',
    inputs: [['image', 'float32', [-1, 3, 32, 32]]],
    outputs: [['features', 'float32', [-1, 32, 32, 32]]],
    layers: manyLayers,
    profiles: [[1, 1, 64]],
  });
  const graph = new GraphBuilder('camera');
  graph.input('image', 'float32', ['batch', 3, 'h', 'w']);
  graph.initializer('kernel', noise([16, 3, 1, 1], 1, 3));
  graph.initializer('wide', noise([32, 16, 1, 1], 1, 4));
  graph.node('Conv', { inputs: ['image', 'kernel'], outputs: ['colours'], name: 'conv' });
  graph.node('Relu', { inputs: ['colours'], outputs: ['positive'], name: 'relu' });
  graph.initializer('last', noise([32, 32, 1, 1], 1, 5));
  graph.node('Conv', { inputs: ['positive', 'wide'], outputs: ['more'], name: 'conv2' });
  graph.node('Conv', { inputs: ['more', 'last'], outputs: ['features'], name: 'conv3' });
  graph.output('features', 'float32', ['batch', 32, 'h', 'w']);
  await writeModel(buildModel(graph), at('camera.onnx'));
  writeFileSync(at('camera.yaml'), 'components: { camera: { symbols: { h: 32, w: 32 } } }');
  const samples = { encoder_output: noise([1, 32, 16], 1, 1), predictor_output: noise([1, 16, 1], 1, 2) };
  writeNpz(at('joint.npz'), new Map(Object.entries(samples)));
});

const own = { build: [], forge: ['--no-check'] };
async function bundle(verb: keyof typeof own, ...more: readonly string[]) {
  rmSync(at('calls'), { force: true });
  const only = more.includes('--only') ? [] : ['--only', 'joint'];
  const place = [...only, '--outdir', at(`${outputs++}`), '--no-cache'];
  const line = ['bundle', verb, meta, '--target', 'tensorrt', '--toolchain', at('home'), ...place];
  const { json } = await trtforge([...line, ...own[verb], ...more, '--json'], environment);
  const calls = existsSync(at('calls')) ? readFileSync(at('calls'), 'utf8').split('\n') : [];
  return { answer: json(), calls };
}

describe.each(['build', 'forge'] as const)('bundle %s', (verb) => {
  test('builds and loads on the GPU, and with the weights there, as requested', async () => {
    const { answer, calls } = await bundle(
      verb,
      '--device',
      '1',
      '--weight-budget',
      '0',
      '--builder-config',
      'flags=weight-streaming',
    );
    expect(answer).toMatchObject({ exitCode: 0, components: [{ status: 'built' }] });
    expect(calls).toContain('builds on NVIDIA Fake 1');
    expect(calls).toContain('setWeightStreamingBudgetV2 0');
  });

  test('calibrates where requested, and keeps the ranges', async () => {
    const config = at('calibrating.json');
    const { ORT_HOME } = environment;
    const keys = { provider: 'cuda', onnxruntime: ORT_HOME, 'provider-option': 'use_tf32=0' };
    writeFileSync(config, JSON.stringify({ ...keys, 'allow-fallback': true }));
    const told = ['--precision', 'int8', '--calibration', at('joint.npz'), '--config', config];
    const ranges = at(`${verb}-ranges`);
    const { answer } = await bundle(verb, ...told, '--calibration-cache', ranges);
    expect(answer).toMatchObject({ exitCode: 0, components: [{ status: 'built' }] });
    expect(readFileSync(at('providers.log'), 'utf8')).toContain('use_tf32');
    // Each component has its own.
    expect(existsSync(`${ranges}.joint`)).toBe(true);
  });

  test('prepares the pictures of a component as requested', async () => {
    environment.FAKE_PLAN = at('camera.engine');
    const camera = ['--profiles', at('camera.yaml'), '--only', 'camera', '--precision', 'int8'];
    const passports = [];
    for (const size of ['16', '32']) {
      const told = ['--calibration', image, '--preprocess', 'imagenet', '--imgsz', size];
      const { answer } = await bundle(verb, ...camera, ...told);
      expect(answer).toMatchObject({ exitCode: 0, components: [{ component: 'camera', status: 'built' }] });
      passports.push(readPassport(at(`${outputs - 1}`, 'camera.engine')));
    }
    environment.FAKE_PLAN = at('joint.engine');
    expect(passports.map(({ model }) => model.preprocess)).toEqual(['imagenet', 'imagenet']);
    expect(passports[0]!.identity.digest).not.toBe(passports[1]!.identity.digest);
  });

  test('builds by trtexec', async () => {
    const { answer } = await bundle(verb, '--builder', 'trtexec');
    const commands = { build: expect.arrayContaining(['trtexec']) };
    expect(answer).toMatchObject({
      exitCode: 0,
      builder: 'trtexec',
      components: [{ status: 'built', commands }],
    });
  });
});
