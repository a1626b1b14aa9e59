import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { forge } from '../../../src/forge/forge.js';
import type { ForgeOptions } from '../../../src/forge/options.js';
import { forgeBundle } from '../../../src/products/bundle/forge-bundle.js';
import { forgeResultSchema } from '../../../src/report/forge-result.js';
import { copyingBuilder } from '../../fakes/builder.js';
import { affineModel, fakeIdentity, manyLayers } from '../../fakes/tensorrt/affine.js';
import { fakeEngine } from '../../fakes/tensorrt/engine.js';
import { verbs } from '../../support/runs.js';
import { samplePassport } from '../../support/sample-engine.js';
import { trtforge as runLine } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-plugins-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
let environment: NodeJS.ProcessEnv = {};
let model: string;

/**
 * A fake of TensorRT 10.3 and two engines that compute y = 2x + 1: `affine.engine`, whose passport says that it was built with a plug-in library,
 * and `leave.engine`, which loads only where host code is allowed.
 */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  environment = engine.environment({
    TENSORRT_HOME: engine.install(at('home')),
    TRTFORGE_TOOLCHAINS: at('none'),
    XDG_CACHE_HOME: at('cache'),
    FAKE_CALLS: at('calls'),
    NO_COLOR: '1',
  });
  engine.bench.enter(environment);
  for (const name of ['a', 'b']) writeFileSync(at(`${name}.so`), name);
  const document = fakeIdentity();
  for (const [name, pluginDigests, hostCode] of [
    ['affine', ['b'.repeat(64)], false],
    ['leave', [], true],
  ] as const) {
    const path = engine.writePlan(at(`${name}.engine`), {
      kind: 'affine',
      inner: 4,
      layers: manyLayers,
      hostCode,
    });
    const recipe = { ...document.recipe, pluginDigests: [...pluginDigests] };
    const passport = samplePassport(readFileSync(path), { ...document, recipe });
    writeFileSync(`${path}.passport.json`, JSON.stringify(passport));
    copyFileSync(path, at(`bare-${name}.engine`));
  }
  model = await affineModel();
});

async function trtforge(args: readonly string[]) {
  rmSync(at('calls'), { force: true });
  const { exitCode: status, json } = await runLine([...args, '--json'], environment);
  return { status, answer: json(), loaded: loadedLibraries() };
}

/** The plug-in libraries that TensorRT was told to load since `calls` was removed, each once. */
function loadedLibraries(): readonly string[] {
  const calls = existsSync(at('calls')) ? readFileSync(at('calls'), 'utf8').split('\n') : [];
  return [...new Set(calls.flatMap((call) => (call.startsWith('loadLibrary ') ? [call.slice(12)] : [])))];
}

/** A command line per way to open an engine. A stream is held against the bindings that a passport tells, and those of the sample are of another engine. */
const commandsOn = (name: 'affine' | 'leave'): readonly (readonly string[])[] => {
  const engine = at(`${name}.engine`);
  const recorded = at(`${name}.jsonl`);
  return [
    ['run', engine, '--inputs', 'random'],
    ['bench', 'compare', engine, '--mode', 'no-transfers', '--rounds', '3', '--duration', '0.1'],
    ['verify', engine, '--against', model],
    ['engine', 'layers', engine],
    ['stream', 'record', at(`bare-${name}.engine`), '--schedule', '4', '--chunks', '2', '-o', recorded],
    ['stream', 'verify', at(`bare-${name}.engine`), '--reference', recorded],
  ];
};

describe('an engine that needs a plug-in library', () => {
  const plugins = () => ['--plugin', at('a.so'), '--plugin', at('b.so')];

  test('is loaded with it by every command that opens engines, and the result states it', async () => {
    for (const words of verbs(commandsOn('affine'))) {
      const { status, answer, loaded } = await trtforge([...words, ...plugins()]);
      const what = `${words.join(' ')}: ${JSON.stringify(answer.error ?? answer.warnings)}`;
      // A comparison of 0.1 s shows nothing.
      expect(words.includes('--mode') ? [0, 4] : [0], what).toContain(status);
      expect(loaded, what).toEqual([at('a.so'), at('b.so')]);
      expect(JSON.stringify(answer), what).toMatch(
        /--plugin \S+a\.so --plugin \S+b\.so|"plugins":\["\S+?a\.so","\S+?b\.so"\]/,
      );
    }
  });

  test('is rejected without by all that read its passport, with what to do', async () => {
    for (const words of verbs(commandsOn('affine').slice(0, 4))) {
      const { status, answer } = await trtforge(words);
      expect([words[0], status, answer.error?.code]).toEqual([words[0], 3, 'TF_PLAN_LOAD_FAILED']);
      expect(answer.error?.remedy).toContain('--plugin FILE');
    }
  });

  test('is loaded with it also where only its bindings are asked for, and no passport states them', async () => {
    const contract = at('contract.json');
    for (const words of [
      ['stream', 'draft', at('bare-affine.engine'), '-o', contract, '--schedule', '4'],
      ['stream', 'check', at('bare-affine.engine'), '--contract', contract],
    ]) {
      const { status, answer, loaded } = await trtforge([...words, ...plugins()]);
      expect([status, loaded], answer.error?.message).toEqual([0, [at('a.so'), at('b.so')]]);
    }
  });
});

