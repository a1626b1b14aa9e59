import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../scripts/build-native.mjs';
import { sha256 } from '../../src/base/files/digest.js';
import { identityDigest } from '../../src/engines/identity/identity.js';
import { readPassport } from '../../src/engines/identity/passport.js';
import { defaultRecipe } from '../../src/engines/identity/recipe.js';
import { writeNpy } from '../../src/formats/tensor/npy.js';
import { tensorFrom } from '../../src/formats/tensor/tensor.js';
import { affineModel, fakeIdentity, manyLayers } from '../fakes/tensorrt/affine.js';
import { fakeEngine } from '../fakes/tensorrt/engine.js';
import { verbs } from '../support/runs.js';
import { samplePassport } from '../support/sample-engine.js';
import { trtforge } from '../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-engine-options-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
let environment: NodeJS.ProcessEnv = {};
let model: string;
const rows = { min: [1, 4], opt: [8, 4], max: [64, 4], values: false };
const identity = { ...fakeIdentity(), recipe: { ...defaultRecipe, profiles: [{ x: rows }] } };

/** A fake of TensorRT 10.3 on two of its GPUs, and an engine y = 2x + 1 that needs host code allowed and streams its weights. */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  environment = engine.environment({
    TENSORRT_HOME: at('none'),
    TRTFORGE_TOOLCHAINS: at('none'),
    XDG_CACHE_HOME: at('cache'),
    FAKE_CALLS: at('calls'),
    FAKE_GPUS: '2',
    FAKE_PLAN: at('affine.engine'),
    NO_COLOR: '1',
  });
  engine.install(at('home'));
  engine.bench.enter(environment);
  engine.writePlan(at('copy.engine'), { kind: 'copy', inner: 4, layers: manyLayers });
  writeFileSync(at('a.so'), 'a library of plug-ins');
  const path = engine.writePlan(at('affine.engine'), {
    kind: 'affine',
    inner: 4,
    layers: manyLayers,
    hostCode: true,
    streamable: 1 << 20,
  });
  writeFileSync(`${path}.passport.json`, JSON.stringify(samplePassport(readFileSync(path), identity)));
  copyFileSync(path, at('bare.engine'));
  copyFileSync(path, at('named.engine'));
  const passport = samplePassport(readFileSync(path), identity);
  const tensor = (name: string) => [{ name, dtype: 'float32', shape: [null, 4] }];
  const plan = { ...passport.plan, inputs: tensor('x'), outputs: tensor('y') };
  writeFileSync(at('named.engine.passport.json'), JSON.stringify({ ...passport, plan }));
  model = await affineModel();
  writeNpy(at('x4.npy'), tensorFrom('float32', [4, 4], new Float32Array(16).fill(3)));
});

async function run(line: readonly string[], more: NodeJS.ProcessEnv = {}) {
  rmSync(at('calls'), { force: true });
  const { exitCode, json } = await trtforge([...line, '--json'], { ...environment, ...more });
  const calls = existsSync(at('calls')) ? readFileSync(at('calls'), 'utf8').split('\n') : [];
  return { exitCode, answer: json(), calls };
}

