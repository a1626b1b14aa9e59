import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { graphDifferences, readNamedGraph } from '../../../src/engines/identity/model-graph.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { makeKeys } from '../../../src/engines/store/sign-engines.js';
import type { WorkEvent } from '../../../src/events.js';
import { attribute } from '../../../src/formats/onnx/builder.js';
import { floatTensor } from '../../../src/formats/tensor/tensor.js';
import { openEngineSession } from '../../../src/index.js';
import { buildOrLoad, refitEngine } from '../../../src/quality/known-answer/build-or-load.js';
import { floats, ids, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { affineModel, manyLayers } from '../../fakes/tensorrt/affine.js';
import { type FakeEngine, fakeEngine } from '../../fakes/tensorrt/engine.js';
import { trtforge as runLine } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-refit-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const batch = ['--batch', '1/8/64', '--no-cache'];
let environment: NodeJS.ProcessEnv = {};
let engines: FakeEngine;
let model: string;
let retrained: string;

beforeAll(async () => {
  await buildAddon({ say: () => {} });
  engines = await fakeEngine('10');
  engines.writePlan(at('affine.plan'), {
    kind: 'affine',
    inner: 4,
    layers: manyLayers,
    weights: { two: 2, one: 1 },
  });
  environment = engines.environment({
    TENSORRT_HOME: engines.install(at('home')),
    TRTFORGE_TOOLCHAINS: at('none'),
    XDG_CACHE_HOME: at('cache'),
    FAKE_PLAN: at('affine.plan'),
    FAKE_CALLS: at('calls'),
    NO_COLOR: '1',
  });
  engines.bench.enter(environment);
  process.chdir(folder);
  model = await affineModel();
  retrained = await affineModel({ two: 3, one: 4 });
  const built = await trtforge(['build', model, ...batch, '--refit', '-o', 'skeleton.engine']);
  expect(built.exitCode).toBe(0);
}, 300_000);
beforeEach(() => rmSync(at('calls'), { force: true }));

async function trtforge(args: readonly string[], wishes: NodeJS.ProcessEnv = {}) {
  const { exitCode, json, out } = await runLine([...args, '--json'], { ...environment, ...wishes });
  return { exitCode, answer: json(), out };
}

const calls = () => (existsSync(at('calls')) ? readFileSync(at('calls'), 'utf8').trim().split('\n') : []);

/** What a refusal leaves: no engine, nothing begun, and the engine as it was. */
async function refused(args: readonly string[], wishes: NodeJS.ProcessEnv = {}) {
  const before = readFileSync('skeleton.engine');
  const names = readdirSync(folder).filter((name) => name !== 'calls');
  const { exitCode, answer } = await trtforge(['engine', 'refit', ...args, '-o', 'refused.engine'], wishes);
  expect(readdirSync(folder).filter((name) => name !== 'calls')).toEqual(names);
  expect(readFileSync('skeleton.engine').equals(before)).toBe(true);
  return { exitCode, ...answer.error };
}

/** Types the line of a remedy, which builds the engine of a model. */
async function typed(remedy: string | undefined, of: string) {
  const [, line = ''] = /(trtforge build .*)$/.exec(remedy ?? '') ?? [];
  expect(line).toContain(of);
  const words = line.split(' ').slice(1);
  rmSync('typed-line.engine', { force: true });
  const { exitCode } = await trtforge([...words, '--no-cache', '-o', 'typed-line.engine']);
  expect([line, exitCode]).toEqual([line, 0]);
  expect(readPassport('typed-line.engine').identity.document.recipe.flags).toContain('refit');
  rmSync(at('calls'), { force: true });
}

describe('build --refit', () => {
  it('is the builder flag of the recipe; other identities stay as they are', async () => {
    const identityOf = async (...options: readonly string[]) =>
      (await trtforge(['build', model, ...batch, ...options, '-o', 'other.engine'])).answer.identity;
    const { digest, document } = readPassport('skeleton.engine').identity;
    expect(document.recipe.flags).toEqual(['refit']);
    expect(await identityOf('--builder-config', 'flags=refit')).toBe(digest);
    expect(await identityOf()).not.toBe(digest);
    expect(readPassport('other.engine').plan.graph).toBeUndefined();
    expect(calls()).toContain('setFlag 4');
    expect(readPassport('skeleton.engine').plan.graph).toMatchObject({
      operators: { Add: 1, Mul: 1 },
      weights: { one: { type: 'float32[]' }, two: { type: 'float32[]' } },
      folded: [],
    });
  });
});

describe('an engine without its weights', () => {
  it('is held to no answer before it has them', async () => {
    // The fake engine computes what the other model does.
    const line = ['build', retrained, ...batch, '--refit', '--known-answer'];
    const wrong = await trtforge([...line, '-o', 'wrong.engine']);
    expect([wrong.exitCode, typeof wrong.answer.wrongAnswer]).toEqual([1, 'string']);
    const strip = ['--builder-config', 'flags=strip-plan'];
    const built = await trtforge([...line, ...strip, '-o', 'stripped.engine']);
    expect([built.exitCode, built.answer.wrongAnswer, typeof built.answer.unanswered]).toEqual([
      ...[0, null, 'string'],
    ]);
    const whole = await trtforge(['engine', 'refit', 'stripped.engine', retrained, '-o', 'whole.engine']);
    expect([whole.exitCode, whole.answer.error]).toEqual([0, undefined]);
    expect(readPassport('whole.engine').knownAnswer).toBeDefined();
  });
});

describe('engine refit', () => {
  it('puts the weights of another model into the engine, which then gives its answers', async () => {
    const { exitCode, answer } = await trtforge([
      'engine',
      'refit',
      'skeleton.engine',
      retrained,
      '-o',
      'new.engine',
    ]);
    const [before, after] = [readPassport('skeleton.engine'), readPassport('new.engine')];
    expect(answer).toMatchObject({ refittedFrom: before.identity.digest, unanswered: null });
    expect(exitCode).toBe(0);
    expect(calls()).toContain('refitCudaEngine');
    expect(calls().some((line) => line.startsWith('createInferBuilder'))).toBe(false);
    const { recipe, target } = before.identity.document;
    expect(after.identity.document).toMatchObject({ recipe, target });
    expect(after.identity.document.model).not.toBe(before.identity.document.model);
    expect(after.built.refitted).toEqual({ identity: before.identity.digest, sha256: before.plan.sha256 });
    expect(after.plan).toMatchObject({ inputs: before.plan.inputs, outputs: before.plan.outputs });
    expect(after.plan.graph?.digest).toBe(before.plan.graph?.digest);
    expect(await trtforge(['engine', 'check', 'new.engine'])).toMatchObject({ exitCode: 0 });
    const verify = (against: string) =>
      trtforge(['verify', 'new.engine', '--against', against, '--shapes', 'x:2x4', '--samples', '2']);
    expect(await verify(retrained)).toMatchObject({ exitCode: 0, answer: { outcome: 'pass' } });
    expect(await verify(model)).toMatchObject({ exitCode: 1 });
  });

  it('prints the engine, and whose weights were replaced', async () => {
    const line = ['engine', 'refit', 'skeleton.engine', retrained, '-o', 'printed.engine'];
    const { exitCode, out } = await runLine(line, environment);
    expect(exitCode).toBe(0);
    expect(out).toContain(readPassport('skeleton.engine').identity.digest);
    expect(out).toContain('engine check printed.engine');
    const { built, identity } = readPassport('printed.engine');
    const inspected = await runLine(['engine', 'inspect', 'printed.engine'], environment);
    expect(inspected.out).toMatch(new RegExp(`Refitted +engine +${built.refitted?.identity}`));
    expect(inspected.out).toContain(identity.document.model);
    expect((await runLine(['engine', 'inspect', 'skeleton.engine'], environment)).out).not.toContain(
      'Refitted',
    );
  });

  it('reports its phase by its own name', async () => {
    const line = ['engine', 'refit', 'skeleton.engine', retrained, '-o', 'phases.engine', '--events'];
    const { err } = await runLine(line, environment);
    expect(err).toMatch(/"phase-end","phase":"refit"/);
    expect(err).not.toMatch(/"phase":"build"/);
  });

  it('refits again what was refitted', async () => {
    const line = ['engine', 'refit', 'new.engine', model, '-o', 'again.engine'];
    expect(await trtforge(line)).toMatchObject({ exitCode: 0 });
    expect(readPassport('again.engine').identity.digest).toBe(
      readPassport('skeleton.engine').identity.digest,
    );
    expect(readFileSync('again.engine', 'utf8')).toContain('weight two 2');
  });

  it('converts the model as that of the engine was', async () => {
    const line = ['build', model, ...batch, '--refit', '--precision', 'fp16', '-o', 'half.engine'];
    expect(await trtforge(line)).toMatchObject({ exitCode: 0 });
    const { answer, exitCode } = await trtforge([
      'engine',
      'refit',
      'half.engine',
      retrained,
      '-o',
      'half-new.engine',
    ]);
    expect(answer).toMatchObject({ precision: 'fp16' });
    expect(exitCode).toBe(0);
    expect(readPassport('half-new.engine').plan.graph?.weights.two?.type).toBe('float16[]');
    expect(readFileSync('half-new.engine', 'utf8')).toContain('weight two 3');
  });

  it('rejects an engine that was built without it, and one without passport', async () => {
    await trtforge(['build', model, ...batch, '-o', 'plain.engine']);
    const plain = await refused(['plain.engine', retrained]);
    expect(plain).toMatchObject({ code: 'TF_ENGINE_NOT_REFITTABLE', exitCode: 2 });
    await typed(plain.remedy, retrained);
    expect(await refused(['affine.plan', retrained])).toMatchObject({
      code: 'TF_PASSPORT_MISSING',
      exitCode: 2,
    });
    expect(calls()).not.toContain('create IRefitter');
  });

  it.each([
    ['lacks a weight', { two: 2 }, ['Mul'], [/lacks the weights one/, /0 Add for 1/]],
    ['has more', { two: 2, one: 1, more: 5 }, ['Mul', 'Add', 'Sub'], [/more weights: more/, /1 Sub for 0/]],
    ['has another operator', { two: 2, one: 1 }, ['Mul', 'Sub'], [/1 Sub for 0/]],
  ] as const)(
    'names what differs of a model that %s, before the GPU is asked',
    async (_, weights, ops, lines) => {
      const other = await modelFile((graph) => {
        graph.input('x', 'float32', ['n', 4]);
        for (const [name, value] of Object.entries(weights))
          graph.initializer(name, floats('float32', [], [value]));
        ops.forEach((op, index) => {
          const [from, to] = [
            index === 0 ? 'x' : 'm'.repeat(index),
            index === ops.length - 1 ? 'y' : 'm'.repeat(index + 1),
          ];
          graph.node(op, { inputs: [from, Object.keys(weights)[index]!], outputs: [to] });
        });
        graph.output('y', 'float32', ['n', 4]);
      });
      const { code, exitCode, message, remedy } = await refused(['skeleton.engine', other]);
      expect(code).toBe('TF_REFIT_MODEL_MISMATCH');
      expect(exitCode).toBe(2);
      for (const line of lines) expect(message).toMatch(line);
      expect(calls()).toEqual([]);
      await typed(remedy, other);
    },
  );

  it('prints a line with the precision of the engine, and with profiles for other inputs', async () => {
    const half = ['build', model, ...batch, '--refit', '--precision', 'fp16', '--keep-ops', 'Add'];
    await trtforge([...half, '-o', 'typed.engine']);
    const other = await modelFile((graph) => {
      graph.input('z', 'float32', ['n', 4]);
      graph.initializer('two', floats('float32', [], [2]));
      graph.node('Mul', { inputs: ['z', 'two'], outputs: ['y'] });
      graph.output('y', 'float32', ['n', 4]);
    });
    const { code, remedy } = await refused(['typed.engine', other]);
    expect(code).toBe('TF_REFIT_MODEL_MISMATCH');
    expect(remedy).toMatch(/--precision fp16 --keep-ops Add .*--profile z:1x4/);
    // The fake's plan has its own inputs.
    const words = remedy?.split(' ').slice(4) ?? [];
    expect(await trtforge([...words, '--dry-run'])).toMatchObject({ exitCode: 0 });
  });

  it('counts no initializer that nothing uses, and names the first node or constant that differs', async () => {
    const build = async (more: number, slope: number, axis: number) =>
      modelFile((graph) => {
        graph.input('x', 'float32', ['n', 4]);
        graph.initializer('two', floats('float32', [], [2]));
        graph.initializer('unused', floats('float32', [], [more]));
        graph.initializer('axis', ids([1], [axis]));
        graph.node('Mul', { inputs: ['x', 'two'], outputs: ['m'] });
        graph.node('Unsqueeze', { inputs: ['m', 'axis'], outputs: ['u'] });
        graph.node('LeakyRelu', {
          name: 'bend',
          inputs: ['u'],
          outputs: ['y'],
          attributes: { alpha: attribute.float(slope) },
        });
        graph.output('y', 'float32', [null, null, null]);
      });
    const read = async (...of: Parameters<typeof build>) => readNamedGraph(await build(...of));
    const { graph } = await read(1, 0.5, 1);
    expect(graphDifferences(graph, await read(9, 0.5, 1))).toEqual([]);
    expect(graphDifferences(graph, await read(1, 0.25, 1))).toEqual([
      expect.stringContaining('LeakyRelu "bend"'),
    ]);
    expect(graphDifferences(graph, await read(1, 0.5, 2))).toEqual([expect.stringContaining('axis')]);
  });

  it('names weights of another shape', async () => {
    const wide = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 4]);
      graph.initializer('two', floats('float32', [4], [2, 2, 2, 2]));
      graph.initializer('one', floats('float32', [], [1]));
      graph.node('Mul', { inputs: ['x', 'two'], outputs: ['m'] });
      graph.node('Add', { inputs: ['m', 'one'], outputs: ['y'] });
      graph.output('y', 'float32', ['n', 4]);
    });
    expect(await refused(['skeleton.engine', wide])).toMatchObject({
      code: 'TF_REFIT_MODEL_MISMATCH',
      message: expect.stringContaining('two is float32[4], not float32[]'),
    });
  });

  it('rejects changed values that the engine keeps as its own', async () => {
    engines.writePlan(at('fixed.plan'), {
      kind: 'affine',
      inner: 4,
      layers: manyLayers,
      weights: { two: 2 },
    });
    const wishes = { FAKE_PLAN: at('fixed.plan') };
    await trtforge(['build', model, ...batch, '--refit', '-o', 'fixed.engine'], wishes);
    expect(await refused(['fixed.engine', retrained])).toMatchObject({
      code: 'TF_REFIT_MODEL_MISMATCH',
      message: expect.stringMatching(/keeps its own: one/),
    });
    const twice = await affineModel({ two: 5, one: 1 });
    const line = ['engine', 'refit', 'fixed.engine', twice, '-o', 'fixed-new.engine'];
    expect(await trtforge(line)).toMatchObject({ exitCode: 0 });
  });

  it.each([
    ['fails', /does not take the weights/],
    ['missing', /needs weights .*unnamed/],
    ['half', /does not give its known answer/],
  ])('leaves nothing where the library %s', async (wish, text) => {
    const failed = await refused(['skeleton.engine', retrained], { FAKE_REFIT: wish });
    const { code, exitCode, message } = failed;
    expect(code).toBe('TF_REFIT_FAILED');
    await typed(failed.remedy, retrained);
    expect(exitCode).toBe(2);
    expect(message).toMatch(text);
  });

  it('passes on what the parser reports', async () => {
    const { code, message } = await refused(['skeleton.engine', retrained], { FAKE_MODEL: 'refused' });
    expect(code).toBe('TF_REFIT_FAILED');
    expect(message).toMatch(/Frobnicate/);
  });

  it('takes the plug-ins of the engine, and no others', async () => {
    writeFileSync('plugin.so', 'a library');
    const line = ['build', model, ...batch, '--refit', '--plugin', 'plugin.so', '-o', 'plugged.engine'];
    expect(await trtforge(line)).toMatchObject({ exitCode: 0 });
    expect(await refused(['plugged.engine', retrained])).toMatchObject({
      code: 'TF_REFIT_MODEL_MISMATCH',
      message: expect.stringContaining('recipe.pluginDigests'),
    });
    const { identity } = readPassport('plugged.engine');
    const options = ['--plugin', 'plugin.so', '--device', '0', '--toolchain', at('home/lib')];
    const refit = (id: string, output: string) =>
      trtforge(['engine', 'refit', 'plugged.engine', retrained, '-o', output, '--identity', id, ...options]);
    expect(await refit(identity.digest, 'plugged-new.engine')).toMatchObject({ exitCode: 0 });
    expect(calls().some((line) => /^loadLibrary .*plugin\.so$/.test(line))).toBe(true);
    expect(await refit('0'.repeat(64), 'never.engine')).toMatchObject({
      answer: { error: { code: 'TF_PASSPORT_INVALID' } },
    });
  });

  it('signs only what is made of a signed engine', async () => {
    const { privateKey } = makeKeys(at('team.pem'));
    const signs = { TRTFORGE_SIGNING_KEY: privateKey };
    expect(await refused(['skeleton.engine', retrained], signs)).toMatchObject({
      code: 'TF_SIGNATURE_INVALID',
    });
    const line = ['build', model, ...batch, '--refit', '-o', 'signed.engine'];
    expect(await trtforge(line, signs)).toMatchObject({ exitCode: 0 });
    const refit = ['engine', 'refit', 'signed.engine', retrained, '-o', 'signed-new.engine'];
    expect(await trtforge(refit, signs)).toMatchObject({ exitCode: 0 });
    // The same by options.
    const trusted = ['--require-signature', '--trust-key', at('team.pem.pub'), '--sign-key', privateKey];
    const chosen = ['engine', 'refit', 'signed.engine', retrained, '-o', 'chosen.engine', ...trusted];
    expect(await trtforge(chosen)).toMatchObject({ exitCode: 0 });
    expect(await refused(['skeleton.engine', retrained, ...trusted])).toMatchObject({
      code: 'TF_SIGNATURE_INVALID',
    });
    const required = { ...signs, TRTFORGE_REQUIRE_SIGNATURE: '1' };
    expect(await trtforge(['engine', 'check', 'signed-new.engine'], required)).toMatchObject({ exitCode: 0 });
  });

  it('runs the code that an engine carries only with permission', async () => {
    const weights = { two: 2, one: 1 };
    const plan = { kind: 'affine', inner: 4, layers: manyLayers, weights, hostCode: true } as const;
    const wishes = { FAKE_PLAN: engines.writePlan(at('carries.plan'), plan) };
    const flags = ['--builder-config', 'flags=version-compatible'];
    const line = ['build', model, ...batch, '--refit', '--known-answer', ...flags, '-o', 'carries.engine'];
    // What a build makes itself runs to prove itself.
    expect(await trtforge(line, wishes)).toMatchObject({ exitCode: 0, answer: { unanswered: null } });
    expect(readPassport('carries.engine').knownAnswer?.builtOn).not.toBeNull();
    rmSync(at('calls'), { force: true });
    expect(await refused(['carries.engine', retrained], wishes)).toMatchObject({
      code: 'TF_ENGINE_VERSION_MISMATCH',
      exitCode: 3,
      remedy: expect.stringContaining('--allow-host-code'),
    });
    expect(calls()).toEqual([]);
    const refit = ['engine', 'refit', 'carries.engine', retrained, '-o', 'carries-new.engine'];
    // It runs, and is not written: that needs the lean runtime.
    expect(await trtforge([...refit, '--allow-host-code'], wishes)).toMatchObject({
      answer: {
        error: { code: 'TF_REFIT_FAILED', remedy: expect.stringContaining('libnvinfer_lean.so.10') },
      },
    });
    expect(calls()).toContain('refitCudaEngine');
    // One without its runtime carries no code, and is written without it again.
    const light = ['--builder-config', 'flags=version-compatible,exclude-lean-runtime'];
    await trtforge(['build', model, ...batch, '--refit', ...light, '-o', 'light.engine']);
    const lightly = ['engine', 'refit', 'light.engine', retrained, '-o', 'light-new.engine'];
    expect(await trtforge(lightly)).toMatchObject({ exitCode: 0 });
    expect(await trtforge([...lightly, '--allow-host-code'])).toMatchObject({ exitCode: 0 });
    // A passport that does not state the code does not help it.
    engines.writePlan('skeleton-with-code.plan', plan);
    const hidden = { FAKE_PLAN: at('skeleton-with-code.plan') };
    await trtforge(['build', model, ...batch, '--refit', '-o', 'hidden.engine'], hidden);
    expect(await refused(['hidden.engine', retrained], hidden)).toMatchObject({
      code: 'TF_PLAN_LOAD_FAILED',
      remedy: expect.stringContaining('--allow-host-code'),
    });
  });

  it('names the TensorRT that it lacks, and how to get it', async () => {
    const { code, exitCode, message, remedy } = await refused(['skeleton.engine', retrained], {
      TENSORRT_HOME: at('none'),
    });
    expect([code, exitCode]).toEqual(['TF_TOOLCHAIN_NOT_FOUND', 3]);
    expect(message).toMatch(/refitted with the tensorrt 10\.3\.\S+ that built it/);
    expect(`${message} ${remedy}`).not.toMatch(/store|--remote/);
  });

  it('is cancelled without a trace', async () => {
    const signal = AbortSignal.abort();
    const request = { engine: 'skeleton.engine', model: retrained, output: 'never.engine' };
    await expect(refitEngine(request, { environment, signal })).rejects.toMatchObject({
      code: 'TF_CANCELLED',
    });
    expect(existsSync('never.engine')).toBe(false);
  });
});

