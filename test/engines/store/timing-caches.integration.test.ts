import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { sha256 } from '../../../src/base/files/digest.js';
import { namedBuilder } from '../../../src/engines/builder/build-engine.js';
import type { BuildOptions, PlanBuilder } from '../../../src/engines/builder/options.js';
import { makeKeys } from '../../../src/engines/store/sign-engines.js';
import { LARGEST_TIMING_CACHE } from '../../../src/engines/store/timing-folder.js';
import { TrtforgeError } from '../../../src/errors.js';
import { buildOrLoad } from '../../../src/quality/known-answer/build-or-load.js';
import { type Bucket, startBucket } from '../../fakes/bucket.js';
import { affineModel, manyLayers } from '../../fakes/tensorrt/affine.js';
import { fakeEngine } from '../../fakes/tensorrt/engine.js';
import { fakeTrtexec } from '../../fakes/trtexec.js';
import { writeBundle } from '../../support/bundle.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-timing-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const home = process.cwd();
const keys = makeKeys(at('team.pem'));
const others = makeKeys(at('others.pem'));
let environment: NodeJS.ProcessEnv = {};
let model: string;
let meta: string;
let bucket: Bucket;

/** A fake of TensorRT 10.3, whose timing caches have a line for each optimization level, and of its trtexec. */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  engine.writePlan(at('affine.plan'), { kind: 'affine', inner: 4, layers: manyLayers });
  engine.writePlan(at('joint.plan'), {
    kind: 'means',
    inputs: [
      ['encoder_output', 'float32', [-1, 32, -1]],
      ['predictor_output', 'float32', [-1, 16, -1]],
    ],
    outputs: [['joint_output', 'float32', [-1, -1, -1, 38]]],
    layers: manyLayers,
    profiles: [[1, 1, 64]],
  });
  bucket = await startBucket();
  environment = engine.environment({
    ...bucket.environment,
    TENSORRT_HOME: engine.install(at('home')),
    TRTFORGE_TOOLCHAINS: at('none'),
    TRTEXEC: fakeTrtexec(folder, { version: '10.6', says: '10.3.0.0' }),
    XDG_CACHE_HOME: at('cache'),
    FAKE_PLAN: at('affine.plan'),
    NO_COLOR: '1',
  });
  engine.bench.enter(environment);
  process.chdir(folder);
  // A fleet's models are below its folder.
  model = at('affine.onnx');
  copyFileSync(await affineModel(), model);
  meta = await writeBundle(at('speech'));
}, 300_000);
afterAll(() => {
  process.chdir(home);
  bucket.close();
});
beforeEach(() => {
  bucket.objects.clear();
  bucket.asked.length = 0;
  bucket.denied = null;
  for (const name of ['a', 'b', 'cache']) rmSync(at(name), { recursive: true, force: true });
});

/** What the lines of these tests print. */
interface Printed {
  readonly engine: string;
  readonly address: string;
  readonly bytes: number;
  readonly bytesBefore: number;
  readonly timingCaches: { readonly count: number; readonly bytes: number };
  readonly steps: readonly { readonly what: string }[];
  readonly removed: readonly string[];
}

interface Asked extends Partial<BuildOptions> {
  readonly level?: number;
  readonly builder?: 'native' | 'trtexec';
  readonly via?: PlanBuilder;
  readonly set?: NodeJS.ProcessEnv;
}

/** Builds on a machine, which has a store of its own, unless the store has the engine of this level. */
async function build(machine: string, { level = 3, via, set = {}, ...more }: Asked = {}) {
  const { passport, warnings, source } = await buildOrLoad(
    {
      model,
      target: 'tensorrt',
      batch: '1/8/64',
      store: at(machine),
      remote: bucket.place,
      knownAnswer: false,
      settings: { optimizationLevel: level },
      ...more,
    },
    { environment: { ...environment, ...set }, build: via },
  );
  return { use: passport.built.timingCache, warnings, source };
}

/** Runs the builder once `count` of them have taken their caches. */
function together(count: number): PlanBuilder {
  let [waiting, go] = [0, () => {}];
  const all = new Promise<void>((resolve) => {
    go = resolve;
  });
  return async (...args) => {
    if (++waiting === count) go();
    await all;
    return namedBuilder(...args);
  };
}

