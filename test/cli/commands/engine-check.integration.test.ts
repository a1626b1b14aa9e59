import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { passportPath } from '../../../src/engines/identity/engine-name.js';
import { type IdentityDocument, identityDigest } from '../../../src/engines/identity/identity.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { LocalStore } from '../../../src/engines/store/local.js';
import { makeKeys } from '../../../src/engines/store/sign-engines.js';
import { readPrivateKey, signDocument } from '../../../src/engines/store/trust.js';
import { openEngineSession } from '../../../src/index.js';
import type { DoctorResult } from '../../../src/quality/doctor/doctor.js';
import type { AnswerCase } from '../../../src/quality/known-answer/answer.js';
import { measured } from '../../../src/quality/known-answer/build-or-load.js';
import type { MadeInput } from '../../../src/quality/known-answer/made-inputs.js';
import { recordAnswer } from '../../../src/quality/known-answer/record.js';
import { affineModel, fakeIdentity, manyLayers } from '../../fakes/tensorrt/affine.js';
import { type FakeEngine, fakeEngine } from '../../fakes/tensorrt/engine.js';
import { samplePassport } from '../../support/sample-engine.js';
import { codeOfLine, trtforge as runLine } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-engine-check-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const profiles = [{ x: { min: [1, 4], opt: [8, 4], max: [64, 4], values: false } }];
let environment: NodeJS.ProcessEnv = {};
let model: string;
let engines: FakeEngine;

/** y = 2x + 1 as a plan with its known answer, and the same passport over a plan that gives x: a library that is wrong on this GPU. */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  engines = await fakeEngine('10');
  environment = engines.environment({
    TENSORRT_HOME: engines.install(at('home')),
    TRTFORGE_TOOLCHAINS: at('none'),
    XDG_CACHE_HOME: at('cache'),
    NO_COLOR: '1',
  });
  engines.bench.enter(environment);
  process.chdir(folder);
  model = await affineModel();
  const knownAnswer = await recordAnswer({ reference: model, precision: 'tf32', profiles });
  for (const kind of ['affine', 'copy'] as const) {
    engines.writePlan(at(`${kind}.engine`), { kind, inner: 4, layers: manyLayers });
    const passport = { ...samplePassport(readFileSync(at(`${kind}.engine`)), fakeIdentity()), knownAnswer };
    writeFileSync(passportPath(at(`${kind}.engine`)), JSON.stringify(passport));
  }
}, 300_000);

async function trtforge(args: readonly string[]) {
  const { exitCode, json, out } = await runLine([...args, '--json'], environment);
  return { exitCode, answer: json(), out };
}