describe('session.refit', () => {
  const x = () => floatTensor('float32', [1, 4], Float32Array.of(0, 1, 2, 3));
  const valuesOf = (bytes: Uint8Array) => [...new Float32Array(bytes.slice().buffer)];
  const [old, fresh] = [
    [1, 3, 5, 7],
    [4, 7, 10, 13],
  ];

  it.each(['never', 'auto', 'always'] as const)(
    'gives the new answers in runs and prepared calls, CUDA graph %s',
    async (cudaGraph) => {
      await using session = await openEngineSession('skeleton.engine', { environment, cudaGraph });
      await using context = session.context();
      const call = await session.prepare({ x: [1, 4] });
      const run = async () => valuesOf((await session.run({ x: x() })).get('y')!.bytes);
      const elsewhere = async () => valuesOf((await context.run({ x: x() })).get('y')!.bytes);
      const prepared = () => {
        (call.inputs.x as Float32Array).set([0, 1, 2, 3]);
        call.runSync();
        return [...(call.outputs.y as Float32Array)];
      };
      for (let time = 0; time < 4; time++) {
        expect([await run(), await elsewhere(), prepared()]).toEqual([old, old, old]);
      }
      await session.refit(retrained);
      for (let time = 0; time < 4; time++) {
        expect([await run(), await elsewhere(), prepared()]).toEqual([fresh, fresh, fresh]);
      }
      expect(call.cudaGraph).toBe(cudaGraph !== 'never');
      await session.refit(model);
      expect([await run(), await elsewhere(), prepared()]).toEqual([old, old, old]);
    },
  );

  it('needs the path of a model', async () => {
    await using session = await openEngineSession('skeleton.engine', { environment });
    const refit = session.refit.bind(session) as (model?: string) => Promise<void>;
    await expect(refit()).rejects.toMatchObject({ code: 'TF_USAGE' });
  });

  it('is not done while a run is under way, nor runs meanwhile', async () => {
    await using session = await openEngineSession('skeleton.engine', { environment });
    const running = session.run({ x: x() });
    await expect(session.refit(retrained)).rejects.toMatchObject({ code: 'TF_SESSION_BUSY' });
    expect(valuesOf((await running).get('y')!.bytes)).toEqual(old);
    await session.refit(retrained);
    expect(valuesOf((await session.run({ x: x() })).get('y')!.bytes)).toEqual(fresh);
  });

  it('leaves a session as it was where the model is another', async () => {
    await using session = await openEngineSession('skeleton.engine', { environment });
    const other = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 4]);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', ['n', 4]);
    });
    await expect(session.refit(other)).rejects.toMatchObject({ code: 'TF_REFIT_MODEL_MISMATCH' });
    expect(valuesOf((await session.run({ x: x() })).get('y')!.bytes)).toEqual(old);
  });

  it('runs nothing between a refit that failed half-way and one that succeeds', async () => {
    await using session = await openEngineSession('skeleton.engine', { environment });
    await session.run({ x: x() });
    process.env.FAKE_REFIT = 'fails';
    try {
      await expect(session.refit(retrained)).rejects.toMatchObject({
        code: 'TF_REFIT_FAILED',
        remedy: expect.stringContaining(retrained),
      });
    } finally {
      delete process.env.FAKE_REFIT;
    }
    await expect(session.run({ x: x() })).rejects.toMatchObject({ code: 'TF_REFIT_FAILED' });
    await session.refit(retrained);
    expect(valuesOf((await session.run({ x: x() })).get('y')!.bytes)).toEqual(fresh);
  });
});

