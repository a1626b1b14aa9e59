import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { thisProcess } from '../../../src/engines/store/claims/claim.js';
import { isInUse, markInUse, releaseUse } from '../../../src/engines/store/claims/in-use.js';
import { chooseVictims } from '../../../src/engines/store/eviction.js';
import { LocalStore } from '../../../src/engines/store/local.js';
import { sampleIdentity, samplePassport, samplePlan } from '../../support/sample-engine.js';

const TOKEN = '00000000-0000-4000-8000-000000000000';
const root = mkdtempSync(join(tmpdir(), 'trtforge-eviction-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('which engines go', () => {
  const engine = (identity: string, lastUsed: number, bytes = 10, held = false) => ({
    identity,
    lastUsed,
    bytes,
    held,
  });
  test.each<[string, ReturnType<typeof engine>[], number, string[], number]>([
    ['none below the limit', [engine('a', 1), engine('b', 2)], 20, [], 0],
    ['the least recently used first', [engine('b', 2), engine('a', 1), engine('c', 3)], 20, ['a'], 0],
    ['as many as it takes', [engine('a', 1), engine('b', 2), engine('c', 3)], 10, ['a', 'b'], 0],
    ['never one that is held', [engine('a', 1, 10, true), engine('b', 2)], 10, ['b'], 0],
    ['what is held may exceed the limit', [engine('a', 1, 30, true), engine('b', 2)], 10, ['b'], 20],
    ['everything for a limit of nothing', [engine('a', 1), engine('b', 1)], 0, ['a', 'b'], 0],
  ])('%s', (_what, engines, limit, victims, excessBytes) => {
    const plan = chooseVictims(engines, limit);
    expect(plan.victims.map(({ identity }) => identity)).toEqual(victims);
    expect(plan.excessBytes).toBe(excessBytes);
  });

  test('for any content: nothing in use goes, nothing goes in vain, and what stays was used later', () => {
    const engines = fc.array(
      fc.record({
        identity: fc.uuid(),
        bytes: fc.nat(1000),
        lastUsed: fc.nat(100),
        held: fc.boolean(),
      }),
    );
    fc.assert(
      fc.property(engines, fc.nat(5000), (all, limit) => {
        const { victims, bytesAfter, bytesBefore, excessBytes } = chooseVictims(all, limit);
        const kept = all.filter((each) => !victims.includes(each));
        expect(victims.every(({ held }) => !held)).toBe(true);
        expect(bytesBefore - bytesAfter).toBe(victims.reduce((sum, { bytes }) => sum + bytes, 0));
        const last = victims.at(-1);
        if (last !== undefined) expect(bytesAfter + last.bytes).toBeGreaterThan(limit);
        if (excessBytes > 0) expect(kept.every(({ held }) => held)).toBe(true);
        for (const { lastUsed, held } of kept)
          if (!held && last !== undefined) expect(lastUsed).toBeGreaterThanOrEqual(last.lastUsed);
      }),
    );
  });
});

function newStore() {
  const folder = mkdtempSync(join(root, 'case-'));
  return new LocalStore(join(folder, 'engines'), join(folder, 'memo'));
}

/** Keeps an engine that was last used so many hours ago and that nobody uses now. */
async function keep(store: LocalStore, letter: string, hoursAgo: number) {
  const plan = samplePlan(letter.charCodeAt(0));
  const pending = store.pending();
  writeFileSync(pending.planPath, plan);
  const kept = await store.put(pending.planPath, samplePassport(plan, sampleIdentity(letter.repeat(64))));
  pending.remove();
  releaseUse(kept.planPath);
  const then = new Date(Date.now() - hoursAgo * 3_600_000);
  utimesSync(join(dirname(kept.planPath), 'used'), then, then);
  return kept;
}

const identities = async (store: LocalStore) => (await store.list()).map(({ identity }) => identity).sort();

describe('a store with a limit', () => {
  test('loses what was used longest ago, with its readable name; a hit counts as use', async () => {
    const store = newStore();
    const [a, b, c] = [await keep(store, 'a', 3), await keep(store, 'b', 2), await keep(store, 'c', 1)];
    expect((await store.get(a.identity)).found).toBe(true);
    releaseUse(a.planPath);
    const plan = await store.evict(2 * 4096);
    expect(plan.victims.map(({ identity }) => identity)).toEqual([b.identity]);
    expect(await identities(store)).toEqual([a.identity, c.identity].sort());
    expect(existsSync(dirname(b.planPath))).toBe(false);
    expect(readdirSync(join(store.place, 'by-name', 'sample')).join()).not.toContain('bbbbbbbb');
    expect(readdirSync(join(store.place, 'pending'))).toEqual([]);
  });

  test('never loses what this process has loaded, however long ago', async () => {
    const store = newStore();
    const [a, b] = [await keep(store, 'a', 30), await keep(store, 'b', 1)];
    markInUse(a.readablePath ?? '');
    expect(await store.evict(4096)).toMatchObject({ victims: [{ identity: b.identity }], excessBytes: 0 });
    expect(await store.evict(0)).toMatchObject({ victims: [], excessBytes: 4096 });
    releaseUse(a.planPath);
    expect((await store.evict(0)).victims).toHaveLength(1);
  });

  test('nor what another living process has loaded; once that was killed, it may go', async () => {
    const store = newStore();
    const { planPath } = await keep(store, 'a', 5);
    const module = new URL('../../../dist/engines/store/claims/in-use.js', import.meta.url).href;
    const script = `const { markInUse } = await import(process.argv[1]); markInUse(process.argv[2]); console.log('loaded'); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, module, planPath], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await new Promise((resolve) => child.stdout.once('data', resolve));
    expect((await store.evict(0)).victims).toEqual([]);
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
    expect((await store.evict(0)).victims).toHaveLength(1);
  });

  test('nor what is being built again', async () => {
    const store = newStore();
    const { identity } = await keep(store, 'a', 5);
    const { lease } = store.leases.tryAcquire(identity);
    expect((await store.evict(0)).victims).toEqual([]);
    lease?.release();
    expect((await store.evict(0)).victims).toHaveLength(1);
  });

  test('a mark of another machine counts for a day; one that cannot be read does too', async () => {
    const store = newStore();
    const folder = dirname((await keep(store, 'a', 5)).planPath);
    const mark = join(folder, `in-use.${TOKEN}.json`);
    const far = { token: TOKEN, kind: 'use', owner: { ...thisProcess(), machine: 'elsewhere' } };
    for (const content of [JSON.stringify(far), '{}']) {
      writeFileSync(mark, content);
      expect(isInUse(folder)).toBe(true);
      expect(isInUse(folder, Date.now() + 25 * 3_600_000)).toBe(false);
    }
  });

  test('a plan outside any store is no business of marks', () => {
    const plan = join(root, 'mine.engine');
    writeFileSync(plan, samplePlan());
    symlinkSync(plan, join(root, 'link.engine'));
    for (const path of [plan, join(root, 'link.engine'), join(root, 'nothing')]) markInUse(path);
    expect(readdirSync(root).filter((name) => name.includes('use'))).toEqual([]);
    expect(readFileSync(plan)).toEqual(samplePlan());
  });
});