const levelsIn = (content: Buffer) =>
  Array.from(content.toString().matchAll(/at level (\d)/g), ([, level]) => Number(level)).sort();

/** Paths of files in the only scope of a folder's timing caches. */
function files(machine: string, end = '.timing'): readonly string[] {
  const root = join(machine === 'cache' ? at('cache/trtforge') : at(machine), 'timing');
  const scopes = existsSync(root) ? readdirSync(root) : [];
  expect(scopes.length).toBeLessThan(2);
  return scopes.flatMap((scope) =>
    readdirSync(join(root, scope))
      .filter((name) => name.endsWith(end))
      .map((name) => join(root, scope, name)),
  );
}
const levels = (machine: string) => files(machine).map((path) => levelsIn(readFileSync(path)));
const keysOf = (end = '.timing') => [...bucket.objects.keys()].filter((key) => key.endsWith(end));
const levelsInBucket = () => keysOf().map((key) => levelsIn(bucket.objects.get(key)!.body));

/** Puts these bytes in the place of the only timing cache of a machine or of the bucket, with a description that fits but for `changes`. */
function replace(where: string, content: string, changes: object = {}, name = sha256(content)): void {
  const isBucket = where === 'bucket';
  const [path = ''] = isBucket ? keysOf() : files(where);
  const old = isBucket ? bucket.objects.get(`${path}.json`)!.body : readFileSync(`${path}.json`);
  const { signature: _, ...known } = JSON.parse(old.toString());
  const facts = { ...known, sha256: sha256(content), bytes: content.length, ...changes };
  const to = path.replace(/[0-9a-f]{64}/, name);
  for (const each of [path, `${path}.json`])
    if (isBucket) bucket.objects.delete(each);
    else rmSync(each);
  for (const [each, body] of [
    [to, content],
    [`${to}.json`, JSON.stringify(facts)],
  ] as const)
    if (isBucket) bucket.objects.set(each, { body: Buffer.from(body) });
    else writeFileSync(each, body);
}

