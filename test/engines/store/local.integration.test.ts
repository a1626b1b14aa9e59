import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { passportPath } from '../../../src/engines/identity/engine-name.js';
import { identityDigest } from '../../../src/engines/identity/identity.js';
import { defaultRecipe } from '../../../src/engines/identity/recipe.js';
import { verifyEngine } from '../../../src/engines/plan/verify-engine.js';
import { listCache, verifyCache } from '../../../src/engines/store/cache.js';
import { thisProcess } from '../../../src/engines/store/claims/claim.js';
import { LocalStore } from '../../../src/engines/store/local.js';
import { storeFolder } from '../../../src/engines/store/open-stores.js';
import { createPending, sweepPending } from '../../../src/engines/store/pending.js';
import { sampleIdentity, samplePassport, samplePlan } from '../../support/sample-engine.js';
import { Scene } from './processes.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-store-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function newStore() {
  const folder = mkdtempSync(join(root, 'case-'));
  return new LocalStore(join(folder, 'engines'), join(folder, 'memo'));
}

async function keep(store: LocalStore, document = sampleIdentity(), plan = samplePlan()) {
  const pending = store.pending();
  writeFileSync(pending.planPath, plan);
  const kept = await store.put(pending.planPath, samplePassport(plan, document));
  pending.remove();
  return kept;
}

/** The sample model built with a flag: the same readable name, another identity. */
const withFlag = (flag: string) => ({ ...sampleIdentity(), recipe: { ...defaultRecipe, flags: [flag] } });

describe('the place of the store', () => {
  test.each([
    ['given', { TENSORRT_CACHE_DIR: '/env', XDG_CACHE_HOME: '/xdg' }, 'given'],
    [undefined, { TENSORRT_CACHE_DIR: '/env', XDG_CACHE_HOME: '/xdg' }, '/env'],
    [undefined, { XDG_CACHE_HOME: '/xdg' }, '/xdg/trtforge/engines'],
  ])('%s and %o: %s', (given, environment, expected) => {
    expect(storeFolder(given, environment)).toBe(expected);
  });
});

