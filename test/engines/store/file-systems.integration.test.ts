import {
  existsSync,
  mkdtempSync,
  type RmOptions,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { publishFile } from '../../../src/base/files/publish.js';
import { listCache, verifyCache } from '../../../src/engines/store/cache.js';
import { LeaseFolder } from '../../../src/engines/store/claims/lease.js';
import { LocalStore } from '../../../src/engines/store/local.js';
import { noTrust } from '../../../src/engines/store/trust.js';
import { buildOrLoad } from '../../../src/quality/known-answer/build-or-load.js';
import { countingBuilder } from '../../fakes/builder.js';
import {
  sampleIdentity,
  samplePassport,
  samplePlan,
  sampleToolchain,
  writeSampleModel,
} from '../../support/sample-engine.js';

/** What the file system refuses at present, and how; the real one does everything else. */
const refusals = vi.hoisted(() => ({
  /** Code that hard and symbolic links end with. */
  links: null as string | null,
  /** Code that renaming over a file that is there ends with. */
  renameOver: null as string | null,
  /** Code that setting times and syncing end with. */
  times: null as string | null,
  /** Folder that nothing may be changed in. */
  readOnly: null as string | null,
  /** How often something was refused. */
  count: 0,
}));

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const refuse = (code: string, path: unknown): never => {
    refusals.count++;
    throw Object.assign(new Error(`${code}: refused, ${String(path)}`), { code, syscall: 'refused' });
  };
  const isReadOnly = (path: unknown) =>
    refusals.readOnly !== null && String(path).startsWith(refusals.readOnly);
  /** Wraps a function whose path at `place` is what it changes. */
  const changing = <Name extends keyof typeof fs>(name: Name, place = 0) => {
    const real = fs[name] as (...words: unknown[]) => unknown;
    return {
      [name]: (...words: unknown[]) =>
        isReadOnly(words[place]) ? refuse('EROFS', words[place]) : real(...words),
    };
  };
  const writes = (flags: unknown) => typeof flags === 'string' && flags !== 'r';
  const mocked = {
    ...fs,
    ...changing('writeFileSync'),
    ...changing('mkdirSync'),
    ...changing('mkdtempSync'),
    ...changing('copyFileSync', 1),
    rmSync: (path: string, options?: RmOptions) =>
      isReadOnly(path) && fs.existsSync(path) ? refuse('EROFS', path) : fs.rmSync(path, options),
    accessSync: (path: string, mode?: number) =>
      isReadOnly(path) && ((mode ?? 0) & fs.constants.W_OK) !== 0
        ? refuse('EROFS', path)
        : fs.accessSync(path, mode),
    openSync: (path: string, flags?: string, mode?: number) =>
      isReadOnly(path) && writes(flags) ? refuse('EROFS', path) : fs.openSync(path, flags ?? 'r', mode),
    linkSync: (from: string, to: string) =>
      refusals.links !== null ? refuse(refusals.links, to) : fs.linkSync(from, to),
    symlinkSync: (target: string, path: string) => {
      if (refusals.links !== null) refuse(refusals.links, path);
      return isReadOnly(path) ? refuse('EROFS', path) : fs.symlinkSync(target, path);
    },
    renameSync: (from: string, to: string) => {
      if (isReadOnly(from) || isReadOnly(to)) refuse('EROFS', to);
      return refusals.renameOver !== null && fs.existsSync(to)
        ? refuse(refusals.renameOver, to)
        : fs.renameSync(from, to);
    },
    utimesSync: (...words: Parameters<typeof fs.utimesSync>) => {
      if (refusals.times !== null) refuse(refusals.times, words[0]);
      return isReadOnly(words[0]) ? refuse('EROFS', words[0]) : fs.utimesSync(...words);
    },
  };
  return { ...mocked, default: mocked };
});