describe('a build', () => {
  test('starts with the kernel times of the builds before it, and an engine of the store asks for none', async () => {
    expect(await build('a', { remote: false })).toEqual({ use: 'new', warnings: [], source: 'built' });
    expect(await build('a', { remote: false, level: 4 })).toMatchObject({ use: 'hit', warnings: [] });
    expect(levels('a')).toEqual([[3, 4]]);
    const [description = ''] = files('a', '.json');
    expect(JSON.parse(readFileSync(description, 'utf8'))).toMatchObject({
      schema: 'trtforge.timing-cache/1',
      gpu: expect.any(String),
      target: { version: '10.3.0', computeCapabilities: [90] },
    });
    bucket.asked.length = 0;
    expect(await build('a', { level: 4 })).toMatchObject({ source: 'local' });
    expect(bucket.asked.filter((line) => line.includes('.timing'))).toEqual([]);
  });

  test('on another machine starts with those of the bucket, merges its own, and fetches none twice', async () => {
    await build('a', { level: 1 });
    await build('b', { level: 2, remote: false });
    expect(await build('b', { level: 3 })).toMatchObject({ use: 'hit', warnings: [] });
    expect([levels('b'), levelsInBucket()]).toEqual([[[1, 2, 3]], [[1, 2, 3]]]);
    bucket.asked.length = 0;
    await build('b', { level: 4 });
    expect(bucket.asked.filter((line) => /^GET .*\.timing$/.test(line))).toEqual([]);
    expect(await build('a', { level: 5 })).toMatchObject({ use: 'hit', warnings: [] });
    expect([levels('a'), levelsInBucket()]).toEqual([[[1, 2, 3, 4, 5]], [[1, 2, 3, 4, 5]]]);
  });

  test.each([
    ['one store', ['a', 'a', 'a']],
    ['one bucket', ['a', 'b', 'a']],
  ])('loses nothing where three at once share %s', async (_, machines) => {
    await build('a', { level: 0 });
    const via = together(3);
    const built = await Promise.all(machines.map((machine, at) => build(machine, { level: at + 1, via })));
    expect(built.map(({ use }) => use)).toEqual(['hit', 'hit', 'hit']);
    expect(levelsInBucket().sort()).toEqual([
      [0, 1],
      [0, 2],
      [0, 3],
    ]);
    await build('b', { level: 4 });
    expect([levels('b'), levelsInBucket()]).toEqual([[[0, 1, 2, 3, 4]], [[0, 1, 2, 3, 4]]]);
  });

  test('without a store has those of the user', async () => {
    for (const level of [1, 2]) await build('a', { level, store: false, output: at('no-store.engine') });
    expect([levels('cache'), levels('a'), keysOf()]).toEqual([[[1, 2]], [], []]);
  });

  test('with trtexec, which reads one, takes the largest and leaves the others', async () => {
    const via = together(2);
    await Promise.all([1, 2].map((level) => build('a', { level, via, remote: false })));
    expect(levels('a').sort()).toEqual([[1], [2]]);
    expect(await build('a', { level: 3, builder: 'trtexec', remote: false })).toMatchObject({ use: 'hit' });
    const contents = files('a').map((path) => readFileSync(path, 'utf8'));
    expect(contents).toHaveLength(2);
    expect(contents).toContain('a timing cache');
  });

  test.each([
    ['a file of the user', 'mine.timing', true],
    ['none', null, false],
  ])('that names %s neither takes nor gives any', async (_, timingCache, isWritten) => {
    await build('a', { level: 1 });
    bucket.asked.length = 0;
    expect((await build('a', { level: 2, timingCache })).use).toBe(isWritten ? 'new' : 'none');
    if (timingCache !== null) {
      // One of another version stays what it is.
      writeFileSync(timingCache, 'of another version');
      expect((await build('a', { level: 5, timingCache })).use).toBe('rejected');
      expect(readFileSync(timingCache, 'utf8')).toBe('of another version');
    }
    expect([existsSync(at('mine.timing')), levels('a'), levelsInBucket()]).toEqual([isWritten, [[1]], [[1]]]);
    expect(bucket.asked.filter((line) => line.includes('.timing'))).toEqual([]);
    rmSync(at('mine.timing'), { force: true });
  });

  test.each([
    ['lists them', /^GET \/?$/],
    ['reads them', /^GET .*\.timing/],
    ['writes them', /^PUT .*\.timing/],
    ['removes them', /^DELETE .*\.timing/],
  ])('goes on with a warning where the bucket never %s', async (_, denied) => {
    await build('a', { level: 1 });
    bucket.denied = denied;
    const { source, warnings } = await build('b', { level: 2 });
    expect(source).toBe('built');
    expect(warnings).toEqual([expect.stringContaining(`are not shared through ${bucket.place}`)]);
    expect(levels('b')).toEqual([[...(_.startsWith('l') || _.startsWith('rea') ? [] : [1]), 2]]);
  });

  test('leaves out a link in a folder that others may write', async () => {
    writeFileSync(at('elsewhere'), '');
    await build('a', { level: 1, remote: false });
    rmSync(at('a/timing'), { recursive: true });
    writeFileSync(at('a/timing'), 'not a folder');
    const { use, warnings } = await build('a', { level: 2, remote: false });
    expect(use).toBe('new');
    expect(warnings).toEqual([expect.stringMatching(/are not shared through .*timing is not a folder/)]);
  });
});