describe('a store', () => {
  test('returns what was stored, by identity and under a readable name', async () => {
    const store = newStore();
    const kept = await keep(store);
    const answer = await store.get(kept.identity);
    expect(answer).toEqual({ found: true, engine: kept, rule: 'exact' });
    const { readablePath } = kept;
    expect(readablePath).toMatch(/by-name\/sample\/sample_aaaaaaaa_as-is_sm_89_1\.7\.1\.116\.engine$/);
    expect(readFileSync(readablePath ?? '')).toEqual(samplePlan());
    expect(verifyEngine(readablePath ?? '')).toEqual(kept.passport);
    expect(readdirSync(join(store.place, 'pending'))).toEqual([]);
  });

  test('has nothing of another identity', async () => {
    const store = newStore();
    await keep(store);
    expect(await store.get('f'.repeat(64))).toMatchObject({ found: false, code: null });
  });

  test('a readable name that is taken gets the start of the identity; each name means one engine', async () => {
    const store = newStore();
    const [first, second] = [await keep(store), await keep(store, withFlag('refit'), samplePlan(1))];
    expect(second.readablePath).toContain(`~${second.identity.slice(0, 8)}.engine`);
    expect((await keep(store)).readablePath).toBe(first.readablePath);
    await store.remove(first.identity);
    expect(existsSync(first.readablePath ?? '')).toBe(false);
    expect(readFileSync(second.readablePath ?? '')).toEqual(samplePlan(1));
  });

  test.each<[string, string, (plan: string) => void]>([
    ['TF_ENGINE_DIGEST_MISMATCH', 'changed plan', (plan) => writeFileSync(plan, samplePlan(3))],
    ['TF_ENGINE_SIZE_MISMATCH', 'cut plan', (plan) => writeFileSync(plan, samplePlan().subarray(0, 100))],
    ['TF_PASSPORT_INVALID', 'damaged passport', (plan) => writeFileSync(passportPath(plan), '{}')],
    [
      'TF_PASSPORT_INVALID',
      'passport of another identity',
      (plan) =>
        writeFileSync(passportPath(plan), JSON.stringify(samplePassport(samplePlan(), withFlag('refit')))),
    ],
  ])(
    'does not hand out an engine with a problem (%s, %s), and verify names it',
    async (code, _what, damage) => {
      const store = newStore();
      const kept = await keep(store);
      await new Promise((resolve) => setTimeout(resolve, 80));
      expect((await store.get(kept.identity)).found).toBe(true);
      damage(kept.planPath);
      expect(await store.get(kept.identity)).toMatchObject({ found: false, code });
      const verification = await verifyCache(store);
      expect(verification).toMatchObject({ verified: 0, exitCode: 1 });
      expect(verification.engines[0]?.problem?.code).toBe(code);
    },
  );

  test('a verified engine is not read again while it does not change', async () => {
    const store = newStore();
    const kept = await keep(store);
    await new Promise((resolve) => setTimeout(resolve, 80));
    await store.get(kept.identity);
    const memo = join(store.place, '..', 'memo');
    const [entry = ''] = readdirSync(memo, { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('.json'),
    );
    const marked = readFileSync(join(memo, entry), 'utf8').replace('installed by trtforge', 'remembered');
    writeFileSync(join(memo, entry), marked);
    const remembered = { ...kept.passport.built, toolchain: 'remembered' };
    expect(await store.get(kept.identity)).toMatchObject({ engine: { passport: { built: remembered } } });
    utimesSync(kept.planPath, new Date(), new Date());
    expect(await store.get(kept.identity)).toMatchObject({
      engine: { passport: { built: kept.passport.built } },
    });
  });

  test('lists the newest first, with what is damaged', async () => {
    const store = newStore();
    const kept = await keep(store);
    const damaged = await keep(store, withFlag('refit'));
    writeFileSync(passportPath(damaged.planPath), 'x');
    const list = await listCache(store);
    expect(
      list.engines.map(({ identity, name, problem }) => ({ identity, name, problem: problem?.code })),
    ).toEqual([
      { identity: kept.identity, name: kept.passport.name, problem: undefined },
      { identity: damaged.identity, name: null, problem: 'TF_PASSPORT_INVALID' },
    ]);
    expect(list.bytes).toBe(4096);
  });

  test('is emptied by clear', async () => {
    const store = newStore();
    await keep(store);
    await keep(store, withFlag('refit'));
    expect(await store.clear()).toBe(2);
    expect((await listCache(store)).engines).toEqual([]);
    expect(readdirSync(join(store.place, 'by-name', 'sample'))).toEqual([]);
    expect(await store.remove('f'.repeat(64))).toBe(false);
  });

  test('that is not there yet lists nothing', async () => {
    expect((await listCache(newStore())).engines).toEqual([]);
  });
});

describe('what killed builds left', () => {
  const claimOf = (owner: unknown) =>
    JSON.stringify({ token: '00000000-0000-4000-8000-000000000000', kind: 'pending', owner });
  const age = (folder: string, hours: number) => {
    const then = new Date(Date.now() - hours * 3_600_000);
    utimesSync(folder, then, then);
  };

  test('goes when its process is dead; what runs stays', () => {
    const parent = mkdtempSync(join(root, 'pending-'));
    const alive = createPending(parent);
    const dead = createPending(parent);
    writeFileSync(join(dead.folder, 'owner.json'), claimOf({ ...thisProcess(), pid: 2 ** 22 + 1 }));
    writeFileSync(dead.planPath, 'half a plan');
    expect(sweepPending(parent)).toBe(1);
    expect([existsSync(alive.folder), existsSync(dead.folder)]).toEqual([true, false]);
  });

  test('of other machines, or without a readable owner, goes after a day', () => {
    const parent = mkdtempSync(join(root, 'pending-'));
    const [far, mute] = [createPending(parent), createPending(parent)];
    writeFileSync(join(far.folder, 'owner.json'), claimOf({ ...thisProcess(), machine: 'elsewhere' }));
    rmSync(join(mute.folder, 'owner.json'));
    mkdirSync(join(parent, 'of the user.unpublished'));
    expect(sweepPending(parent)).toBe(0);
    for (const { folder } of [far, mute]) age(folder, 25);
    expect(sweepPending(parent)).toBe(2);
    expect(readdirSync(parent)).toEqual(['of the user.unpublished']);
  });
});

/** Runs a worker in a mount namespace of its own, where `prepare` has changed what it sees. */
const UNSHARE = 'unshare';
const inNamespace = (prepare: string) => [UNSHARE, '-m', 'sh', '-c', `${prepare} && exec "$@"`, 'sh'];
const namespaces = spawnSync(UNSHARE, ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()]).status === 0;
const mayMount = namespaces ? '' : ' (not here: mounting needs root)';