describe('build --refit with a store', () => {
  const build = (of: string, wishes: NodeJS.ProcessEnv = {}, ...more: readonly string[]) => {
    rmSync(at('calls'), { force: true });
    const store = ['--cache-dir', at('store'), '--batch', '1/8/64', '--refit'];
    return trtforge(['build', of, ...store, ...more], wishes);
  };
  const isBuilt = () => calls().some((line) => line.startsWith('createInferBuilder'));

  it('refits an engine of the same graph that is there in place of a build', async () => {
    const { answer: skeleton } = await build(model);
    expect(skeleton).toMatchObject({ source: 'built', refittedFrom: null });
    expect(isBuilt()).toBe(true);
    // What is planned is what is done.
    const planned = async (of: string, ...more: readonly string[]) =>
      (await build(of, {}, '--dry-run', ...more)).answer as unknown as { readonly steps: readonly unknown[] };
    const refits = [
      expect.objectContaining({ does: 'refit', what: skeleton.engine }),
      expect.objectContaining({ does: 'keep' }),
    ];
    expect((await planned(retrained)).steps).toEqual(refits);
    expect((await planned(retrained, '--force-rebuild')).steps[0]).toMatchObject({ does: 'build' });
    const relu = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 4]);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', ['n', 4]);
    });
    expect((await planned(relu)).steps[0]).toMatchObject({ does: 'build' });
    const why = ['cache', 'why', retrained, '--cache-dir', at('store'), '--batch', '1/8/64', '--refit'];
    expect((await trtforge(why)).answer.refits).toEqual({
      engine: skeleton.engine,
      identity: skeleton.identity,
      isCompared: true,
    });
    expect((await runLine(why, environment)).out).toContain(`would be refitted  ${skeleton.engine}`);
    const { answer } = await build(retrained);
    expect(answer).toMatchObject({ source: 'built', refittedFrom: skeleton.identity, unanswered: null });
    expect(isBuilt()).toBe(false);
    expect(await trtforge(['engine', 'check', answer.engine as string])).toMatchObject({ exitCode: 0 });
    expect((await build(retrained)).answer).toMatchObject({ source: 'local', identity: answer.identity });
  });

  it('builds with --force-rebuild, another recipe or another graph', async () => {
    const third = await affineModel({ two: 7, one: 1 });
    expect((await build(third, {}, '--force-rebuild')).answer).toMatchObject({ refittedFrom: null });
    const other = await affineModel({ two: 8, one: 1 });
    const level = ['--builder-config', 'optimization-level=1'];
    expect((await build(other, {}, ...level)).answer).toMatchObject({ refittedFrom: null });
    const relu = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 4]);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', ['n', 4]);
    });
    expect((await build(relu)).answer).toMatchObject({ refittedFrom: null, warnings: [] });
  });

  it('refits no engine of a store that carries code, and runs none for its answer', async () => {
    const weights = { two: 2, one: 1 };
    const plan = { kind: 'affine', inner: 4, layers: manyLayers, weights, hostCode: true } as const;
    const wishes = { FAKE_PLAN: engines.writePlan(at('stored.plan'), plan) };
    const more = ['--builder-config', 'flags=version-compatible'];
    const skeleton = await affineModel({ two: 21, one: 1 });
    await buildOrLoad(
      {
        model: skeleton,
        store: at('store'),
        batch: '1/8/64',
        refit: true,
        settings: { flags: ['version-compatible'] },
        knownAnswer: false,
      },
      { environment: { ...environment, ...wishes } },
    );
    const found = await build(skeleton, wishes, ...more, '--known-answer');
    expect(found).toMatchObject({
      exitCode: 0,
      answer: { source: 'local', wrongAnswer: null, unanswered: expect.stringContaining('--force-rebuild') },
    });
    const { answer } = await build(await affineModel({ two: 2, one: 9 }), wishes, ...more);
    expect(answer).toMatchObject({ source: 'built', refittedFrom: null });
  });

  it('fails where an engine does not give its known answer, found or built, and keeps none that it built', async () => {
    const wrong = await affineModel({ two: 31, one: 1 });
    const request = { model: wrong, store: at('store'), batch: '1/8/64', refit: true };
    const work = { environment };
    const { engine: stored } = await buildOrLoad(
      { ...request, knownAnswer: false, forceRebuild: true },
      work,
    );
    const found = async () => build(wrong, {}, '--known-answer');
    for (const { exitCode, answer } of [await found(), await found()]) {
      expect(exitCode).toBe(1);
      expect(answer).toMatchObject({
        ok: false,
        source: 'local',
        wrongAnswer: expect.stringMatching(/^y is wrong/),
        warnings: [expect.stringContaining('--force-rebuild')],
      });
    }
    rmSync(stored);
    const events: WorkEvent[] = [];
    const emit = (event: WorkEvent) => events.push(event);
    await expect(
      buildOrLoad({ ...request, knownAnswer: true, forceRebuild: true }, { ...work, emit }),
    ).rejects.toMatchObject({
      code: 'TF_ENGINE_WRONG_ANSWER',
      exitCode: 1,
      remedy: expect.stringContaining('trtforge bisect'),
    });
    expect(events).toContainEqual(expect.objectContaining({ type: 'phase-failed', phase: 'known answer' }));
    expect(existsSync(stored)).toBe(false);
    const written = await build(wrong, {}, '--known-answer', '--force-rebuild', '-o', 'wrong.engine');
    expect(written).toMatchObject({
      exitCode: 1,
      answer: {
        source: 'built',
        wrongAnswer: expect.any(String),
        warnings: [expect.stringContaining('bisect')],
      },
    });
    expect(existsSync(stored)).toBe(false);
    expect((await trtforge(['engine', 'check', 'wrong.engine'])).exitCode).toBe(1);
  });

  it.each(['fails', 'half'])('builds, with a warning, where a refit %s', async (wish) => {
    const fresh = await affineModel({ two: wish === 'half' ? 11 : 12, one: 1 });
    const { answer, exitCode } = await build(fresh, { FAKE_REFIT: wish });
    expect(exitCode).toBe(0);
    expect(answer.refittedFrom).toBeNull();
    expect(isBuilt()).toBe(true);
    expect((answer.warnings as readonly string[]).join(' ')).toMatch(
      wish === 'half' ? /known answer/ : /refitted/,
    );
  });
});