describe('a bad one', () => {
  const content = 'CACHE\0\nkernels of 1 at level 7\n';

  test.each([
    ['whose bytes were changed', 'a', {}, 'f'.repeat(64), 'TF_TIMING_CACHE_INVALID'],
    [
      'whose bytes were changed in the bucket',
      'bucket',
      { sha256: 'f'.repeat(64) },
      'f'.repeat(64),
      'TF_REMOTE_DAMAGED',
    ],
    [
      'whose bytes are not those of its name',
      'a',
      { sha256: 'f'.repeat(64) },
      'f'.repeat(64),
      'TF_TIMING_CACHE_INVALID',
    ],
    ['of another GPU', 'a', { gpu: 'NVIDIA T4' }, undefined, 'TF_TIMING_CACHE_INVALID'],
    [
      'of another driver in the bucket',
      'bucket',
      { driverBranch: '1' },
      undefined,
      'TF_TIMING_CACHE_INVALID',
    ],
    [
      'that is described as something else',
      'a',
      { schema: 'trtforge.passport/1' },
      undefined,
      'TF_TIMING_CACHE_INVALID',
    ],
    [
      'that is too large',
      'bucket',
      { bytes: LARGEST_TIMING_CACHE + 1 },
      undefined,
      'TF_TIMING_CACHE_INVALID',
    ],
  ] as const)('%s is not used, and replaced', async (_, where, changes, name, code) => {
    await build('a', { level: 1, remote: where === 'bucket' ? bucket.place : false });
    replace(where, content, changes, name);
    const machine = where === 'bucket' ? 'b' : 'a';
    const { use, warnings } = await build(machine, { level: 2 });
    expect(use).toBe('new');
    expect(warnings).toEqual([expect.stringMatching(new RegExp(`not used.*\\(${code}\\)`, 's'))]);
    expect([levels(machine), levelsInBucket()]).toEqual([[[2]], [[2]]]);
  });

  test('that is larger than its description is rejected before it is read', async () => {
    await build('a', { level: 1, remote: false });
    truncateSync(files('a')[0]!, LARGEST_TIMING_CACHE + 1);
    const { use, warnings } = await build('a', { level: 2, remote: false });
    expect([use, warnings.length, levels('a')]).toEqual(['new', 1, [[2]]]);
  });

  test('that has grown too large goes, with those that it was made of', async () => {
    await build('a', { level: 1 });
    const via: PlanBuilder = async (...args) => {
      const outcome = await namedBuilder(...args);
      truncateSync(args[0].timingCache!, LARGEST_TIMING_CACHE + 1);
      return outcome;
    };
    expect(await build('a', { level: 2, via })).toMatchObject({ use: 'hit' });
    expect([files('a'), keysOf()]).toEqual([[], []]);
    expect(await build('a', { level: 3 })).toMatchObject({ use: 'new' });
  });

  test.each(['a', 'bucket'])('that the library rejects is used once: %s', async (where) => {
    await build('a', { level: 1 });
    replace(where, 'of another version');
    const machine = where === 'bucket' ? 'b' : 'a';
    expect((await build(machine, { level: 2, remote: where === 'a' ? false : bucket.place })).use).toBe(
      'rejected',
    );
    expect(files(machine)).toEqual([]);
    expect(keysOf()).toHaveLength(where === 'a' ? 1 : 0);
    const again = await build(machine, { level: 3, remote: where === 'a' ? false : bucket.place });
    expect(again).toMatchObject({ use: 'new', warnings: [] });
    expect((await build(machine, { level: 4 })).use).toBe('hit');
  });

  test('that the library does not take at all is replaced by what this build measures', async () => {
    await build('a', { level: 1, remote: false });
    replace('a', 'REFUSED');
    expect((await build('a', { level: 2, remote: false })).use).toBe('rejected');
    expect(levels('a')).toEqual([[2]]);
    expect((await build('a', { level: 3, remote: false })).use).toBe('hit');
  });

  test('of several that the library rejects is the only one that goes', async () => {
    const via = together(2);
    await Promise.all([1, 2].map((level) => build('a', { level, via, remote: false })));
    const [path = ''] = files('a').filter((each) => levelsIn(readFileSync(each))[0] === 1);
    // The first by name is the one that others are merged into.
    let bad = 'bad';
    while (files('a').every((each) => basename(each) > sha256(bad))) bad += '!';
    const facts = {
      ...JSON.parse(readFileSync(`${path}.json`, 'utf8')),
      sha256: sha256(bad),
      bytes: bad.length,
    };
    const to = path.replace(/[0-9a-f]{64}/, sha256(bad));
    writeFileSync(to, bad);
    writeFileSync(`${to}.json`, JSON.stringify(facts));
    expect((await build('a', { level: 3, remote: false })).use).toBe('hit');
    expect(levels('a')).toEqual([[1, 2, 3]]);
    expect(files('a', '.rejected')).toEqual([`${to}.rejected`]);
  });

  test('that a bucket keeps all the same is not fetched again', async () => {
    await build('a', { level: 1 });
    replace('bucket', 'of another version');
    bucket.denied = /^(PUT|DELETE) /;
    expect((await build('b', { level: 2 })).use).toBe('rejected');
    expect(keysOf()).toHaveLength(1);
    bucket.asked.length = 0;
    expect((await build('b', { level: 3 })).use).toBe('new');
    expect(bucket.asked.filter((line) => /^(GET|HEAD) .*\.timing$/.test(line))).toEqual([]);
    bucket.denied = null;
    expect((await build('b', { level: 4 })).use).toBe('hit');
    expect(levelsInBucket()).toEqual([[3, 4]]);
  });

  test('that a build dies with is gone for the next, also from the bucket; the error states so', async () => {
    await build('a', { level: 1 });
    const died = await build('b', { level: 2, set: { FAKE_BUILD: 'aborts' } }).catch((error) => error);
    expect(died).toMatchObject({
      code: 'TF_CHILD_DIED',
      details: { signal: 'SIGABRT' },
      remedy: expect.stringMatching(
        /^The build started with timing caches.* removed: run the same line again\./,
      ),
    });
    expect(keysOf()).toEqual([]);
    expect(await build('b', { level: 2 })).toMatchObject({ use: 'new', warnings: [] });
    // Nothing is known of one that was not given.
    rmSync(at('b'), { recursive: true });
    bucket.objects.clear();
    const cold = await build('b', { level: 2, set: { FAKE_BUILD: 'aborts' } }).catch((error) => error);
    expect(cold.remedy).not.toContain('timing');
  });

  test.each([
    ['killed from outside', 'TF_CHILD_DIED', { signal: 'SIGKILL', exitCode: null }],
    ['killed from outside in a shell', 'TF_CHILD_DIED', { signal: null, exitCode: 137 }],
    ['that fails', 'TF_BUILD_FAILED', {}],
  ] as const)('is not what a build %s has met', async (_, code, details) => {
    await build('a', { level: 1 });
    const via: PlanBuilder = () => Promise.reject(new TrtforgeError(code, 'It ended.', { details }));
    await expect(build('a', { level: 2, via })).rejects.toMatchObject({ code });
    expect(await build('a', { level: 2 })).toMatchObject({ use: 'hit' });
  });
});

