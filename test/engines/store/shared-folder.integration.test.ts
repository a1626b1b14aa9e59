import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { passportPath } from '../../../src/engines/identity/engine-name.js';
import { identityDigest } from '../../../src/engines/identity/identity.js';
import { listCache, verifyCache } from '../../../src/engines/store/cache.js';
import { LocalStore } from '../../../src/engines/store/local.js';
import { ledgerPath, takeUp } from '../../../src/engines/store/partial-downloads.js';
import type { CacheList } from '../../../src/engines/store/result.js';
import { signaturePath } from '../../../src/engines/store/trust.js';
import { buildOrLoad } from '../../../src/quality/known-answer/build-or-load.js';
import { countingBuilder } from '../../fakes/builder.js';
import {
  sampleIdentity,
  samplePassport,
  samplePlan,
  sampleToolchain,
  writeSampleModel,
} from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-shared-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const model = await writeSampleModel(join(root, 'sample.onnx'));
const place = () => mkdtempSync(join(root, 'case-'));
const open = (folder: string) => new LocalStore(join(folder, 'engines'), join(folder, 'memo'));

async function keep(store: LocalStore, letter = 'a') {
  const pending = store.pending();
  writeFileSync(pending.planPath, samplePlan());
  const kept = await store.put(
    pending.planPath,
    samplePassport(samplePlan(), sampleIdentity(letter.repeat(64))),
  );
  pending.remove();
  // Nobody uses it from here on.
  for (const name of readdirSync(dirname(kept.planPath)))
    if (name.startsWith('in-use')) rmSync(join(dirname(kept.planPath), name));
  return kept;
}

const obtain = (store: string, output?: string, build = countingBuilder().build) =>
  buildOrLoad(
    {
      model,
      target: 'tensorrt-rtx:sm_89',
      toolchain: sampleToolchain,
      knownAnswer: false,
      profiles: ['x:1x64/8x64/32x64'],
      store,
      ...(output === undefined ? {} : { output }),
    },
    { build, environment: { XDG_CACHE_HOME: join(store, '..', 'xdg') } },
  );

const TOKEN = '00000000-0000-4000-8000-000000000000';
/** Whole seconds: times that are set may lose their fractions. */
const DAYS_AGO = new Date(Math.floor(Date.now() / 1000) * 1000 - 3 * 24 * 3_600_000);

/** A folder of somebody's, whose names are also those that a store makes and sweeps. */
function victim(folder: string): string {
  const path = join(folder, 'victim');
  const old = ['documents', 'b'.repeat(64), `.trtforge-${TOKEN}.unpublished`].map((name) => join(path, name));
  for (const each of old) {
    mkdirSync(each, { recursive: true });
    writeFileSync(join(each, 'plan'), 'mine');
  }
  const files = [`${'b'.repeat(64)}.${TOKEN}.next`, `.${TOKEN}.unpublished`, 'engine.plan.unpublished'];
  for (const name of files) writeFileSync(join(path, name), 'mine');
  for (const each of readdirSync(path)) utimesSync(join(path, each), DAYS_AGO, DAYS_AGO);
  return path;
}

/** Every path below a folder with its size and time. */
const content = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const { size, mtimeMs } = statSync(join(folder, name));
      return [name, size, mtimeMs];
    });

describe.each(['partial', 'pending', 'leases', 'by-identity', 'by-name'])('a link in place of %s', (room) => {
  test('is not followed by builds, clear and gc', async () => {
    const folder = place();
    const store = join(folder, 'engines');
    mkdirSync(store);
    const elsewhere = victim(folder);
    symlinkSync(elsewhere, join(store, room));
    const before = content(elsewhere);
    const { build, count } = countingBuilder();
    const built = await obtain(store, undefined, build).then(
      () => 'built',
      (error: { code: string }) => error.code,
    );
    const isInTheWay = room !== 'by-name';
    const refused = room === 'by-identity' ? 'TF_FILE_UNREADABLE' : 'TF_STORE_UNWRITABLE';
    // Found out before the work of a build is lost.
    expect([built, count()]).toEqual(isInTheWay ? [refused, 0] : ['built', 1]);
    for (const work of [() => open(folder).evict(0), () => open(folder).clear()])
      await work().catch((error: unknown) => expect(error).toMatchObject({ code: /^TF_/ }));
    expect(content(elsewhere)).toEqual(before);
  });
});

