import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { sha256 } from '../../../src/base/files/digest.js';
import { obtainEngine } from '../../../src/engines/builder/obtain-engine.js';
import type { BuildOptions, PlanBuilder } from '../../../src/engines/builder/options.js';
import { verifyEngine } from '../../../src/engines/plan/verify-engine.js';
import { verifyCache } from '../../../src/engines/store/cache.js';
import { openLocalStore } from '../../../src/engines/store/open-stores.js';
import { makeKeys } from '../../../src/engines/store/sign-engines.js';
import { openTrust } from '../../../src/engines/store/trust.js';
import { buildOrLoad } from '../../../src/quality/known-answer/build-or-load.js';
import {
  resolvedBuild,
  sampleOutcome,
  samplePlan,
  sampleToolchain,
  writeSampleModel,
} from '../../support/sample-engine.js';
import { Scene } from './processes.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-private-'));
chmodSync(root, 0o755);
afterAll(() => rmSync(root, { recursive: true, force: true }));
afterEach(() => vi.unstubAllEnvs());
const keys = makeKeys(join(root, 'ours.pem'));
const required = { requireSignature: true, trustKeys: [keys.publicKey] };
const model = await writeSampleModel(join(root, 'sample.onnx'));

/** A store that every user may write in, and a folder for temporary files as /tmp is. */
function openScene(mode = 0o777) {
  const folder = mkdtempSync(join(root, 'case-'));
  chmodSync(folder, 0o755);
  const [store, temporary] = [join(folder, 'store'), join(folder, 'tmp')];
  for (const [path, bits] of [
    [store, mode],
    [join(store, 'pending'), mode],
    [temporary, 0o1777],
  ] as const) {
    mkdirSync(path);
    chmodSync(path, bits);
  }
  vi.stubEnv('TMPDIR', temporary);
  return { folder, store, temporary };
}

/** A plan of the very model that the builder was given. */
const planOf = (bytes: Buffer): Buffer => {
  const plan = samplePlan();
  plan.write(sha256(bytes), 1024);
  return plan;
};

/** A builder during whose work `before` and `after` happen: what it reads and writes others may have changed by then. */
const builderWith =
  (before: () => void, after: () => void, seen: Buffer[] = []): PlanBuilder =>
  async (_, { modelPath, planPath }) => {
    before();
    seen.push(readFileSync(modelPath));
    writeFileSync(planPath, planOf(seen.at(-1)!));
    after();
    return sampleOutcome(4096);
  };

const obtain = (store: string, build: PlanBuilder, wishes: Partial<BuildOptions> = {}) =>
  buildOrLoad(
    {
      model,
      target: 'tensorrt-rtx:sm_89',
      toolchain: sampleToolchain,
      knownAnswer: false,
      precision: 'fp16',
      profiles: ['x:1x64/8x64/32x64'],
      store,
      signKey: keys.privateKey,
      ...wishes,
    },
    { build, environment: { XDG_CACHE_HOME: join(store, '..', 'xdg') } },
  );

const SETPRIV = 'setpriv';

/** Another user puts a folder with a model and a plan of his in the place of every build that he can reach; returns what he did. */
function attack(...places: readonly string[]): string {
  const script = `
    const fs = require('node:fs');
    for (const place of process.argv.slice(1))
      for (const name of fs.readdirSync(place).filter((each) => each.startsWith('.trtforge-')))
        try {
          const path = place + '/' + name;
          fs.renameSync(path, path.replace('.trtforge-', 'aside-'));
          fs.mkdirSync(path);
          fs.chmodSync(path, 0o777);
          for (const file of ['model.onnx', 'engine.plan'])
            fs.writeFileSync(path + '/' + file, ${JSON.stringify(samplePlan(7).toString('latin1'))}, 'latin1');
          console.log('swapped');
        } catch (error) {
          console.log(error.code);
        }`;
  const user = ['--reuid=65534', '--regid=65534', '--clear-groups'];
  const run = spawnSync(SETPRIV, [...user, process.execPath, '-e', script, ...places], {
    encoding: 'utf8',
  });
  expect(run.stderr).toBe('');
  return run.stdout;
}