test('an engine that carries its own runtime is run by every command with leave, and by none without', async () => {
  for (const words of verbs(commandsOn('leave'))) {
    const refused = await trtforge(words);
    expect([words[0], refused.answer.error?.code]).toEqual([words[0], 'TF_PLAN_LOAD_FAILED']);
    expect(refused.answer.error?.remedy).toContain('--allow-host-code');
    const { answer } = await trtforge([...words, '--allow-host-code']);
    expect(answer.error, words.join(' ')).toBeUndefined();
  }
});

test('what only an engine can honour is rejected for a model, and where nothing is loaded, by its name', async () => {
  const wishes = [
    ['--plugin', at('a.so')],
    ['--toolchain', 'tensorrt-10.3.0'],
    ['--allow-host-code'],
    ['--weight-budget', '1G'],
    ['--cuda-graph', 'never'],
  ] as const;
  const isForEngines = / has no effect on .*, which ONNX Runtime on the CPU runs\.$/;
  const commands = [
    [['verify', model, '--against', model], isForEngines],
    [['run', model, '--inputs', 'random'], isForEngines],
    [['stream', 'verify', model, '--reference', at('affine.jsonl')], isForEngines],
    [['stream', 'record', model, '--schedule', '4', '-o', at('never.jsonl')], isForEngines],
    [['stream', 'record', model, '--schedule', '4', '-o', at('never.jsonl')], isForEngines],
  ] as const;
  for (const [index, wish] of wishes.entries())
    for (const [words, why] of [commands[0], commands[index]!]) {
      const { status, answer } = await trtforge([...words, ...wish]);
      expect([status, answer.error?.message], [...words, ...wish].join(' ')).toEqual([
        2,
        expect.stringMatching(why),
      ]);
      expect(answer.error?.message).toContain(`${wish[0]} has no effect`);
    }
  for (const wish of wishes.slice(2, 4)) {
    const { answer } = await trtforge(['build', model, ...wish]);
    expect(answer.error).toMatchObject({ code: 'TF_USAGE', message: expect.stringContaining(wish[0]) });
  }
});

test('verify --against rejects an engine as the reference before anything is loaded', async () => {
  const { answer, loaded } = await trtforge(['verify', at('leave.engine'), '--against', at('affine.engine')]);
  expect([answer.error?.code, loaded]).toEqual(['TF_USAGE', []]);
  expect(answer.error?.message).toContain('affine.engine is an engine; the reference is an ONNX model.');
});

describe('forge', () => {
  const profiles = ['x:1x4/8x4/64x4'];
  const noStore = { store: false, remote: false } as const;
  const common = () => ({ model, profiles, ...noStore });
  const withPlan = (name: string) => {
    rmSync(at('calls'), { force: true });
    return { environment, build: copyingBuilder(at(name)) };
  };
  const forged = async (options: ForgeOptions, name: string) =>
    forgeResultSchema.parse(await forge(options, withPlan(name)));

  test('verifies and measures an engine with the plug-ins that it was built with', async () => {
    const options = { ...common(), plugins: [at('a.so')], runRoot: at('run-plugin') };
    const result = await forged(options, 'affine.engine');
    expect(result.error).toBeNull();
    expect(result.engineVerification?.outcome).toBe('pass');
    expect(result.bench?.subject.plugins).toEqual([at('a.so')]);
    expect(loadedLibraries()).toEqual([at('a.so')]);
  });

  test('verifies and measures with leave an engine that carries its own runtime', async () => {
    const options = { ...common(), runRoot: at('run-leave') };
    const refused = await forged(options, 'leave.engine');
    expect(refused.error).toMatchObject({ code: 'TF_PLAN_LOAD_FAILED' });
    expect(refused.error?.remedy).toContain('--allow-host-code');
    const result = await forged({ ...options, allowHostCode: true }, 'leave.engine');
    expect([result.error, result.engineVerification?.outcome]).toEqual([null, 'pass']);
    expect(result.bench).not.toBeNull();
  });

  test('rejects a budget for weights that will not be streamed before it builds', async () => {
    const options = { ...common(), weightBudget: 1024, runRoot: at('run-budget') };
    const { error } = await forged(options, 'affine.engine');
    expect(error).toMatchObject({ code: 'TF_OPTION_UNSUPPORTED', phase: 'resolve' });
  });

  test('of a bundle runs every engine with them too', async () => {
    writeFileSync(at('model_meta.json'), '{}');
    writeFileSync(
      at('profiles.yaml'),
      `components:\n  head:\n    onnx: ${model}\n    inputs:\n      x: 1x4/8x4/64x4\n`,
    );
    const options = {
      meta: at('model_meta.json'),
      onnxDir: '/',
      outdir: at('engines'),
      profilesFile: at('profiles.yaml'),
      plugins: [at('a.so')],
      ...noStore,
    };
    const report = await forgeBundle(options, withPlan('affine.engine'));
    expect(report.failure).toBeNull();
    expect(loadedLibraries()).toEqual([at('a.so')]);
    const [head] = report.components;
    expect(head?.smoke?.ran).toBe('engine');
  });
});