const loading = () => [
  '--toolchain',
  at('home'),
  '--plugin',
  at('a.so'),
  '--weight-budget',
  '0',
  '--allow-host-code',
];
const QUICK = ['--warm-up', '1', '--duration', '0.05'];
const lines: Readonly<Record<string, () => readonly string[]>> = {
  run: () => ['run', at('affine.engine'), '--inputs', 'random', '--cuda-graph', 'never', '--device', '1'],
  verify: () => [
    'verify',
    at('affine.engine'),
    '--against',
    model,
    '--cuda-graph',
    'always',
    '--device',
    '1',
  ],
  bench: () => ['bench', at('affine.engine'), ...QUICK, '--device', '1', '--check', 'warn'],
  'bench compare': () => [
    'bench',
    'compare',
    at('affine.engine'),
    '--mode',
    'graph',
    '--rounds',
    '3',
    ...QUICK,
    '--device',
    '1',
  ],
  'engine inspect': () => ['engine', 'inspect', at('affine.engine'), '--memory', '--device', '1'],
  'engine layers': () => ['engine', 'layers', at('affine.engine'), '--device', '1'],
  'engine diff': () => ['engine', 'diff', at('affine.engine'), at('affine.engine'), '--device', '1'],
  explore: () => ['explore', at('affine.engine'), '--device', '1'],
  'stream record': () => [
    'stream',
    'record',
    at('bare.engine'),
    '--schedule',
    '4',
    '--chunks',
    '2',
    '-o',
    at('r.jsonl'),
    '--device',
    '1',
    '--cuda-graph',
    'never',
  ],
  'stream verify': () => [
    'stream',
    'verify',
    at('bare.engine'),
    '--reference',
    at('r.jsonl'),
    '--device',
    '1',
    '--cuda-graph',
    'never',
    '--check',
    'warn',
  ],
  'stream draft': () => [
    'stream',
    'draft',
    at('bare.engine'),
    '-o',
    at('contract.json'),
    '--schedule',
    '4',
    '--device',
    '1',
  ],
  'stream check': () => [
    'stream',
    'check',
    at('bare.engine'),
    '--contract',
    at('contract.json'),
    '--device',
    '1',
  ],
  'engine check': () => [
    'engine',
    'check',
    at('affine.engine'),
    '--record',
    '--against',
    model,
    '--repeat',
    '2',
    '--device',
    '1',
  ],
};

describe('an engine is loaded with the options passed', () => {
  test.each(verbs(Object.keys(lines), 2))('by %s', async (verb) => {
    const { exitCode, answer, calls } = await run([...lines[verb]!(), ...loading()]);
    expect([0, 1, 4], JSON.stringify(answer.error)).toContain(exitCode);
    expect(calls).toContain(`loadLibrary ${at('a.so')}`);
    expect(
      calls.filter((call) => /udget/.test(call)),
      calls.slice(0, 60).join('|'),
    ).not.toEqual([]);
    const without = await run([...lines[verb]!(), '--toolchain', at('home')]);
    const isJudged = verb === 'engine check';
    expect(without.answer.error?.code).toBe(isJudged ? undefined : 'TF_PLAN_LOAD_FAILED');
    expect(without.exitCode).toBe(isJudged ? 4 : 3);
  });
});

/** Verbs that take two engines, of which an identity would be one's. */
const OF_TWO = new Set(['engine inspect', 'engine diff', 'explore']);

describe('an engine of another identity is rejected', () => {
  test.each(Object.keys(lines).filter((verb) => !OF_TWO.has(verb)))('by %s', async (verb) => {
    const line = [...lines[verb]!(), ...loading()].map((word) =>
      word.replace('bare.engine', 'named.engine').replace('contract.json', 'named.json'),
    );
    const own = await run([...line, '--identity', identityDigest(identity)]);
    expect([0, 1, 4], JSON.stringify(own.answer.error)).toContain(own.exitCode);
    const other = await run([...line, '--identity', 'f'.repeat(64)]);
    expect([other.exitCode, other.answer.error?.code], JSON.stringify(other.answer)).toEqual([
      2,
      'TF_PASSPORT_INVALID',
    ]);
  });
});

test('engine check builds the engine again, and what is built now has to give the same', async () => {
  const line = [
    'engine',
    'check',
    at('affine.engine'),
    '--rebuild',
    '--against',
    model,
    '--toolchain',
    at('home'),
  ];
  const { exitCode, answer, calls } = await run([...line, '--allow-host-code']);
  expect(exitCode, JSON.stringify(answer)).toBe(0);
  const rebuilt = (outcome: string, bitwise: boolean) =>
    expect.arrayContaining([expect.objectContaining({ id: 'rebuild', outcome, bitwise })]);
  expect(answer.checks).toEqual(rebuilt('pass', true));
  expect(calls).toContain('buildSerializedNetwork INetworkDefinition IBuilderConfig');
  environment.FAKE_PLAN = at('copy.engine');
  const other = await run([...line, '--allow-host-code']);
  environment.FAKE_PLAN = at('affine.engine');
  expect(other).toMatchObject({ exitCode: 1, answer: { checks: rebuilt('fail', false) } });
});

