import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { openOrtSession } from '../../../src/engines/runtime/onnxruntime/ort-session.js';
import { openSupervisedEngine } from '../../../src/engines/runtime/tensorrt/supervised-engine.js';
import { ignoreEvents } from '../../../src/events.js';
import { forge } from '../../../src/forge/forge.js';
import {
  benchWith,
  buildOrLoad,
  layersOf,
  openEngineSession,
  runFile,
  verifyModel,
} from '../../../src/index.js';
import { verifyAgainstReference } from '../../../src/products/streaming/index.js';
import { defaultRequest } from '../../../src/quality/bench/options.js';
import { forgeResultSchema } from '../../../src/report/forge-result.js';
import { copyingBuilder } from '../../fakes/builder.js';
import { writePictureModel } from '../../fakes/deepstream.js';
import { noDevices } from '../../fakes/gpus.js';
import { affineModel, fakeIdentity, manyLayers } from '../../fakes/tensorrt/affine.js';
import { fakeEngine } from '../../fakes/tensorrt/engine.js';
import { fakeTrtexec } from '../../fakes/trtexec.js';
import { samplePassport, writeSampleModel } from '../../support/sample-engine.js';
import { trtforge as runLine } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-device-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
let environment: NodeJS.ProcessEnv = {};
let model: string;
let picture: string;

/** A fake of TensorRT 10.3 and of its trtexec, two visible of four fake GPUs, an engine that computes y = 2x + 1, and the model that it was built from. */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  environment = engine.environment({
    TENSORRT_HOME: engine.install(at('home')),
    TRTFORGE_TOOLCHAINS: at('none'),
    TRTEXEC: fakeTrtexec(folder, { version: '10.6', says: '10.3.0.26', gpuFile: at('gpus') }),
    XDG_CACHE_HOME: at('cache'),
    FAKE_GPUS: '4',
    CUDA_VISIBLE_DEVICES: '3,1',
    NO_COLOR: '1',
  });
  engine.bench.enter(environment);
  // Where configuration files are looked for.
  process.chdir(folder);
  engine.writePlan(at('affine.engine'), {
    kind: 'affine',
    inner: 4,
    layers: manyLayers,
  });
  const passport = samplePassport(readFileSync(at('affine.engine')), fakeIdentity());
  writeFileSync(at('affine.engine.passport.json'), JSON.stringify(passport));
  model = await affineModel();
  picture = await writePictureModel(at('sized'));
});

async function trtforge(args: readonly string[]) {
  const { exitCode: status, json } = await runLine([...args, '--json'], environment);
  return { status, answer: json() };
}

const profile = ['--profile', 'x:1x4/8x4/64x4'];
const commands = (): readonly (readonly [string, readonly string[]])[] => [
  ['build', ['build', model, ...profile]],
  ['build with trtexec', ['build', model, ...profile, '--builder', 'trtexec']],
  ['cache why', ['cache', 'why', model, ...profile]],
  ['forge', ['forge', model, ...profile, '--run-root', at('refused')]],
  ['deepstream size', ['deepstream', 'size', picture]],
  ['verify', ['verify', at('affine.engine'), '--against', model]],
  ['stream record', ['stream', 'record', at('affine.engine'), '--schedule', '4', '-o', at('refused.jsonl')]],
  ['run', ['run', at('affine.engine'), '--inputs', 'random']],
  ['engine inspect', ['engine', 'inspect', at('affine.engine'), '--memory']],
  ['engine layers', ['engine', 'layers', at('affine.engine')]],
  ['explore', ['explore', at('affine.engine')]],
  ['bench', ['bench', at('affine.engine')]],
  ['bench with trtexec', ['bench', at('affine.engine'), '--with', 'trtexec', '--shapes', 'x:8x4']],
];