describe.each<[string, (path: string, elsewhere: string) => void]>([
  ['a link', (path, elsewhere) => symlinkSync(elsewhere, path)],
  ['a file', (path) => writeFileSync(path, 'x')],
])('%s in place of timing', (_, make) => {
  test('has a problem, and the engines are listed, collected and cleared', async () => {
    const folder = place();
    const store = open(folder);
    const engines = [await keep(store, 'a'), await keep(store, 'c')];
    const elsewhere = victim(folder);
    const before = content(elsewhere);
    make(join(store.place, 'timing'), elsewhere);
    const listed = await trtforge(['cache', 'ls', '--cache-dir', store.place, '--json']);
    expect([listed.exitCode, listed.json<CacheList>()]).toMatchObject([
      1,
      { timingCaches: { count: 0, problem: { code: 'TF_FILE_UNREADABLE' } } },
    ]);
    expect(listed.json<CacheList>().engines).toHaveLength(2);
    const dry = await trtforge(['cache', 'clear', '--cache-dir', store.place, '--dry-run']);
    expect(dry.exitCode).toBe(0);
    const { planPath } = engines[0]!;
    const collected = await trtforge(['cache', 'gc', '--cache-dir', store.place, '--max-size', '1K']);
    expect([collected.exitCode, collected.err]).toEqual([
      0,
      expect.stringContaining('timing is not a folder'),
    ]);
    expect([existsSync(planPath), existsSync(join(store.place, 'timing'))]).toEqual([false, true]);
    const cleared = await trtforge(['cache', 'clear', '--cache-dir', store.place, '--yes']);
    expect([cleared.exitCode, existsSync(join(store.place, 'timing'))]).toEqual([0, false]);
    expect(content(elsewhere)).toEqual(before);
  });
});

describe('links further in', () => {
  const digest = identityDigest(sampleIdentity());
  test.each([
    ['a shard', [digest.slice(0, 2)]],
    ['an engine’s folder', [digest.slice(0, 2), digest]],
  ])(
    '%s that is a link: the entry has a problem, is not written through, and clear removes the link alone',
    async (_what, way) => {
      const folder = place();
      const store = open(folder);
      const sound = await keep(store, 'c');
      const elsewhere = victim(folder);
      mkdirSync(join(elsewhere, digest));
      const link = join(store.place, 'by-identity', ...way);
      rmSync(link, { recursive: true, force: true });
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(elsewhere, link);
      const before = content(elsewhere);
      expect(await store.get(digest)).toMatchObject({ found: false, code: 'TF_FILE_UNREADABLE' });
      expect(store.whyUnwritable(digest)).toMatchObject({ code: 'TF_STORE_UNWRITABLE' });
      await expect(
        store.put(join(folder, 'nothing.plan'), samplePassport(samplePlan(), sampleIdentity())),
      ).rejects.toMatchObject({ code: 'TF_FILE_UNREADABLE' });
      const listed = (await listCache(store)).engines;
      expect(listed.find(({ identity }) => identity === way.at(-1))?.problem?.code).toBe(
        'TF_FILE_UNREADABLE',
      );
      expect(listed.find(({ identity }) => identity === sound.identity)?.problem).toBeNull();
      expect((await store.evict(0)).victims.map(({ identity }) => identity)).toEqual([sound.identity]);
      await store.clear();
      expect([existsSync(link), content(elsewhere)]).toEqual([false, before]);
    },
  );

  test('used: nothing is created, touched or truncated behind it', async () => {
    const folder = place();
    const store = open(folder);
    const { identity, planPath } = await keep(store);
    const used = join(dirname(planPath), 'used');
    const theirs = join(folder, 'theirs.txt');
    writeFileSync(theirs, 'theirs');
    utimesSync(theirs, DAYS_AGO, DAYS_AGO);
    for (const target of [theirs, join(folder, 'nothing')]) {
      rmSync(used, { force: true });
      symlinkSync(target, used);
      expect(await open(folder).get(identity)).toMatchObject({ found: true });
    }
    expect([readFileSync(theirs, 'utf8'), statSync(theirs).mtimeMs]).toEqual(['theirs', DAYS_AGO.getTime()]);
    expect(existsSync(join(folder, 'nothing'))).toBe(false);
  });

  test('a download that was left is not written through a link', () => {
    const folder = place();
    const theirs = join(folder, 'theirs');
    writeFileSync(theirs, 'theirs');
    const sha256 = 'd'.repeat(64);
    const partial = join(folder, 'partial', sha256);
    mkdirSync(partial, { recursive: true });
    symlinkSync(theirs, join(partial, 'plan'));
    writeFileSync(
      ledgerPath(join(partial, 'plan')),
      JSON.stringify({ sha256, etag: 'x', bytes: 6, parts: [1] }),
    );
    const path = join(folder, 'engine.plan');
    takeUp(sha256, path, join(folder, 'partial'));
    expect([existsSync(path), existsSync(ledgerPath(path)), readFileSync(theirs, 'utf8')]).toEqual([
      false,
      false,
      'theirs',
    ]);
  });
});