describe.skipIf(!namespaces)(`file systems with limits${mayMount}`, () => {
  test('a read-only store serves hits, and states clearly that it cannot keep an engine', async () => {
    const scene = new Scene(root);
    await scene.run();
    const through = inNamespace(`mount --bind -o ro '${scene.store}' '${scene.store}'`);
    expect(await scene.run({ through })).toMatchObject({ source: 'local' });
    const identity = sampleIdentity('b'.repeat(64));
    expect(await scene.run({ through, identity })).toMatchObject({
      code: 'TF_STORE_UNWRITABLE',
      message: expect.stringContaining(scene.store),
    });
    expect(scene.builds()).toBe(1);
    const output = join(scene.folder, 'out', 'mine.engine');
    expect(await scene.run({ through, identity, output })).toMatchObject({
      source: 'built',
      engine: output,
      warnings: [expect.stringContaining('cannot be written')],
    });
    expect(verifyEngine(output).identity.digest).toBe(identityDigest(identity));
    expect(readdirSync(join(scene.folder, 'out')).sort()).toEqual([
      'mine.engine',
      'mine.engine.passport.json',
    ]);
  });

  test.each(['before the plan', 'after the plan'] as const)(
    'a store that becomes read-only during a build, %s: the error names what could not be written',
    async (remount) => {
      const scene = new Scene(root);
      const store = join(scene.folder, 'turning');
      mkdirSync(store);
      const listing = join(scene.folder, 'listing');
      const through = inNamespace(
        `mount -t tmpfs tmpfs '${store}' && trap "find '${store}' -path '*pending/*' > '${listing}'" EXIT && "$@"; exit; true`,
      );
      expect(await scene.run({ through, store, remount })).toMatchObject({
        code: 'TF_WRITE_FAILED',
        message: expect.stringMatching(/engine\.plan could not be written: writing there is not allowed/),
      });
      // What stays is swept like what a kill left.
      expect(readFileSync(listing, 'utf8')).toContain('.unpublished');
    },
  );

  test.each([
    ['while the plan is written', '8k', false],
    ['between plan and passport', '200k', true],
  ])(
    'a disk that fills up %s is an error, and nothing half-written is left',
    async (_when, size, fillDisk) => {
      const scene = new Scene(root);
      const store = join(scene.folder, 'small');
      mkdirSync(store);
      const listing = join(scene.folder, 'listing');
      const through = inNamespace(
        `mount -t tmpfs -o size=${size} tmpfs '${store}' && trap "find '${store}' -type f > '${listing}'" EXIT && "$@"; exit; true`,
      );
      expect(await scene.run({ through, store, fillDisk })).toMatchObject({
        code: 'TF_WRITE_FAILED',
        message: expect.stringMatching(/engine\.plan could not be written: the disk is full/),
      });
      expect(readFileSync(listing, 'utf8')).toBe('');
    },
  );
});