const isRoot = process.getuid?.() === 0;
describe.skipIf(!isRoot)(
  `another user who may write in the store${isRoot ? '' : ' (not here: root)'}`,
  () => {
    test.each([
      ['the converted model', true],
      ['the plan', false],
    ])('does not get %s of his signed', async (_what, isBefore) => {
      const honest: Buffer[] = [];
      await obtain(
        openScene(0o755).store,
        builderWith(
          () => {},
          () => {},
          honest,
        ),
      );
      const { store, temporary } = openScene();
      const tried: string[] = [];
      const swap = () => void tried.push(attack(join(store, 'pending'), temporary));
      const nothing = () => {};
      const { passport, engine } = await obtain(
        store,
        builderWith(isBefore ? swap : nothing, isBefore ? nothing : swap),
      );
      // He found the build, and could not move it.
      expect(tried).toEqual([expect.stringMatching(/^(EPERM|EACCES)\n$/)]);
      expect(passport.plan.sha256).toBe(sha256(planOf(honest[0]!)));
      expect(sha256(readFileSync(engine))).toBe(passport.plan.sha256);
      const trust = openTrust(required, {});
      const checked = await verifyCache(openLocalStore(store, {}, trust), {
        emit: () => {},
        signal: undefined,
      });
      expect(checked).toMatchObject({ exitCode: 0 });
      expect(readdirSync(temporary)).toEqual([]);
      expect(readdirSync(join(store, 'pending'))).toEqual([]);
    });

    test('nor what is built for a folder that he may write in', async () => {
      const { folder, temporary } = openScene();
      const out = join(folder, 'out');
      mkdirSync(out);
      chmodSync(out, 0o777);
      const tried: string[] = [];
      const build = builderWith(
        () => void tried.push(attack(out, temporary)),
        () => {},
      );
      const output = join(out, 'm.engine');
      const result = await buildOrLoad(
        {
          model,
          target: 'tensorrt-rtx:sm_89',
          toolchain: sampleToolchain,
          knownAnswer: false,
          precision: 'fp16',
          profiles: ['x:1x64/8x64/32x64'],
          store: false,
          signKey: keys.privateKey,
          output,
        },
        { build, environment: {} },
      );
      expect(tried).toEqual([expect.stringMatching(/^(EPERM|EACCES)\n$/)]);
      expect(verifyEngine(output)).toEqual(result.passport);
      expect(readdirSync(out).sort()).toHaveLength(3);
    });
  },
);

