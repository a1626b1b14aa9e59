import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { BuildOptions } from '../../../src/engines/builder/options.js';
import { buildResult } from '../../../src/engines/builder/result.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { LocalStore } from '../../../src/engines/store/local.js';
import { makeKeys } from '../../../src/engines/store/sign-engines.js';
import type { WorkEvent } from '../../../src/events.js';
import { buildOrLoad } from '../../../src/quality/known-answer/build-or-load.js';
import type { CacheCheck } from '../../../src/quality/known-answer/check-store.js';
import { countingBuilder } from '../../fakes/builder.js';
import { sampleToolchain } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';
import { writeLayer } from './faulty-engine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-answer-at-build-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let model: string;
let folder: string;
let events: WorkEvent[];
beforeAll(async () => {
  model = await writeLayer(join(root, 'layer.onnx'));
});
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
  events = [];
});

/** Its builder takes a millisecond: no reference runs in a fifth of that. */
const obtain = (more: Partial<BuildOptions> = {}) =>
  buildOrLoad(
    {
      model,
      target: 'tensorrt-rtx:sm_89',
      toolchain: sampleToolchain,
      profiles: ['x:1x12/4x12/16x12'],
      store: join(folder, 'store'),
      ...more,
    },
    {
      build: countingBuilder().build,
      emit: (event) => events.push(event),
      environment: { XDG_CACHE_HOME: join(folder, 'xdg') },
    },
  );
const isOfAnswer = (event: WorkEvent) => 'phase' in event && event.phase === 'known answer';
const answerIn = (plan: string) => readPassport(plan).knownAnswer;

describe('a build', () => {
  it('keeps how the images of its calibration were prepared', async () => {
    const calibration = {
      ...{ digest: () => 'c'.repeat(64), method: 'max', preprocess: 'yolo' },
      ...{
        observe: async () => new Map(),
        calibrate: async () => ({ ranges: new Map(), corrections: new Map() }),
      },
    } as never;
    const { passport } = await obtain({ precision: 'fp16', conversion: { calibration } });
    expect(passport.model.preprocess).toBe('yolo');
    expect((await obtain()).passport.model.preprocess).toBeUndefined();
  });

  it('ends the phase as skipped, with the reason, where no answer was recorded in its time', async () => {
    const built = await obtain();
    expect(built.source).toBe('built');
    expect(events.filter(isOfAnswer)).toEqual([
      { type: 'phase-start', phase: 'known answer' },
      { type: 'phase-skipped', phase: 'known answer', reason: built.unanswered },
    ]);
    expect(buildResult(built).unanswered).toContain('--known-answer');
    expect(answerIn(built.engine)).toBeUndefined();
  });

  it('records it where it was asked for, and ends the phase as done', async () => {
    const built = await obtain({ knownAnswer: true });
    expect(built.unanswered).toBeNull();
    expect(events.filter(isOfAnswer).map(({ type }) => type)).toEqual(['phase-start', 'phase-end']);
    expect(answerIn(built.engine)).toEqual(built.passport.knownAnswer);
  });

  it('runs no reference where none is requested, and states it', async () => {
    const built = await obtain({ knownAnswer: false });
    expect(events.filter(isOfAnswer)).toEqual([]);
    expect(built.unanswered).toEqual(expect.any(String));
  });
});

describe('an engine that is found without an answer', () => {
  it('is reported to have none, and gets one where requested, in its place and in a copy', async () => {
    const built = await obtain({ knownAnswer: false });
    const hit = await obtain();
    expect(hit).toMatchObject({ source: 'local', unanswered: expect.stringContaining('--known-answer') });
    const output = join(folder, 'copy.engine');
    const answered = await obtain({ knownAnswer: true, output });
    expect(answered).toMatchObject({ source: 'local', unanswered: null, identity: built.identity });
    expect(answerIn(output)).toEqual(answered.passport.knownAnswer);
    expect(answerIn(built.engine)).toEqual(answered.passport.knownAnswer);
    events = [];
    expect(await obtain({ knownAnswer: true })).toMatchObject({ source: 'local', unanswered: null });
    expect(events.filter(isOfAnswer)).toEqual([]);
  });

  it('is signed again by a key that is here, and stays as it is without one', async () => {
    const keys = makeKeys(join(folder, 'key.pem'));
    const required = { requireSignature: true, trustKeys: [keys.publicKey] };
    const { engine } = await obtain({ knownAnswer: false, signKey: keys.privateKey });
    const passport = readFileSync(`${engine}.passport.json`);
    const unsigned = await obtain({ ...required, knownAnswer: true });
    expect(unsigned).toMatchObject({ source: 'local', unanswered: expect.any(String) });
    expect(readFileSync(`${engine}.passport.json`)).toEqual(passport);
    const signed = await obtain({ ...required, knownAnswer: true, signKey: keys.privateKey });
    expect(signed).toMatchObject({ source: 'local', unanswered: null });
    expect(await obtain(required)).toMatchObject({ source: 'local', why: [], unanswered: null });
  });

  it('in a store that only serves is left as it is; a copy has the answer', async () => {
    const { engine } = await obtain({ knownAnswer: false });
    const above = { store: join(folder, 'top'), layers: [join(folder, 'store')], knownAnswer: true };
    expect(await obtain(above)).toMatchObject({ source: 'local', unanswered: expect.any(String) });
    const output = join(folder, 'copy.engine');
    expect(await obtain({ ...above, output })).toMatchObject({ source: 'local', unanswered: null });
    expect(answerIn(output)).toBeDefined();
    expect(answerIn(engine)).toBeUndefined();
  });

  it('keeps its passport while another process builds the same', async () => {
    const { engine, identity } = await obtain({ knownAnswer: false });
    const store = new LocalStore(join(folder, 'store'), join(folder, 'memo'));
    const { lease } = store.leases.tryAcquire(identity);
    expect((await obtain({ knownAnswer: true })).unanswered).toEqual(expect.any(String));
    lease?.release();
    expect(answerIn(engine)).toBeUndefined();
    expect((await obtain({ knownAnswer: true })).unanswered).toBeNull();
  });
});

describe('cache check', () => {
  it('counts engines without an answer; the line that it prints gives them one', async () => {
    await obtain({ knownAnswer: false });
    const environment = { ...process.env, XDG_CACHE_HOME: join(folder, 'xdg') };
    const check = async () => {
      const { exitCode, json } = await trtforge(
        ['cache', 'check', '--cache-dir', join(folder, 'store'), '--json'],
        environment,
      );
      return { exitCode, ...json<CacheCheck>() };
    };
    const before = await check();
    expect(before.unanswered).toHaveLength(1);
    const [program, ...line] = before.unanswered![0]!.record.split(' ');
    expect(program).toBe('trtforge');
    const here = line.map((word) => (word === 'layer.onnx' ? model : word));
    const { json } = await trtforge([...here, '--json'], environment);
    expect(json()).toMatchObject({ recorded: expect.stringContaining('engine.plan.known-answer.json') });
    expect((await check()).unanswered).toEqual([]);
    const { out } = await trtforge(['cache', 'check', '--cache-dir', join(folder, 'store')], environment);
    expect(out).toContain('1 engine ');
  });
});