describe('a build that could not be refitted', () => {
  it.each([
    ['int8', ['--precision', 'int8', '--calibration', 'nowhere/']],
    ['int4', ['--precision', 'int4']],
  ])('is refused before any work: %s', async (_, options) => {
    for (const verb of ['build', 'build --dry-run', 'cache why', 'forge'] as const) {
      const words = [...verb.split(' '), model, '--refit', ...options, '--batch', '1/8/64'];
      const { exitCode, answer } = await trtforge(words);
      expect(exitCode).toBe(2);
      expect(answer.error).toMatchObject({
        code: 'TF_ENGINE_NOT_REFITTABLE',
        remedy: expect.stringContaining('--refit'),
      });
    }
    expect(calls()).toEqual([]);
  });
});

describe('TensorRT 8.6', () => {
  it('builds such engines, and its parser refits none', async () => {
    const old = await fakeEngine('8');
    old.writePlan(at('old.plan'), { kind: 'affine', inner: 4, layers: manyLayers });
    const wishes = { TENSORRT_HOME: old.install(at('old')), FAKE_PLAN: at('old.plan') };
    const options = [...batch, '--weakly-typed', '-o', 'old.engine'];
    expect((await trtforge(['build', model, ...options, '--refit'], wishes)).answer.error).toMatchObject({
      code: 'TF_OPTION_UNSUPPORTED',
      remedy: expect.stringContaining('--refit'),
    });
    const line = ['build', model, ...options, '--builder-config', 'flags=refit'];
    expect(await trtforge(line, wishes)).toMatchObject({ exitCode: 0 });
    expect(await refused(['old.engine', retrained], wishes)).toMatchObject({
      code: 'TF_OPTION_UNSUPPORTED',
      message: expect.stringMatching(/8\.6\.1 .*TensorRT 10/),
    });
  });
});