test('only what has a name of ours and is of our kind is swept', async () => {
  const folder = place();
  const store = open(folder);
  await keep(store);
  const left = victim(folder);
  const [ours, theirs] = [
    ['leases/', 'partial/', 'pending/'],
    ['leases/', 'partial/', 'pending/'],
  ];
  for (const room of ['leases', 'partial', 'pending']) {
    rmSync(join(store.place, room), { recursive: true, force: true });
    spawnSync('cp', ['-a', left, join(store.place, room)]);
    const swept = new Set(
      {
        leases: [],
        partial: ['b'.repeat(64)],
        pending: [`.trtforge-${TOKEN}.unpublished`],
      }[room],
    );
    for (const name of readdirSync(left)) (swept.has(name) ? ours : theirs)?.push(`${room}/${name}`);
  }
  store.pending().remove();
  const there = (paths: readonly string[] = []) =>
    paths.filter((path) => existsSync(join(store.place, path)));
  expect(there(ours)).toEqual(['leases/', 'partial/', 'pending/']);
  expect(there(theirs)).toEqual(theirs);
});

const MKFIFO = 'mkfifo';
const hasFifo = spawnSync(MKFIFO, ['--version']).error === undefined;

/** What may stand where a file is expected. */
const odd: Readonly<Record<string, (path: string) => void>> = {
  ...(hasFifo ? { 'a FIFO': (path: string) => void spawnSync(MKFIFO, [path]) } : {}),
  'a device without end': (path) => symlinkSync('/dev/zero', path),
  'a link to itself': (path) => symlinkSync(path, path),
  'a folder': (path) => mkdirSync(join(path, 'inside'), { recursive: true }),
  'a file of the kernel': (path) => symlinkSync('/proc/self/mem', path),
  'three gigabytes of nothing': (path) => {
    writeFileSync(path, '');
    truncateSync(path, 3 * 2 ** 30);
  },
};

const replaceWith = (what: string, path: string) => {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(dirname(path), { recursive: true });
  odd[what]?.(path);
};