describe('engine check', () => {
  it('lets an engine prove itself, and remembers it for this GPU, driver and library', async () => {
    const { exitCode, answer } = await trtforge(['engine', 'check', 'affine.engine']);
    expect(answer).toMatchObject({
      schema: 'trtforge.engine-check/1',
      outcome: 'pass',
      answer: 'passport',
      recorded: null,
      gpu: { uuid: expect.any(String) },
    });
    expect(exitCode).toBe(0);
  });

  it('fails for another answer, with the line that searches the cause', async () => {
    const { exitCode, answer } = await trtforge(['engine', 'check', 'copy.engine']);
    expect(answer).toMatchObject({
      outcome: 'fail',
      next: expect.stringContaining('trtforge bisect copy.engine'),
    });
    expect(exitCode).toBe(1);
  });

  it('is judged by the gate, for JUnit too', async () => {
    const { out } = await trtforge(['engine', 'check', 'copy.engine']);
    writeFileSync('check.json', out);
    writeFileSync('policy.yaml', 'schema: trtforge.gate-policy/1\nextends: engine-check\n');
    const { exitCode } = await trtforge(['gate', 'policy.yaml', 'check.json', '--junit', 'check.xml']);
    expect(exitCode).toBe(1);
    expect(readFileSync('check.xml', 'utf8')).toContain('<failure');
  });

  it('records the answer of an engine that has none beside it; without one nothing is proven', async () => {
    copyFileSync('affine.engine', 'bare.plan');
    const before = await trtforge(['engine', 'check', 'bare.plan']);
    expect(before).toMatchObject({ exitCode: 4, answer: { outcome: 'inconclusive', answer: null } });
    const record = ['engine', 'check', 'bare.plan', '--record', '--against', model];
    expect(await trtforge(record)).toMatchObject({ exitCode: 2, answer: { error: { code: 'TF_USAGE' } } });
    const { exitCode, answer } = await trtforge([...record, '--precision', 'fp32']);
    expect(answer).toMatchObject({
      outcome: 'pass',
      answer: 'file',
      recorded: 'bare.plan.known-answer.json',
    });
    expect(exitCode).toBe(0);
    expect(await trtforge(['engine', 'check', 'bare.plan'])).toMatchObject({
      exitCode: 0,
      answer: { answer: 'file', builtOn: { gpu: expect.any(String) } },
    });
  });

  it('records no answer beside an engine where signatures are required: it would not be signed', async () => {
    const { publicKey } = makeKeys(at('record.pem'));
    const signed = { ...environment, TRTFORGE_REQUIRE_SIGNATURE: '1', TRTFORGE_TRUSTED_KEYS: publicKey };
    copyFileSync('affine.engine', 'lone.plan');
    const words = ['engine', 'check', 'lone.plan', '--record', '--against', model, '--precision', 'fp32'];
    const { exitCode, json } = await runLine([...words, '--json'], signed);
    expect([exitCode, json().error?.code]).toEqual([2, 'TF_USAGE']);
    expect(json().error?.remedy).toMatch(/trtforge build \S+ --force-rebuild --known-answer$/);
    expect(existsSync('lone.plan.known-answer.json')).toBe(false);
  });

  it.each([
    [['--record'], 'TF_USAGE'],
    [['--rebuild'], 'TF_USAGE'],
    [['--against', 'model.onnx'], 'TF_USAGE'],
    [['--rebuild', '--against', 'model.onnx', '--precision', 'fp16'], 'TF_USAGE'],
  ])('rejects %s, which does nothing alone', async (words, code) => {
    expect(await trtforge(['engine', 'check', 'affine.engine', ...words])).toMatchObject({
      exitCode: 2,
      answer: { error: { code } },
    });
  });

  it('records none where the passport has one, and takes no empty one for a proof', async () => {
    const record = ['engine', 'check', 'copy.engine', '--record', '--against', model];
    expect(await trtforge(record)).toMatchObject({ exitCode: 2, answer: { error: { code: 'TF_USAGE' } } });
    expect(existsSync('copy.engine.known-answer.json')).toBe(false);
    const passport = readPassport(at('copy.engine'));
    const cases = passport.knownAnswer!.cases.map((each) => ({ ...each, outputs: [] }));
    copyFileSync('copy.engine', 'empty.engine');
    const knownAnswer = { ...passport.knownAnswer, cases };
    writeFileSync(passportPath(at('empty.engine')), JSON.stringify({ ...passport, knownAnswer }));
    expect(await trtforge(['engine', 'check', 'empty.engine'])).toMatchObject({
      exitCode: 4,
      answer: { outcome: 'inconclusive' },
    });
  });

  it.each<[string, (input: MadeInput) => object]>([
    ['a shape of 1e15 elements', (input) => ({ ...input, shape: [1e9, 1e6] })],
    ['inputs of 8 GB', (input) => ({ ...input, shape: [2 ** 25, 64] })],
    ['listed values for floats', (input) => ({ ...input, spread: { kind: 'values', values: [1] } })],
    ['another name', (input) => ({ ...input, name: 'other' })],
    ['no type that there is', (input) => ({ ...input, dtype: '__proto__' })],
  ])('ends with a code of bad input, or without a verdict, for an answer with %s', async (_, damage) => {
    const passport = readPassport(at('affine.engine'));
    const cases = passport.knownAnswer!.cases.map((each) => ({ ...each, inputs: each.inputs.map(damage) }));
    copyFileSync('affine.engine', 'damaged.engine');
    const knownAnswer = { ...passport.knownAnswer, cases };
    writeFileSync(passportPath(at('damaged.engine')), JSON.stringify({ ...passport, knownAnswer }));
    expect([2, 4]).toContain((await trtforge(['engine', 'check', 'damaged.engine'])).exitCode);
  });

  it.each<[string, (each: AnswerCase) => object]>([
    [
      '2,000 inputs of 16 MB',
      ({ inputs: [input], ...rest }) => ({
        ...rest,
        inputs: Array.from({ length: 2000 }, (_, at) => ({ ...input, name: `x${at}`, shape: [2 ** 22] })),
      }),
    ],
    ['a billion steps', (each) => ({ ...each, steps: 1e9 })],
    [
      'integers for minutes',
      ({ inputs: [input], ...rest }) => ({
        ...rest,
        inputs: [{ ...input, dtype: 'int64', shape: [2 ** 24] }],
      }),
    ],
    [
      'steps of 1 GiB',
      ({ inputs: [input], ...rest }) => ({ ...rest, steps: 16, inputs: [{ ...input, shape: [2 ** 28] }] }),
    ],
  ])('is rejected with %s before anything is drawn', async (_, damage) => {
    const passport = readPassport(at('affine.engine'));
    copyFileSync('affine.engine', 'greedy.engine');
    const knownAnswer = { ...passport.knownAnswer, cases: passport.knownAnswer!.cases.map(damage) };
    writeFileSync(passportPath(at('greedy.engine')), JSON.stringify({ ...passport, knownAnswer }));
    for (const line of [
      ['engine', 'check'],
      ['triton', 'export', '-o', 'greedy'],
    ])
      expect(await trtforge([...line, 'greedy.engine'])).toMatchObject({
        exitCode: 2,
        answer: { error: { code: 'TF_PASSPORT_INVALID' } },
      });
  });

  it('draws nothing for inputs that the engine does not have', async () => {
    const passport = readPassport(at('affine.engine'));
    copyFileSync('affine.engine', 'more.engine');
    const more = { name: 'more', dtype: 'float32', shape: [2 ** 27], spread: { kind: 'mask' } };
    const cases = passport.knownAnswer!.cases.map((each) => ({ ...each, inputs: [...each.inputs, more] }));
    const knownAnswer = { ...passport.knownAnswer, cases };
    writeFileSync(passportPath(at('more.engine')), JSON.stringify({ ...passport, knownAnswer }));
    expect(await trtforge(['engine', 'check', 'more.engine'])).toMatchObject({
      exitCode: 0,
      answer: { outcome: 'pass' },
    });
  });

  it('is cancelled while the engine runs; where only its time is over, the answer is without', async () => {
    const { knownAnswer } = readPassport(at('affine.engine'));
    const over = AbortSignal.abort();
    const observing = (stop: object) =>
      measured(knownAnswer!, at('affine.engine'), { environment, ...stop }, false);
    await expect(observing({ signal: over })).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    expect(await observing({ limit: over })).toMatchObject({ observed: null });
    expect(await observing({})).toMatchObject({ observed: { gpu: expect.anything() } });
  });

  it('takes no model', async () => {
    expect((await trtforge(['engine', 'check', model])).exitCode).toBe(2);
  });
});