describe('where a build happens', () => {
  const placeOf = async (store: string, wishes: Partial<BuildOptions> = {}) => {
    const places: string[] = [];
    const build: PlanBuilder = async (_, { planPath }) => {
      places.push(dirname(dirname(planPath)));
      expect(statSync(dirname(planPath)).mode & 0o777).toBe(0o700);
      writeFileSync(planPath, samplePlan());
      return sampleOutcome(4096);
    };
    const result = await obtain(store, build, { precision: 'as-is', ...wishes });
    return { places, result };
  };

  test('a store of one’s own has its builds, and the plan is moved, not copied', async () => {
    const { store } = openScene(0o755);
    let built = 0n;
    const build: PlanBuilder = async (_, { planPath }) => {
      writeFileSync(planPath, samplePlan());
      built = statSync(planPath, { bigint: true }).ino;
      return sampleOutcome(4096);
    };
    const { engine } = await obtain(store, build, { precision: 'as-is' });
    expect(statSync(engine, { bigint: true }).ino).toBe(built);
    expect((await placeOf(join(store, '..', 'second'))).places).toEqual([
      join(store, '..', 'second', 'pending'),
    ]);
  });

  test.each([
    ['all users', 0o777],
    ['a group', 0o775],
  ])('one that %s may write in does not: TMPDIR has them', async (_who, mode) => {
    const { store, temporary } = openScene(mode);
    expect((await placeOf(store)).places).toEqual([temporary]);
  });

  test.skipIf(isRoot)('where a folder of another user has no room for the engine: nowhere', async () => {
    const { store } = openScene(0o755);
    const { engine } = (await placeOf(store)).result;
    const room = dirname(dirname(engine));
    rmSync(dirname(engine), { recursive: true });
    chmodSync(room, 0o555);
    await expect(placeOf(store)).rejects.toMatchObject({ code: 'TF_STORE_UNWRITABLE' });
    const own = { output: join(store, '..', 'own.engine') };
    expect((await placeOf(store, own)).result).toMatchObject({ source: 'built', engine: own.output });
    chmodSync(room, 0o755);
  });

  test('a folder above the store that others may write in counts as well', async () => {
    const { folder, store } = openScene(0o755);
    const own = mkdtempSync(join(root, 'tmp-'));
    vi.stubEnv('TMPDIR', own);
    chmodSync(folder, 0o777);
    expect((await placeOf(store)).places).toEqual([own]);
  });

  test('below a folder that is closed to others, their rights further in do not count', async () => {
    const { folder, store } = openScene(0o777);
    chmodSync(folder, 0o700);
    expect((await placeOf(store)).places).toEqual([join(store, 'pending')]);
  });

  test('a model that was converted where others may write is converted again before it is signed', async () => {
    const { folder, store } = openScene();
    const output = join(folder, 'run', 'typed.onnx');
    mkdirSync(dirname(output));
    chmodSync(dirname(output), 0o777);
    writeFileSync(output, 'of somebody else');
    for (const [signKey, path] of [
      [keys.privateKey, expect.stringContaining('model.onnx')],
      [undefined, output],
    ]) {
      const read: string[] = [];
      const trust = openTrust({ signKey }, {});
      const build: PlanBuilder = async (_, { modelPath, planPath }) => {
        read.push(modelPath);
        writeFileSync(planPath, samplePlan());
        return sampleOutcome(4096);
      };
      const converted = { output, ms: 1, warnings: [], quantization: null };
      await obtainEngine(
        resolvedBuild(model, { conversion: { precision: 'fp16' }, converted, forceRebuild: true }),
        { store: openLocalStore(store, {}, trust), layers: [], remote: null, trust, maxBytes: null },
        { emit: () => {}, build, areSizesKnown: true },
      ).catch(() => {});
      expect(read).toEqual([path]);
    }
  });

  test('where TMPDIR is open too, what is to be signed is not built, and all else is', async () => {
    const { store, temporary } = openScene();
    chmodSync(temporary, 0o777);
    await expect(placeOf(store)).rejects.toMatchObject({
      code: 'TF_WRITE_FAILED',
      message: expect.stringContaining(temporary),
    });
    expect((await placeOf(store, { signKey: '' })).places).toEqual([join(store, 'pending')]);
    // The remedy.
    const own = join(temporary, '..', 'own');
    mkdirSync(own, { mode: 0o700 });
    vi.stubEnv('TMPDIR', own);
    expect((await placeOf(store, { forceRebuild: true })).places).toEqual([own]);
  });

  const other = ['/dev/shm', '/run', '/tmp'].find(
    (path) =>
      existsSync(path) &&
      statSync(path).dev !== statSync(root).dev &&
      (statSync(path).mode & 0o1777) === 0o1777,
  );
  test.skipIf(other === undefined)('on another file system, the plan is copied into the store', async () => {
    const { store } = openScene();
    vi.stubEnv('TMPDIR', other!);
    const { places, result } = await placeOf(store);
    expect(places).toEqual([other]);
    expect(verifyEngine(result.engine)).toEqual(result.passport);
    expect(readdirSync(join(store, 'pending'))).toEqual([]);
    expect(readdirSync(dirname(result.engine)).filter((name) => name.endsWith('.unpublished'))).toEqual([]);
  });
});

describe('a builder in an open store that is killed', () => {
  test.each([0, 1, 2])(
    'before its rename %i leaves nothing that the next one does not remove',
    async (rename) => {
      const scene = new Scene(root);
      // Below a folder that is closed to others, the store would be a private one.
      chmodSync(scene.folder, 0o755);
      const temporary = join(scene.folder, 'tmp');
      mkdirSync(temporary, { mode: 0o700 });
      mkdirSync(join(scene.store, 'pending'), { recursive: true });
      for (const path of [scene.store, join(scene.store, 'pending')]) chmodSync(path, 0o777);
      const env = { TMPDIR: temporary };
      await scene.run({ dieAtRename: rename, env }).catch(() => {});
      expect(await scene.run({ env })).toMatchObject({ source: 'built' });
      expect(readdirSync(temporary)).toEqual([]);
      const left = readdirSync(scene.store, { recursive: true, encoding: 'utf8' });
      expect(left.filter((name) => name.includes('.unpublished'))).toEqual([]);
    },
  );
});