describe('a GPU that was chosen and is not there', () => {
  test('is rejected in the same words by every command that takes --device', async () => {
    writeFileSync(at('gpus'), '');
    for (const [name, words] of commands()) {
      const { status, answer } = await trtforge([...words, '--device', '5']);
      expect([name, status, answer.error?.code], answer.error?.message).toEqual([
        name,
        3,
        'TF_GPU_UNAVAILABLE',
      ]);
      expect(answer.error?.message, name).toMatch(
        / needs an NVIDIA GPU( to measure on)?, and there is no GPU 5 here: 0 is NVIDIA Fake 3, 1 is NVIDIA Fake 1\.$/,
      );
    }
    expect(readFileSync(at('gpus'), 'utf8')).toBe('');
    expect(existsSync(at('cache/trtforge/engines'))).toBe(false);
  });

  test.each(['-1', '1.5', 'one'])('%s is no number of one', async (device) => {
    const { status, answer } = await trtforge(['build', model, ...profile, '--device', device]);
    expect([status, answer.error?.code]).toEqual([2, 'TF_USAGE']);
  });
});

describe('the GPU that was chosen', () => {
  test('builds alone, and may be chosen in a configuration file', async () => {
    const config = at('trtforge.config.yaml');
    const build = [
      'build',
      model,
      ...profile,
      '--builder',
      'trtexec',
      '--no-cache',
      '-o',
      at('built.engine'),
    ];
    writeFileSync(at('gpus'), '');
    writeFileSync(config, 'device: 5\n');
    const refused = await trtforge(build);
    const overruled = await trtforge([...build, '--device', '1']);
    rmSync(config);
    expect(refused.answer.error?.message).toContain('no GPU 5 here');
    expect([overruled.status, overruled.answer.target]).toEqual([0, 'tensorrt:sm_90']);
    expect(readFileSync(at('gpus'), 'utf8')).toBe('1 -\n');
    const timing = readdirSync(at('cache/trtforge/timing'));
    expect(timing).toEqual([expect.stringContaining('_sm_90_')]);
    const passport: unknown = JSON.parse(readFileSync(`${at('built.engine')}.passport.json`, 'utf8'));
    expect(passport).toMatchObject({ built: { builder: 'trtexec', gpu: 'NVIDIA Fake 1' } });
  });

  test('writes no timing cache over weights of the model', async () => {
    const external = await writeSampleModel(at('external.onnx'), { external: true });
    const weights = readFileSync(`${external}.data`);
    const line = [
      'build',
      external,
      '--profile',
      'x:1x64',
      '--builder',
      'trtexec',
      '-o',
      at('external.engine'),
    ];
    const { answer } = await trtforge([...line, '--timing-cache', `${external}.data`]);
    expect(answer.error?.code).toBe('TF_OUTPUT_IS_INPUT');
    expect(readFileSync(`${external}.data`)).toEqual(weights);
  });

  test('verifies an engine, and the command that repeats it names the GPU', async () => {
    const { status, answer } = await trtforge([
      'verify',
      at('affine.engine'),
      '--against',
      model,
      '--device',
      '1',
    ]);
    expect([status, answer.outcome], answer.error?.message).toEqual([0, 'pass']);
    expect(answer.candidateBackend).toBe('TensorRT 10.3.0 (NVIDIA Fake 1)');
    expect(answer.repeat).toMatch(/ --device 1( |$)/);
  });

  test.each([
    [undefined, '3,1', 'NVIDIA Fake 3'],
    [1, '1', 'NVIDIA Fake 1'],
  ])(
    '%s: forge builds, verifies and measures there, and its report states it',
    async (device, seen, name) => {
      const options = {
        model,
        device,
        profiles: ['x:1x4/8x4/64x4'],
        store: false as const,
        remote: false as const,
        runRoot: at(`run-${device}`),
      };
      const build = copyingBuilder(at('affine.engine'));
      const result = forgeResultSchema.parse(await forge(options, { environment, build }));
      expect(result.error).toBeNull();
      expect(result.build?.passport).toMatchObject({
        built: { gpu: name },
        warnings: [`The builder sees ${seen}.`],
      });
      expect(result.engineVerification).toMatchObject({
        outcome: 'pass',
        candidateBackend: `TensorRT 10.3.0 (${name})`,
      });
      expect(result.bench?.gpu?.name).toBe(name);
      const row = result.environment.find((each) => each.name === 'GPU');
      expect(row?.text).toBe(`${name} (sm_90)${device === 1 ? ', number 1' : ''}`);
      expect(readFileSync(result.report!, 'utf8')).toContain(row?.text);
    },
  );

  test('records an engine, holds it against that, and loads it where its passport is missing', async () => {
    copyFileSync(at('affine.engine'), at('bare.engine'));
    const words = ['--schedule', '4', '--chunks', '2', '-o', at('recorded.jsonl'), '--device', '1'];
    const { status, answer } = await trtforge(['stream', 'record', at('bare.engine'), ...words]);
    expect(status, answer.error?.message).toBe(0);
    expect(answer).toMatchObject({
      backend: 'TensorRT 10.3.0 (NVIDIA Fake 1)',
      repeat: expect.stringContaining(' --device 1 '),
    });
    const against = await trtforge([
      ...['stream', 'verify'],
      at('bare.engine'),
      '--reference',
      at('recorded.jsonl'),
      '--device',
      '1',
    ]);
    expect(against.answer).toMatchObject({
      ok: true,
      candidateBackend: 'TensorRT 10.3.0 (NVIDIA Fake 1)',
      repeat: expect.stringMatching(/ --device 1( |$)/),
    });
    const judged = ['verify', at('bare.engine'), '--against', model, '--device', '1'];
    expect((await trtforge(judged)).answer.error).toMatchObject({
      code: 'TF_PASSPORT_MISSING',
      remedy: expect.stringContaining('--precision fp32'),
    });
    expect((await trtforge([...judged, '--precision', 'fp32'])).answer).toMatchObject({
      outcome: 'pass',
      repeat: expect.stringContaining(' --precision fp32 '),
    });
    const draft = ['stream', 'draft', at('bare.engine'), '-o', at('contract.json'), '--schedule', '4'];
    expect((await trtforge([...draft, '--device', '2'])).answer.error?.message).toContain('no GPU 2 here');
    expect((await trtforge([...draft, '--device', '1'])).status).toBe(0);
    const check = ['stream', 'check', at('bare.engine'), '--contract', at('contract.json')];
    expect((await trtforge([...check, '--device', '2'])).answer.error?.message).toContain('no GPU 2 here');
    expect((await trtforge([...check, '--device', '1'])).status).toBe(0);
  });

  test('has no effect where nothing runs on a GPU', async () => {
    const onCpu = /^--device has no effect on .*, which ONNX Runtime on the CPU runs\.$/;
    for (const [words, why] of [
      [['verify', model, '--against', model], onCpu],
      [['stream', 'record', model, '-o', at('model.jsonl')], onCpu],
      [['inspect', model], /--device/],
    ] as const) {
      const { status, answer } = await trtforge([...words, '--device', '0']);
      expect([status, answer.error?.message]).toEqual([2, expect.stringMatching(why)]);
    }
  });
});