describe('run with a check', () => {
  const run = (engine: string, check: string) =>
    trtforge(['run', engine, '--inputs', 'random', '--check', check, '-o', 'out.npz']);

  it('rejects an engine that gives another answer, before anything is written', async () => {
    const { exitCode, answer } = await run('copy.engine', 'refuse');
    expect(answer).toMatchObject({ error: { code: 'TF_ENGINE_WRONG_ANSWER', details: { output: 'y' } } });
    expect(exitCode).toBe(1);
    expect(existsSync('out.npz')).toBe(false);
  });

  it.each([
    ['copy.engine', 'warn'],
    ['copy.engine', 'off'],
    ['affine.engine', 'refuse'],
  ])('runs %s with %s', async (engine, check) => {
    expect((await run(engine, check)).exitCode).toBe(0);
  });
});

describe('a store', () => {
  it('is checked once; doctor names what was not', async () => {
    const keys = makeKeys(at('key.pem'));
    const store = new LocalStore(at('cache/trtforge/engines'), at('cache/trtforge/memo'));
    const passport = readPassport(at('affine.engine'));
    const pending = store.pending();
    copyFileSync('affine.engine', pending.planPath);
    await store.put(pending.planPath, { ...passport, name: 'stored.engine' }, null);
    pending.remove();
    rmSync('cache/trtforge/checks', { recursive: true, force: true });
    const unchecked = async () =>
      (await runLine(['doctor', '--json'], environment)).json<DoctorResult>().store?.unchecked;
    expect(await unchecked()).toEqual(['stored.engine']);
    const first = await trtforge(['cache', 'check']);
    expect(first).toMatchObject({
      exitCode: 0,
      answer: { outcome: 'pass', engines: [{ name: 'stored.engine', outcome: 'pass', isKnown: false }] },
    });
    expect((await trtforge(['cache', 'check'])).answer.engines).toMatchObject([{ isKnown: true, ms: 0 }]);
    expect(await unchecked()).toEqual([]);
    const signed = { ...environment, TRTFORGE_REQUIRE_SIGNATURE: '1', TRTFORGE_TRUSTED_KEYS: keys.publicKey };
    const unsigned = await runLine(['cache', 'check', '--json'], signed);
    expect(unsigned).toMatchObject({ exitCode: 1 });
    expect(unsigned.json().engines).toMatchObject([{ outcome: 'fail', isKnown: false }]);
    appendFileSync(store.planPath(passport.identity.digest), 'damaged');
    expect(await trtforge(['cache', 'check'])).toMatchObject({
      exitCode: 1,
      answer: { outcome: 'fail', engines: [{ outcome: 'fail', isKnown: false }] },
    });
  });

  describe('in which a signed engine takes the place of another one', () => {
    const signed = () => ({
      ...environment,
      TRTFORGE_REQUIRE_SIGNATURE: '1',
      TRTFORGE_TRUSTED_KEYS: at('swap.pem.pub'),
      TENSORRT_CACHE_DIR: at('swap'),
    });
    const [own, other] = [fakeIdentity(), { ...fakeIdentity(), model: 'b'.repeat(64) }].map(
      (document) => [identityDigest(document), document] as const,
    ) as [readonly [string, IdentityDocument], readonly [string, IdentityDocument]];
    let place: string;

    beforeAll(async () => {
      const { privateKey, publicKey } = makeKeys(at('swap.pem'));
      expect(publicKey).toBe(at('swap.pem.pub'));
      const store = new LocalStore(at('swap'), at('swap-memo'));
      const { knownAnswer } = readPassport(at('affine.engine'));
      for (const [, document] of [own, other]) {
        const pending = store.pending();
        copyFileSync('affine.engine', pending.planPath);
        const passport = { ...samplePassport(readFileSync('affine.engine'), document), knownAnswer };
        await store.put(pending.planPath, passport, signDocument(passport, readPrivateKey(privateKey)));
        pending.remove();
      }
      place = dirname(store.planPath(own[0]));
      for (const line of [
        ['cache', 'ls'],
        ['engine', 'check', join(place, 'engine.plan')],
      ])
        expect(await runLine(line, signed())).toMatchObject({ exitCode: 0 });
      for (const file of readdirSync(dirname(store.planPath(other[0]))))
        copyFileSync(join(dirname(store.planPath(other[0])), file), join(place, file));
      symlinkSync(join(place, 'engine.plan'), at('linked.engine'));
      for (const companion of ['passport.json', 'sig'])
        symlinkSync(join(place, `engine.plan.${companion}`), at(`linked.engine.${companion}`));
    });

    it.each([
      ['engine check', ['engine', 'check', 'PLACE']],
      ['engine check of a link', ['engine', 'check', 'linked.engine']],
      ['run', ['run', 'PLACE', '--inputs', 'random']],
      ['bench', ['bench', 'PLACE', '--duration', '0.01']],
      ['engine layers', ['engine', 'layers', 'PLACE']],
      ['verify', ['verify', 'PLACE', '--against', 'MODEL']],
      ['stream check', ['stream', 'draft', 'PLACE', '-o', 'drafted.json']],
      ['triton export', ['triton', 'export', 'PLACE', '-o', 'swapped-models']],
    ])('%s rejects it', async (_, line) => {
      const args = line.map((word) => ({ PLACE: join(place, 'engine.plan'), MODEL: model })[word] ?? word);
      expect(await codeOfLine(args, signed())).toBe('TF_PASSPORT_INVALID');
    });

    it('so does a session, without required signatures too', async () => {
      for (const env of [environment, signed()])
        await expect(
          openEngineSession(join(place, 'engine.plan'), { environment: env, check: 'refuse' }),
        ).rejects.toMatchObject({ code: 'TF_PASSPORT_INVALID' });
    });

    it('and a passport that is missing there', async () => {
      const path = join(place, 'bare.plan');
      copyFileSync('affine.engine', path);
      expect(await codeOfLine(['run', path, '--inputs', 'random'], environment)).toBe('TF_PASSPORT_MISSING');
      rmSync(path);
    });

    it('cache ls, check and verify report it', async () => {
      const problem = expect.objectContaining({ code: 'TF_PASSPORT_INVALID' });
      const broken = { identity: own[0], problem };
      for (const verb of ['ls', 'verify']) {
        const { json } = await runLine(['cache', verb, '--json'], signed());
        expect(json().engines).toEqual(expect.arrayContaining([expect.objectContaining(broken)]));
      }
      const { exitCode, json } = await runLine(['cache', 'check', '--json'], signed());
      expect(exitCode).toBe(1);
      expect(json().engines).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ identity: own[0], outcome: 'fail', isKnown: false }),
        ]),
      );
    });

    it.each([
      ['engine check', ['engine', 'check']],
      ['run', ['run', '--inputs', 'random']],
      ['bench', ['bench', '--duration', '0.01']],
      ['engine layers', ['engine', 'layers']],
      ['verify', ['verify', '--against', 'MODEL']],
    ])('%s elsewhere takes the identity that is expected', async (_, line) => {
      const [group = '', ...rest] = line.map((word) => (word === 'MODEL' ? model : word));
      const args = (identity: string) => [
        ...(group === 'engine' ? [group, rest[0]!, 'affine.engine'] : [group, 'affine.engine', ...rest]),
        '--identity',
        identity,
      ];
      expect(await codeOfLine(args(other[0]), environment)).toBe('TF_PASSPORT_INVALID');
      expect(await codeOfLine(args(own[0]), environment)).toBeNull();
      expect(await codeOfLine(args(own[0].slice(0, 12)), environment)).toBe('TF_USAGE');
    });

    it('an engine without a passport has none of them; a model cannot have one', async () => {
      const identity = ['--inputs', 'random', '--identity', own[0]];
      copyFileSync('affine.engine', 'without.engine');
      expect(await codeOfLine(['run', 'without.engine', ...identity], environment)).toBe(
        'TF_PASSPORT_MISSING',
      );
      expect(await codeOfLine(['run', model, ...identity], environment)).toBe('TF_USAGE');
      const open = (expected: string) =>
        openEngineSession(at('affine.engine'), { environment, identity: expected });
      await expect(open(other[0])).rejects.toMatchObject({ code: 'TF_PASSPORT_INVALID' });
      await expect(open(own[0].slice(0, 12))).rejects.toMatchObject({ code: 'TF_USAGE' });
      await (await open(own[0])).close();
    });
  });

  it('has engines without an answer, which doctor counts with the line that records one', async () => {
    const store = new LocalStore(at('bare-store'), at('bare-memo'));
    const pending = store.pending();
    copyFileSync('affine.engine', pending.planPath);
    const { knownAnswer: _, ...passport } = readPassport(at('affine.engine'));
    const { planPath } = await store.put(pending.planPath, passport, null);
    pending.remove();
    const doctor = async () => {
      const { json } = await runLine(['doctor', '--json'], {
        ...environment,
        TENSORRT_CACHE_DIR: store.place,
      });
      const { store: facts, findings } = json<DoctorResult>();
      return { unanswered: facts?.unanswered, ids: findings.map(({ id }) => id) };
    };
    const { unanswered = [], ids } = await doctor();
    expect(unanswered).toMatchObject([{ name: passport.name, record: expect.stringContaining(planPath) }]);
    expect(ids.some((id) => id.includes('unanswered'))).toBe(true);
    const [, ...line] = unanswered[0]!.record.split(' ');
    const recorded = await trtforge([...line.slice(0, -1), model]);
    expect(recorded).toMatchObject({ exitCode: 0, answer: { outcome: 'pass', answer: 'file' } });
    expect(await doctor()).toMatchObject({ unanswered: [] });
  });

  it('of which nothing was proven passes for nothing', async () => {
    const empty = await trtforge(['cache', 'check', '--cache-dir', at('empty-store')]);
    expect(empty).toMatchObject({ exitCode: 4, answer: { outcome: 'inconclusive', engines: [] } });
  });
});
