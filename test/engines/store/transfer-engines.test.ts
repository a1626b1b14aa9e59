import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { exportEngines } from '../../../src/engines/exports/exporter.js';
import { listCache } from '../../../src/engines/store/cache.js';
import { importEngines } from '../../../src/engines/store/import-engines.js';
import { LocalStore } from '../../../src/engines/store/local.js';
import { noTrust } from '../../../src/engines/store/trust.js';
import { ignoreEvents } from '../../../src/events.js';
import { sampleIdentity, samplePassport, samplePlan, writeSample } from '../../support/sample-engine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-transfer-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = root;
let store: LocalStore;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
  store = new LocalStore(join(folder, 'engines'), join(folder, 'memo'));
});

const context = { environment: {}, emit: ignoreEvents, signal: undefined };
const take = (...sources: string[]) => importEngines(store, sources, { ...context, trust: noTrust });

async function keep(letter = 'a') {
  const plan = samplePlan(letter.charCodeAt(0));
  const pending = store.pending();
  writeFileSync(pending.planPath, plan);
  const kept = await store.put(pending.planPath, samplePassport(plan, sampleIdentity(letter.repeat(64))));
  pending.remove();
  return kept;
}

describe('import', () => {
  test('an engine with its passport serves builds from then on', async () => {
    const path = writeSample(folder);
    const { engines, rejected, exitCode } = await take(path);
    expect([engines.length, rejected, exitCode]).toEqual([1, [], 0]);
    expect(await store.get(engines[0]?.identity ?? '')).toMatchObject({ found: true });
    expect(readFileSync(path)).toEqual(samplePlan());
  });

  test('one without a passport is left and named', async () => {
    const path = join(folder, 'arcface_r100_v1.0_fp16_sm_86_8.6.1.trt');
    writeFileSync(path, samplePlan());
    const { engines, rejected, exitCode } = await take(path);
    expect([engines, rejected.map(({ from, code }) => [from, code]), exitCode]).toEqual([
      [],
      [[path, 'TF_PASSPORT_MISSING']],
      1,
    ]);
    expect((await listCache(store)).engines).toEqual([]);
  });

  test('a folder is searched; what is not an engine or does not fit its passport is named, the rest is kept', async () => {
    const deep = join(folder, 'from', 'a', 'b');
    mkdirSync(deep, { recursive: true });
    writeSample(deep, 'good.engine');
    writeFileSync(join(deep, 'text.plan'), 'no plan at all');
    writeFileSync(join(deep, 'notes.txt'), 'x');
    const bad = writeSample(join(folder, 'from'), 'bad.engine', samplePlan(3));
    writeFileSync(bad, samplePlan(4));
    symlinkSync('..', join(deep, 'up'));
    const { engines, rejected, exitCode } = await take(join(folder, 'from'));
    expect(engines.length).toBeGreaterThan(0);
    expect(new Set(engines.map(({ identity }) => identity)).size).toBe(1);
    expect([...new Set(rejected.map(({ code }) => code))].sort()).toEqual([
      'TF_ENGINE_DIGEST_MISMATCH',
      'TF_PASSPORT_MISSING',
    ]);
    expect(exitCode).toBe(1);
  });

  test('a file that is not an engine is rejected', async () => {
    writeFileSync(join(folder, 'engines.tar'), Buffer.alloc(2048, 'x'));
    const { rejected, exitCode } = await take(join(folder, 'engines.tar'));
    expect([rejected.map(({ code }) => code), exitCode]).toEqual([['TF_PASSPORT_MISSING'], 1]);
  });

  test('a source that is not there is an error', async () => {
    await expect(take(join(folder, 'nothing'))).rejects.toMatchObject({ code: 'TF_FILE_NOT_FOUND' });
  });
});

describe('export', () => {
  test('to a folder and back again gives the same engines', async () => {
    const to = 'out';
    const kept = [await keep('a'), await keep('b')];
    const { engines, bytes } = await exportEngines(store, join(folder, to), [], context);
    expect([engines.length, bytes]).toEqual([2, 8192]);
    store = new LocalStore(join(folder, 'second'), join(folder, 'memo2'));
    const back = await take(join(folder, to));
    expect(back.engines.map(({ identity }) => identity).sort()).toEqual(
      kept.map(({ identity }) => identity).sort(),
    );
    for (const { identity, passport } of kept)
      expect(await store.get(identity)).toMatchObject({ found: true, engine: { passport } });
  });

  test('takes those that are named, by part of the name or start of the identity', async () => {
    const [a, b] = [await keep('a'), await keep('b')];
    const one = await exportEngines(store, join(folder, 'x'), ['aaaaaaaa'], context);
    expect(one.engines.map(({ identity }) => identity)).toEqual([a.identity]);
    const two = await exportEngines(store, join(folder, 'y'), [b.identity.slice(0, 8)], context);
    expect(two.engines.map(({ identity }) => identity)).toEqual([b.identity]);
    await expect(exportEngines(store, join(folder, 'z'), ['resnet'], context)).rejects.toMatchObject({
      code: 'TF_USAGE',
    });
  });

  test('never writes out an engine that does not fit its passport', async () => {
    const { planPath, identity } = await keep('a');
    writeFileSync(planPath, samplePlan(99));
    expect(await exportEngines(store, join(folder, 'x'), [], context)).toMatchObject({
      exitCode: 1,
      engines: [],
      rejected: [{ identity, code: 'TF_ENGINE_DIGEST_MISMATCH' }],
    });
    expect(existsSync(join(folder, 'x'))).toBe(false);
  });
});
