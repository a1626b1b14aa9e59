import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { identityDigest } from '../../../src/engines/identity/identity.js';
import { verifyEngine } from '../../../src/engines/plan/verify-engine.js';
import { LocalStore } from '../../../src/engines/store/local.js';
import { sampleIdentity } from '../../support/sample-engine.js';
import { type Answer, Scene } from './processes.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-processes-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const sourceOf = (answer: Answer) => ('source' in answer ? answer.source : JSON.stringify(answer));

describe('processes that ask for the same engine', () => {
  test.each([2, 50])(
    '%i of them build it once, and the others load it',
    { timeout: 240_000 },
    async (count) => {
      const scene = new Scene(root);
      const answers = await Promise.all(Array.from({ length: count }, () => scene.run({ buildMs: 1000 })));
      expect(scene.builds()).toBe(1);
      expect(answers.map(sourceOf).sort()).toEqual(['built', ...Array(count - 1).fill('local')]);
      const [engine] = new Set(answers.map((answer) => ('engine' in answer ? answer.engine : '')));
      expect(verifyEngine(engine ?? '').plan.bytes).toBe(4096);
      expect(scene.leftovers()).toEqual([]);
    },
  );

  test('for different engines they do not wait for each other', async () => {
    const scene = new Scene(root);
    const hanging = await scene.startHanging();
    const other = await scene.run({ identity: sampleIdentity('b'.repeat(64)) });
    expect(sourceOf(other)).toBe('built');
    hanging.child.kill('SIGKILL');
    await hanging.answer;
  });

  test('of several forced to rebuild each builds, one after the other', async () => {
    const scene = new Scene(root);
    const answers = await Promise.all([1, 2, 3].map(() => scene.run({ forceRebuild: true, buildMs: 200 })));
    expect(answers.map(sourceOf)).toEqual(['built', 'built', 'built']);
    expect(scene.builds()).toBe(3);
    expect(scene.leftovers()).toEqual([]);
  });
});

describe('a builder that is killed', () => {
  test('in the middle of its build leaves nothing that a later run reuses, and one of those who wait takes over', async () => {
    const scene = new Scene(root);
    const doomed = await scene.startHanging();
    const waiting = await Promise.all(Array.from({ length: 6 }, () => scene.startWaiting({ buildMs: 300 })));
    expect(scene.builds()).toBe(1);
    doomed.child.kill('SIGKILL');
    expect(await doomed.answer).toEqual({ signal: 'SIGKILL' });
    const answers = await Promise.all(waiting.map(({ answer }) => answer));
    expect(scene.builds()).toBe(2);
    expect(answers.map(sourceOf).sort()).toEqual(['built', ...Array(5).fill('local')]);
    expect(scene.leftovers()).toEqual([]);
  });

  test.each([
    ['before the plan is in place', 0],
    ['between plan and passport', 1],
  ])('%s leaves nothing that a later run reuses', async (_when, dieAtRename) => {
    const scene = new Scene(root);
    expect(await scene.run({ dieAtRename })).toEqual({ signal: 'SIGKILL' });
    const store = new LocalStore(scene.store, join(scene.folder, 'memo'));
    expect(await store.get(identityDigest(sampleIdentity()))).toMatchObject({ found: false, code: null });
    expect(sourceOf(await scene.run())).toBe('built');
    expect(scene.leftovers()).toEqual([]);
    expect(sourceOf(await scene.run())).toBe('local');
  });

  test('while it replaces an engine leaves the old one or none, never a mixture', async () => {
    const scene = new Scene(root);
    await scene.run();
    expect(await scene.run({ forceRebuild: true, dieAtRename: 1 })).toEqual({ signal: 'SIGKILL' });
    expect(sourceOf(await scene.run())).toBe('built');
    expect(scene.builds()).toBe(3);
  });

  test('one that is asked to stop goes at once and leaves the lease free', async () => {
    const scene = new Scene(root);
    const doomed = await scene.startHanging();
    const waiting = await scene.startWaiting();
    waiting.child.kill('SIGTERM');
    expect(await waiting.answer).toMatchObject({ code: 'TF_CANCELLED' });
    doomed.child.kill('SIGKILL');
    await doomed.answer;
    expect(sourceOf(await scene.run())).toBe('built');
  });
});

describe('a builder of another machine', () => {
  test('is left alone while its lease is fresh', async () => {
    const scene = new Scene(root);
    const name = identityDigest(sampleIdentity());
    const foreign = {
      token: '00000000-0000-4000-8000-000000000000',
      kind: 'build',
      owner: { pid: 1, startTicks: '1', machine: 'elsewhere', host: 'elsewhere' },
    };
    await scene.run({ identity: sampleIdentity('c'.repeat(64)) });
    writeFileSync(join(scene.store, 'leases', `${name}.lease`), JSON.stringify(foreign));
    const waiting = await scene.startWaiting();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect(scene.builds()).toBe(1);
    rmSync(join(scene.store, 'leases', `${name}.lease`));
    expect(sourceOf(await waiting.answer)).toBe('built');
    expect(readdirSync(join(scene.store, 'leases'))).toEqual([]);
  });
});