test('bisect builds its candidates with the plug-ins passed', async () => {
  const [config, script] = [at('bisect.json'), at('fails.mjs')];
  writeFileSync(config, JSON.stringify({ plugin: at('a.so'), toolchain: at('home') }));
  writeFileSync(script, 'process.exit(1);');
  const { exitCode, answer, calls } = await run([
    ...['bisect', model, '--against', model, '--target', 'tensorrt', '--batch', '1/8/64'],
    ...['--check-command', `${process.execPath} ${script} {}`, '-o', at('bisected'), '--config', config],
  ]);
  expect(exitCode, JSON.stringify(answer)).toBe(4);
  expect(calls).toContain(`loadLibrary ${at('a.so')}`);
  const { recipe } = readPassport(at('bisected/candidate.engine')).identity.document;
  expect(recipe.pluginDigests).toEqual([sha256(readFileSync(at('a.so')))]);
});

describe('a measurement', () => {
  const pace = [
    '--warm-up',
    '2',
    '--duration',
    '0.05',
    '--iterations',
    '5',
    '--idle',
    '1',
    '--timeout',
    '100',
  ];
  const ways = [
    '--streams',
    '2',
    '--no-data-transfers',
    '--spin-wait',
    '--graph',
    '--percentile',
    '50',
    '--wait',
  ];
  const drawn = ['--seed', '3', '--val-range', 'x:[0,1]'];
  const paced = { warmUpMs: 2, durationMs: 50, iterations: 5, idleMs: 1 };
  const mode = { ...paced, streams: 2, kind: 'gpu-only', spinWait: true };
  const given = () => ['--shapes', 'x:4x4', '--inputs', `x=@${at('x4.npy')}`];
  const four = [{ name: 'x', shape: [4, 4] }];

  test('of an engine is made as requested', async () => {
    const line = ['bench', at('affine.engine'), '--allow-host-code', '--toolchain', at('home')];
    const more = ['--batch', '8', '--samples', at('samples.json'), '--layers'];
    const words = [...line, ...pace, ...ways, ...drawn, ...more];
    const { exitCode, answer } = await run(words);
    expect(exitCode, JSON.stringify(answer.error)).toBe(0);
    expect(answer).toMatchObject({ mode, runs: [{ batch: 8 }], gpuMs: { percentiles: { p50: 2 } } });
    expect(answer.runs).toMatchObject([{ samples: at('samples.json') }]);
    expect(answer.layers).not.toBeNull();
    expect(existsSync(at('samples.json'))).toBe(true);
    const again = await run([...line, ...pace, ...given()]);
    expect(again.answer).toMatchObject({
      mode: { streams: 1, kind: 'with-transfers' },
      runs: [{ shapes: four }],
    });
  });

  test('of two engines is made as requested', async () => {
    const pair = ['bench', 'compare', at('affine.engine'), at('affine.engine'), '--rounds', '3'];
    const line = [...pair, '--allow-host-code', '--toolchain', at('home')];
    const { exitCode, answer } = await run([...line, ...pace, ...ways, ...drawn, '--batch', '8']);
    expect([0, 4], JSON.stringify(answer.error)).toContain(exitCode);
    const { durationMs: _, ...rest } = mode;
    for (const side of ['candidate', 'reference']) expect(answer[side]).toMatchObject({ mode: rest });
    expect(answer.batch).toBe(8);
    const again = await run([...line, ...pace, ...given()]);
    expect(again.answer.candidate).toMatchObject({ mode: { streams: 1 } });
    expect(again.answer.batch).toBe(4);
  });

  test('of a model is made as requested', async () => {
    const line = ['bench', 'model', model, ...pace, '--percentile', '50'];
    const { exitCode, answer } = await run([
      ...line,
      ...drawn,
      '--batch',
      '2,4',
      '--samples',
      at('samples.npz'),
    ]);
    expect(exitCode, JSON.stringify(answer.error)).toBe(0);
    expect(answer).toMatchObject({ mode: paced, runs: [{ batch: 2 }, { batch: 4 }] });
    expect(answer.endToEndMs).toHaveProperty('percentiles.p50');
    for (const { samples } of answer.runs as readonly { readonly samples: string }[])
      expect(existsSync(samples)).toBe(true);
    expect((await run([...line, ...given()])).answer).toMatchObject({ runs: [{ shapes: four }] });
  });
});