const root = mkdtempSync(join(tmpdir(), 'trtforge-file-systems-'));
const none = { links: null, renameOver: null, times: null, readOnly: null, count: 0 };
let folder = root;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
});
afterEach(() => void Object.assign(refusals, none));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const open = (name = 'engines') => new LocalStore(join(folder, name), join(folder, `${name}-memo`));

async function keep(store: LocalStore, letter = 'a', seed = 1) {
  const plan = samplePlan(seed);
  const pending = store.pending();
  try {
    writeFileSync(pending.planPath, plan);
    return await store.put(pending.planPath, samplePassport(plan, sampleIdentity(letter.repeat(64))));
  } finally {
    pending.remove();
  }
}

/** Names of files that somebody began and left. */
const leftovers = (path: string) =>
  readdirSync(path, { recursive: true }).filter((name) => String(name).includes('.unpublished'));

const obtain = async (more: { store: string; layers?: string[] }, build = countingBuilder().build) => {
  const model = join(folder, 'sample.onnx');
  if (!existsSync(model)) await writeSampleModel(model);
  return buildOrLoad(
    {
      model,
      target: 'tensorrt-rtx:sm_89',
      toolchain: sampleToolchain,
      knownAnswer: false,
      profiles: ['x:1x64/8x64/32x64'],
      ...more,
    },
    { build, environment: { XDG_CACHE_HOME: join(folder, 'xdg') } },
  );
};

describe.each(['EPERM', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])(
  'a file system whose links end with %s',
  (links) => {
    test('keeps engines and returns them, without readable names', async () => {
      refusals.links = links;
      const store = open();
      const { identity, readablePath, planPath } = await keep(store);
      expect(readablePath).toBeNull();
      expect(refusals.count).toBeGreaterThan(0);
      expect(await open().get(identity)).toMatchObject({
        found: true,
        engine: { planPath, readablePath: null },
      });
      expect((await store.list()).map((engine) => engine.identity)).toEqual([identity]);
      expect((await store.evict(0)).victims).toEqual([]);
      expect(leftovers(store.place)).toEqual([]);
    });

    test('has one builder at a time all the same', async () => {
      refusals.links = links;
      const leases = new LeaseFolder(join(folder, 'leases'));
      const first = leases.tryAcquire('engine');
      expect(first.lease).not.toBeNull();
      expect(new LeaseFolder(join(folder, 'leases')).tryAcquire('engine').lease).toBeNull();
      first.lease?.release();
      expect(new LeaseFolder(join(folder, 'leases')).tryAcquire('engine').lease).not.toBeNull();
    });

    test('one build among several that ask at once', async () => {
      refusals.links = links;
      const { build, count } = countingBuilder();
      const store = join(folder, 'engines');
      const all = await Promise.all([1, 2, 3].map(() => obtain({ store }, build)));
      expect(all.map(({ source }) => source).sort()).toEqual(['built', 'local', 'local']);
      expect(count()).toBe(1);
    });
  },
);

describe.each(['EEXIST', 'EPERM', 'EACCES', 'EBUSY'])(
  'a file system that ends renaming over a file with %s',
  (renameOver) => {
    test('gets an engine that is built again in place of the old one', async () => {
      const store = open();
      const { identity, planPath } = await keep(store);
      refusals.renameOver = renameOver;
      await keep(store, 'a', 2);
      expect(refusals.count).toBeGreaterThan(0);
      expect(readFileSync(planPath).equals(samplePlan(2))).toBe(true);
      expect(await store.get(identity)).toMatchObject({ found: true });
      expect(leftovers(store.place)).toEqual([]);
    });

    test('a file that cannot take the place of another leaves it as it was', () => {
      const path = join(folder, 'notes.json');
      publishFile(path, 'old');
      refusals.renameOver = renameOver;
      publishFile(path, 'new');
      expect(readFileSync(path, 'utf8')).toBe('new');
      expect(readdirSync(folder)).toEqual(['notes.json']);
      refusals.readOnly = folder;
      expect(() => publishFile(path, 'third')).toThrow(/could not be written/);
      expect(readFileSync(path, 'utf8')).toBe('new');
    });
  },
);