/** The command line in a process of its own: what hangs or grows is ended. */
function cli(folder: string, ...words: readonly string[]) {
  const main = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
  const run = spawnSync(
    process.execPath,
    ['--max-old-space-size=512', main, ...words, '--json', '--cache-dir', join(folder, 'engines')],
    {
      encoding: 'utf8',
      timeout: 240_000,
      killSignal: 'SIGKILL',
      env: { ...process.env, XDG_CACHE_HOME: join(folder, 'xdg') },
    },
  );
  expect(run.signal).toBeNull();
  return JSON.parse(run.stdout) as {
    engines: { identity: string; problem: { code: string } | null }[];
  };
}

describe.each(Object.keys(odd))('%s', (what) => {
  test('in place of a passport, a signature, a plan, a mark: that engine has a problem, and the others are listed, verified, removed', async () => {
    const folder = place();
    const store = open(folder);
    const [sound, ...bad] = [
      await keep(store, 'a'),
      await keep(store, 'b'),
      await keep(store, 'c'),
      await keep(store, 'd'),
    ];
    const [noPassport, noSignature, noPlan] = bad;
    replaceWith(what, passportPath(noPassport?.planPath ?? ''));
    replaceWith(what, signaturePath(noSignature?.planPath ?? ''));
    replaceWith(what, noPlan?.planPath ?? '');
    replaceWith(what, join(dirname(sound?.planPath ?? ''), `in-use.${TOKEN}.json`));
    const problems = (engines: readonly { identity: string; problem: { code: string } | null }[]) =>
      [sound, noPassport, noSignature, noPlan].map(
        (engine) => engines.find(({ identity }) => identity === engine?.identity)?.problem?.code ?? null,
      );
    const named = expect.stringMatching(/^TF_(FILE_UNREADABLE|PASSPORT_INVALID|SIGNATURE_INVALID)$/);
    const noPlanThere = expect.stringMatching(/^TF_(FILE_UNREADABLE|FILE_NOT_FOUND|ENGINE_SIZE_MISMATCH)$/);
    expect(problems(cli(folder, 'cache', 'verify').engines)).toEqual([null, named, named, noPlanThere]);
    expect(problems((await listCache(store)).engines)).toEqual([null, named, named, noPlanThere]);
    for (const engine of bad) expect(await store.get(engine.identity)).toMatchObject({ found: false });
    // A build finds it out, and puts a whole engine in its place.
    for (const letter of ['b', 'c', 'd']) await keep(store, letter);
    expect(problems((await verifyCache(store)).engines)).toEqual([null, null, null, null]);
    const removed = (await open(folder).evict(0)).victims.map(({ identity }) => identity);
    expect(removed).toEqual(expect.arrayContaining(bad.map(({ identity }) => identity)));
  });

  test('in place of a shard or an engine’s folder is that entry’s problem', async () => {
    const folder = place();
    const store = open(folder);
    const sound = await keep(store);
    const entry = join(store.place, 'by-identity', sound.identity.slice(0, 2), 'f'.repeat(64));
    const shard = join(store.place, 'by-identity', sound.identity.startsWith('00') ? '01' : '00');
    for (const path of [entry, shard]) replaceWith(what, path);
    const isFolder = what === 'a folder';
    const { engines } = cli(folder, 'cache', 'verify');
    expect(engines.find(({ identity }) => identity === sound.identity)?.problem).toBeNull();
    expect(engines.filter(({ problem }) => problem !== null)).toHaveLength(isFolder ? 1 : 2);
    expect((await store.evict(0)).victims.map(({ identity }) => identity)).toContain(sound.identity);
  });
});

test('verify and ls in this process name the problem of an unreadable signature alone', async () => {
  const folder = place();
  const store = open(folder);
  const [first, second] = [await keep(store, 'a'), await keep(store, 'b')];
  mkdirSync(signaturePath(first.planPath));
  const { engines, verified } = await verifyCache(store);
  expect(verified).toBe(1);
  expect(engines.find(({ identity }) => identity === first.identity)?.problem?.code).toBe(
    'TF_SIGNATURE_INVALID',
  );
  expect(engines.find(({ identity }) => identity === second.identity)?.problem).toBeNull();
});