describe('where signatures are required', () => {
  const signed = { signKey: keys.privateKey, requireSignature: true };

  test('a signed one is used', async () => {
    await build('a', { level: 1, ...signed });
    expect(await build('b', { level: 2, ...signed })).toMatchObject({ use: 'hit', warnings: [] });
    // Who requires none uses it too.
    expect(await build('b', { level: 3 })).toMatchObject({ use: 'hit', warnings: [] });
  });

  test.each([
    ['unsigned', {}, {}, 'it is not signed'],
    ['of another key', { signKey: others.privateKey }, {}, 'which is not trusted here'],
    ['changed after it was signed', { signKey: keys.privateKey }, { at: 'yesterday' }, 'does not fit'],
  ])('one that is %s is not, and replaced by a signed one', async (_, by, changes, why) => {
    await build('a', { level: 1, ...by });
    const [path = ''] = keysOf('.timing.json');
    const document = { ...JSON.parse(bucket.objects.get(path)!.body.toString()), ...changes };
    bucket.objects.set(path, { body: Buffer.from(JSON.stringify(document)) });
    const { use, warnings } = await build('b', { level: 2, ...signed });
    expect(use).toBe('new');
    expect(warnings).toEqual([expect.stringMatching(new RegExp(`${why}.*\\(TF_SIGNATURE_INVALID\\)`))]);
    expect(levelsInBucket()).toEqual([[2]]);
    expect(await build('b', { level: 3, ...signed })).toMatchObject({ use: 'hit', warnings: [] });
  });
});

describe('cache', () => {
  const cache = async (...args: readonly string[]) => {
    const { exitCode, json } = await trtforge(['cache', ...args, '--json'], environment);
    expect(exitCode).toBe(0);
    return json<Printed>();
  };

  test.each([
    ['--cache-dir', () => at('a')],
    ['--remote', () => bucket.place],
  ])('gc and clear count and remove them: %s', async (option, place) => {
    await build('a', { level: 1 });
    const where = [option, place()];
    const timing = expect.stringMatching(/^timing\/tensorrt-10\.3\.0_sm_90_\w+\/[0-9a-f]{64}\.timing$/);
    const listed = await cache('ls', ...where);
    const bytes = { before: listed.bytes + listed.timingCaches.bytes };
    expect(listed.timingCaches).toMatchObject({ count: 1, bytes: expect.any(Number) });
    const plan = await cache('gc', ...where, '--max-size', '1B', '--dry-run');
    expect(plan.steps.map(({ what }) => what)).toContainEqual(timing);
    const collected = await cache('gc', ...where, '--max-size', '1B', '--yes');
    expect(collected.bytesBefore).toBe(bytes.before);
    expect(collected.removed).toContainEqual(timing);
    expect(option === '--remote' ? keysOf() : files('a')).toEqual([]);
    await build('a', { level: 2 });
    const cleared = await trtforge(['cache', 'clear', ...where, '--yes'], environment);
    expect(cleared.out + cleared.err).toMatch(/ engines? and 1 timing cache removed from /);
    expect(option === '--remote' ? keysOf() : files('a')).toEqual([]);
  });
});