test('a file system that sets no times keeps engines, and a builder its lease', async () => {
  refusals.times = 'EPERM';
  const store = open();
  const { identity } = await keep(store);
  expect(await store.get(identity)).toMatchObject({ found: true });
  const leases = new LeaseFolder(join(folder, 'leases'), { heartbeatMs: 5, expiryMs: 60_000 });
  const { lease } = leases.tryAcquire('engine');
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(leases.tryAcquire('engine').lease).toBeNull();
  lease?.release();
});

describe('a read-only layer', () => {
  test('serves, is listed and verified, and nothing in it changes', async () => {
    const base = join(folder, 'base');
    const built = await obtain({ store: base });
    refusals.readOnly = base;
    const before = readdirSync(base, { recursive: true }).sort();
    const { build, count } = countingBuilder();
    const found = await obtain({ store: join(folder, 'top'), layers: [base] }, build);
    expect(found).toMatchObject({ source: 'local', identity: built.identity, warnings: [] });
    expect(found.engine.startsWith(base)).toBe(true);
    expect(count()).toBe(0);
    const store = open('base');
    expect((await listCache(store)).engines).toHaveLength(1);
    const check = { trust: noTrust, emit: () => {}, signal: undefined };
    expect(await verifyCache(store, check)).toMatchObject({ verified: 1, exitCode: 0 });
    expect(readdirSync(base, { recursive: true }).sort()).toEqual(before);
  });

  test('is not what builds go into: those go above it', async () => {
    const base = join(folder, 'base');
    await keep(open('base'));
    refusals.readOnly = base;
    const built = await obtain({ store: join(folder, 'top'), layers: [base] });
    expect(built).toMatchObject({ source: 'built', why: [{ from: 'local' }, { from: 'layer' }] });
    expect(built.engine.startsWith(join(folder, 'top'))).toBe(true);
  });

  test('as the store itself, evict of a timing cache ends with the same error', async () => {
    const store = open();
    const name = `tensorrt-10.6.0.26_sm_90_0/${'a'.repeat(64)}.timing`;
    writeFileSync(join(folder, 'made.timing'), 'times');
    await store.timing.put(name, join(folder, 'made.timing'), '{}', {});
    refusals.readOnly = join(folder, 'engines');
    await expect(open().evict(0)).rejects.toMatchObject({
      code: 'TF_STORE_UNWRITABLE',
      message: expect.stringContaining('EROFS'),
      remedy: expect.not.stringMatching(/-o FILE|Free space/),
    });
    expect(() => publishFile(join(store.place, 'note'), 'x')).toThrow(
      expect.objectContaining({
        code: 'TF_WRITE_FAILED',
        remedy: expect.stringContaining('not mounted read-only'),
      }),
    );
  });

  test.each<[string, (store: LocalStore, identity: string) => Promise<unknown>]>([
    ['remove', (store, identity) => store.remove(identity)],
    ['clear', (store) => store.clear()],
    ['evict', (store) => store.evict(0)],
  ])('as the store itself, %s ends with an error that names it', async (_what, work) => {
    const { identity, planPath } = await keep(open());
    // Nobody uses it: only the file system stands in the way.
    for (const name of readdirSync(dirname(planPath)))
      if (name.startsWith('in-use')) rmSync(join(dirname(planPath), name));
    refusals.readOnly = join(folder, 'engines');
    await expect(work(open(), identity)).rejects.toMatchObject({
      code: 'TF_STORE_UNWRITABLE',
      message: expect.stringContaining(join(folder, 'engines')),
      // A removal has no other place to go to.
      remedy: expect.not.stringMatching(/-o FILE|Free space/),
    });
    refusals.readOnly = null;
    expect(await open().get(identity)).toMatchObject({ found: true });
  });
});