describe('from a program, what numbers no GPU', () => {
  const context = () => ({ emit: ignoreEvents, signal: new AbortController().signal, environment });
  const engine = () => at('affine.engine');
  const bench = (device: number) => ({ ...defaultRequest(engine()), device });
  const doors: Readonly<Record<string, (device: number) => Promise<unknown>>> = {
    buildOrLoad: (device) => buildOrLoad({ model, device }, context()),
    forge: (device) => forge({ model, device, runRoot: at('never') }, context()),
    verifyModel: (device) => verifyModel({ reference: model, candidate: engine(), device }),
    verifyAgainstReference: (device) =>
      verifyAgainstReference({
        candidate: engine(),
        reference: at('none.jsonl'),
        mode: 'functional',
        contract: null,
        device,
      }),
    runFile: (device) => runFile({ file: engine(), sources: [{ kind: 'random' }], device }, context()),
    openEngineSession: (device) => openEngineSession(engine(), { device }),
    openSupervisedEngine: (device) => openSupervisedEngine(engine(), { device }),
    openOrtSession: (device) => openOrtSession(model, { provider: 'cuda', device }),
    layersOf: (device) => layersOf(engine(), { ...context(), device }),
    'benchWith trtforge': (device) => benchWith('trtforge', bench(device), context()),
    'benchWith trtexec': (device) => benchWith('trtexec', bench(device), context()),
  };

  test.each(Object.entries(doors))('%s rejects', async (_, door) => {
    for (const device of noDevices.filter((each) => each !== null))
      await expect(door(device)).rejects.toMatchObject({
        code: 'TF_USAGE',
        message: expect.stringContaining('device'),
      });
  });
});