describe('every door of a build has them', () => {
  const bundle = [
    '--target',
    'tensorrt',
    '--only',
    'joint',
    '--outdir',
    at('engines'),
    '--cache-dir',
    at('b'),
  ];
  const joint = { FAKE_PLAN: at('joint.plan') };
  const shared = ['--target', 'tensorrt', '--batch', '1/8/64'];
  const used = (path: string) => JSON.parse(readFileSync(path, 'utf8')).built.timingCache;
  const line = async (args: readonly string[], set: NodeJS.ProcessEnv = {}) => {
    const { exitCode, json, err } = await trtforge([...args, '--json'], { ...environment, ...set });
    expect(exitCode, err).toBe(0);
    return json<Printed>();
  };

  test('build, with the bucket of --remote', async () => {
    await build('a', { level: 1 });
    const result = await line(['build', model, ...shared, '--cache-dir', at('b'), '--remote', bucket.place]);
    expect(used(`${result.engine}.passport.json`)).toBe('hit');
  });

  test('forge', async () => {
    await build('a', { level: 1 });
    const where = ['--cache-dir', at('b'), '--remote', bucket.place, '--skip', 'verify,bench'];
    await line(['forge', model, ...shared, ...where, '--run-root', at('run')]);
    expect([levels('b'), levelsInBucket()]).toEqual([[[0, 1]], [[0, 1]]]);
  });

  test('bundle build, which leaves a copy in its folder', async () => {
    await build('a', { level: 1 });
    await line(['bundle', 'build', meta, ...bundle, '--remote', bucket.place], joint);
    expect([levels('b'), levelsInBucket()]).toEqual([[[0, 1]], [[0, 1]]]);
    expect(levelsIn(readFileSync(at('engines/timing.cache')))).toEqual([0, 1]);
    const report = JSON.parse(readFileSync(at('engines/build_report.json'), 'utf8'));
    expect(report.components[0]).toMatchObject({ timing_cache_state: 'hit' });
    // A file that is named is the user's own.
    const named = ['--timing-cache', at('own.cache'), '--force-rebuild'];
    await line(['bundle', 'build', meta, ...bundle, ...named, '--remote', 'none'], joint);
    expect(levelsIn(readFileSync(at('own.cache')))).toEqual([0]);
    expect(levels('b')).toEqual([[0, 1]]);
  });

  test.each(['folder', 'bucket'])('tasks of a fleet, each on a node of its own, over a %s', async (kind) => {
    const store = kind === 'bucket' ? bucket.place : at('a');
    const models = [32, 64].map((most) => `  - { model: ${model}, batch: 1/8/${most} }`).join('\n');
    const target = "h100: { target: 'tensorrt@10.3.0:sm_90' }";
    writeFileSync(at('engines.yaml'), `store: ${store}\ntargets: { ${target} }\nmodels:\n${models}\n`);
    const { address } = await line(['fleet', 'plan', at('engines.yaml')]);
    const used: unknown[] = [];
    for (const job of [0, 1]) {
      const node = { ...environment, XDG_CACHE_HOME: at(`node-${job}`) };
      const { json } = await trtforge(['fleet', 'work', address, '--jobs', String(job), '--json'], node);
      const { jobs } = json<{
        readonly jobs: readonly { readonly did: string; readonly identity: string }[];
      }>();
      expect(jobs, JSON.stringify(jobs)).toMatchObject([{ did: 'built' }]);
      const { identity } = jobs[0]!;
      const entry = bucket.objects.get(`engines/.by-identity/${identity.slice(0, 2)}/${identity}.json`);
      const path = at(`a/by-identity/${identity.slice(0, 2)}/${identity}/engine.plan.passport.json`);
      const passport = entry === undefined ? readFileSync(path, 'utf8') : entry.body.toString();
      used.push(/"timingCache": ?"(\w+)"/.exec(passport)?.[1]);
    }
    expect(used).toEqual(['new', 'hit']);
  });
});
