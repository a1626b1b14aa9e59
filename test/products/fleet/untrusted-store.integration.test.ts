import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { openLocalStore } from '../../../src/engines/store/open-stores.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { documentOf } from '../../../src/products/fleet/jobs.js';
import type {
  FleetPlan,
  FleetStatus,
  FleetWork,
  WorkRecord,
} from '../../../src/products/fleet/plan-schema.js';
import { describeWith } from '../../support/needs.js';
import { samplePlan as planBytes, samplePassport, writeSampleModel } from '../../support/sample-engine.js';
import { type Terminal, trtforge } from '../../support/trtforge.js';
import { fakePrograms } from './sample-plan.js';

/** The folder in which the file system lets nothing be made. */
const mounted = vi.hoisted(() => ({ readOnly: null as string | null }));
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const openSync: typeof fs.openSync = (path, flags, mode) => {
    if (mounted.readOnly !== null && flags === 'wx' && String(path).startsWith(mounted.readOnly))
      throw Object.assign(new Error('EROFS'), { code: 'EROFS', syscall: 'open' });
    return fs.openSync(path, flags, mode);
  };
  return { ...fs, openSync, default: { ...fs, openSync } };
});

const home = process.cwd();
const root = mkdtempSync(join(tmpdir(), 'trtforge-untrusted-'));
/** A folder of models, where tasks run; another one beside it; the store of both. */
let models = '';
let beside = '';
let store = '';
let environment: NodeJS.ProcessEnv = {};
type Planned = FleetPlan & { readonly address: string };

beforeAll(() => writeSampleModel(join(root, 'sample.onnx')));
beforeEach(async () => {
  const folder = mkdtempSync(join(root, 'case-'));
  [models, beside, store] = ['models', 'beside', 'store'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const each of [models, beside, store]) mkdirSync(each);
  for (const each of [models, beside])
    writeFileSync(join(each, 'm.onnx'), readFileSync(join(root, 'sample.onnx')));
  environment = { ...process.env, SLURMD_NODENAME: 'n1', XDG_CACHE_HOME: join(folder, 'cache') };
  for (const name of ['SIGNING_KEY', 'TRUSTED_KEYS', 'REQUIRE_SIGNATURE'])
    delete environment[`TRTFORGE_${name}`];
  mounted.readOnly = null;
  process.chdir(models);
});
afterAll(() => {
  process.chdir(home);
  rmSync(root, { recursive: true, force: true });
});

const run = (words: readonly string[], more: NodeJS.ProcessEnv = {}, terminal?: Terminal) =>
  trtforge(['fleet', ...words, '--json'], { ...environment, ...more }, terminal);

const RTX = 'tensorrt-rtx@1.7.1.116:sm_89';
// A name of its own, so that knip does not look for a package of it.
const MKFIFO = 'mkfifo';

/** Not installed where tests run. */
const OTHER = 'tensorrt@10.13.3.9:sm_90';

function engines(entry = '', { target = RTX, where = 'local' } = {}): string {
  const path = join(models, 'engines.yaml');
  const model = entry.includes('model:') ? '' : 'model: m.onnx, ';
  writeFileSync(
    path,
    `store: ${store}\ntargets: { t: { target: '${target}', where: ${where} } }\nmodels: [{ ${model}batch: 1/2/4${entry && `, ${entry}`} }]\n`,
  );
  return path;
}

async function planned(file = engines(), more: NodeJS.ProcessEnv = {}): Promise<Planned> {
  const { json } = await run(['plan', file], more);
  expect(json().error).toBeUndefined();
  return json<Planned>();
}

/** A pair of keys: the variables of who signs, and of who trusts that. */
async function keys(name = 'team') {
  const path = join(dirname(models), `${name}.pem`);
  await trtforge(['cache', 'keygen', '-o', path, '--json'], environment);
  return { signs: { TRTFORGE_SIGNING_KEY: path }, trusts: { TRTFORGE_TRUSTED_KEYS: `${path}.pub` } };
}
const required = { TRTFORGE_REQUIRE_SIGNATURE: '1' };

const rewritten = (path: string, change: (document: Record<string, never>) => void) => {
  const document = JSON.parse(readFileSync(path, 'utf8'));
  change(document);
  writeFileSync(path, JSON.stringify(document));
};
const codeOf = async (words: readonly string[], more: NodeJS.ProcessEnv = {}) => {
  const { json, exitCode } = await run(words, more);
  return [exitCode, json().error?.code ?? null];
};

describe('a plan that was changed in the store counts for no verb', () => {
  const verbs = [['work'], ['status'], ['report', '-o', '-'], ['submit', '--yes'], ['submit', '--dry-run']];
  // biome-ignore lint/suspicious/noExplicitAny: what a writer of JSON may do.
  const changes: readonly [string, (plan: any) => void][] = [
    ['a plug-in', ({ jobs }) => Object.assign(jobs[0].options, { plugin: ['/evil.so'] })],
    ['another model', ({ jobs }) => Object.assign(jobs[0].model, { path: '../beside/m.onnx' })],
    ['another digest of the model', ({ jobs }) => Object.assign(jobs[0].model, { digest: 'a'.repeat(64) })],
    ['another option', ({ jobs }) => Object.assign(jobs[0].options, { batch: '1/2/8' })],
    ['a policy less', ({ jobs }) => Object.assign(jobs[0], { gate: null })],
    ['another recipe', ({ jobs }) => Object.assign(jobs[0].recipe, { precision: 'fp16' })],
    ['another folder', (plan) => Object.assign(plan, { folder: '/' })],
    ['another store', (plan) => Object.assign(plan, { store: '/elsewhere' })],
    ['another machine', ({ targets }) => Object.assign(targets.t.where.ssh, { host: 'evil' })],
    ['another target', ({ targets }) => Object.assign(targets.t, { target: OTHER })],
    ['another index', ({ jobs }) => Object.assign(jobs[0], { index: 1 })],
    ['no job', (plan) => Object.assign(plan, { jobs: [] })],
    ['an ID of another', (plan) => Object.assign(plan, { id: '0'.repeat(32) })],
  ];
  test.each(changes)('%s', async (_, change) => {
    writeFileSync('p.yaml', 'schema: trtforge.gate-policy/1\nchecks: []\n');
    const { address } = await planned(engines('gate: p.yaml', { where: '{ ssh: { host: mine } }' }));
    expect(await codeOf(['status', address])).toEqual([4, null]);
    rewritten(address, change);
    for (const [verb = '', ...words] of verbs)
      expect(await codeOf([verb, address, ...words])).toEqual([2, 'TF_FLEET_INVALID']);
    expect(existsSync(join(store, 'fleet', 'records'))).toBe(false);
  });

  test('states, which are not content: no task judges them', async () => {
    const { address, jobs } = await planned(engines('', { target: OTHER }));
    const claimed = () =>
      rewritten(address, (plan) => {
        for (const job of (plan as unknown as Planned).jobs) Object.assign(job, { state: 'have', why: null });
      });
    claimed();
    const work = await run(['work', address]);
    // It came so far as to miss the library.
    expect([work.exitCode, work.json<FleetWork>().jobs]).toMatchObject([
      3,
      [{ identity: jobs[0]!.identity, did: 'failed', code: 'TF_TOOLCHAIN_NOT_FOUND' }],
    ]);
    expect((await run(['work', address, '--index', '0'])).json<FleetWork>().jobs).toHaveLength(1);
    expect((await run(['status', address])).json<FleetStatus>()).toMatchObject({
      outcome: 'inconclusive',
      jobs: [{ state: 'missing' }],
    });
    const { json } = await run(['submit', address, '--dry-run']);
    expect(json<{ steps: readonly { skipped: string | null }[] }>().steps).toMatchObject([{ skipped: null }]);
    // Where signatures are required, they are signed with the rest.
    const { signs, trusts } = await keys();
    expect((await planned(engines('', { target: OTHER }), signs)).address).toBe(address);
    claimed();
    expect(await codeOf(['work', address], { ...required, ...trusts, ...signs })).toEqual([
      2,
      'TF_SIGNATURE_INVALID',
    ]);
  });

  test('what the store has ends at once', async () => {
    const { file, record, put } = await gated();
    put(record);
    const { address } = await planned(file);
    rewritten(address, (plan) => {
      Object.assign((plan as unknown as Planned).jobs[0]!, { state: 'missing', why: null });
    });
    const work = await run(['work', address]);
    expect([work.exitCode, work.json<FleetWork>().jobs]).toMatchObject([0, [{ did: 'there' }]]);
  });

  test('the shorter ID of an earlier version, which did not cover its content', async () => {
    const { address } = await planned();
    const old = join(dirname(address), '0123456789ab.json');
    renameSync(address, old);
    const { json } = await run(['work', old]);
    expect(json().error).toMatchObject({ code: 'TF_FLEET_INVALID', remedy: expect.stringContaining('plan') });
  });

  test.each([
    ['deep', () => `${'['.repeat(1 << 24)}`],
    ['large', () => ' '.repeat((1 << 24) + 1)],
    ['of many values', () => `{"jobs":[${'0,'.repeat(1 << 22)}0]}`],
  ])('one that is %s', async (_, content) => {
    const { address } = await planned();
    writeFileSync(address, content());
    expect(await codeOf(['status', address])).toEqual([2, 'TF_FLEET_INVALID']);
  });
});

describe('what decides which code runs, or leaves the folder', () => {
  /** What a task of the plan ends with. */
  const worked = async (address: string, more: NodeJS.ProcessEnv = {}) =>
    (await run(['work', address, '--jobs', '0'], more)).json<FleetWork>().jobs[0]?.code;

  test.each<[string, () => string]>([
    ['a plug-in', () => 'plugin: [m.onnx]'],
    ['the ONNX Runtime of a calibration', () => 'onnxruntime: m.onnx'],
    ['a model of another folder', () => 'model: ../beside/m.onnx'],
    ['an absolute path', () => `model: ${join(beside, 'm.onnx')}`],
    [
      'a link that leaves the folder',
      () => {
        symlinkSync(beside, join(models, 'sub'));
        return 'model: sub/m.onnx';
      },
    ],
    [
      'a policy',
      () => {
        writeFileSync(join(beside, 'p.yaml'), 'schema: trtforge.gate-policy/1\nchecks: []\n');
        return 'gate: ../beside/p.yaml';
      },
    ],
    ['samples', () => "inputs: ['../beside']"],
    ['an array of an input', () => `inputs: ['x=@${join(beside, 'x.npy')}']`],
    ['an array of an input with a slash in its name', () => `inputs: ['a/b=@${join(beside, 'x.npy')}']`],
    [
      'a file that is written',
      () => {
        writeNpy('x.npy', tensorFrom('float32', [8, 64], new Float32Array(512).fill(1)));
        return 'precision: int8, calibration: x.npy, calibration-cache: ../beside/new.json';
      },
    ],
  ])('is taken of a signed plan alone: %s', async (_, entry) => {
    const file = engines(entry(), { target: OTHER });
    const { address } = await planned(file);
    expect(await worked(address)).toBe('TF_FLEET_INVALID');
    const { signs, trusts } = await keys();
    expect((await planned(file, signs)).address).toBe(address);
    // The next that is wrong is the machine.
    expect(await worked(address, trusts)).toBe('TF_TOOLCHAIN_NOT_FOUND');
    expect(await worked(address)).toBe('TF_FLEET_INVALID');
    expect(await worked(address, (await keys('other')).trusts)).toBe('TF_FLEET_INVALID');
    expect(readdirSync(beside)).not.toContain('new.json');
  });

  test('is not sent where its tasks would reject it', async () => {
    const ssh = `touch '${join(beside, 'sent')}'`;
    const { PATH } = fakePrograms(join(beside, 'bin'), { ssh });
    const file = engines('model: ../beside/m.onnx', { where: '{ ssh: { host: mine } }' });
    expect(await codeOf(['submit', file], { PATH })).toEqual([2, 'TF_FLEET_INVALID']);
    expect(existsSync(join(beside, 'sent'))).toBe(false);
    const { signs } = await keys();
    expect(await codeOf(['submit', file], { PATH, ...signs })).toEqual([0, null]);
    expect(existsSync(join(beside, 'sent'))).toBe(true);
  });

  test('is the own affair of who names the engines file, here', async () => {
    const file = engines('model: ../beside/m.onnx', { target: OTHER });
    await run(['submit', file]);
    const [job] = (await run(['status', file])).json<FleetStatus>().jobs;
    expect(job).toMatchObject({ state: 'missing', why: [expect.stringContaining('lacks')] });
  });
});

describe('where signatures are required', () => {
  test('plans are those of trusted keys, unchanged', async () => {
    const [{ signs, trusts }, other] = [await keys(), await keys('other')];
    const file = engines();
    const { address } = await planned(file);
    const strict = { ...required, ...trusts };
    const rejected = [2, 'TF_SIGNATURE_INVALID'];
    expect(await codeOf(['status', address], strict)).toEqual(rejected);
    await planned(file, other.signs);
    expect(await codeOf(['status', address], strict)).toEqual(rejected);
    await planned(file, signs);
    expect(await codeOf(['status', address], strict)).toEqual([4, null]);
    // Without a key here the signed one stays.
    await planned(file, trusts);
    expect(await codeOf(['status', address], strict)).toEqual([4, null]);
    rewritten(address, (plan) => Object.assign(plan, { made: 'never' }));
    expect(await codeOf(['status', address], strict)).toEqual(rejected);
    expect(await codeOf(['status', address], trusts)).toEqual(rejected);
  });

  test('a machine without a key is rejected before it builds, and before it plans', async () => {
    const { signs, trusts } = await keys();
    const file = engines();
    const strict = { ...required, ...trusts };
    expect(await codeOf(['plan', file], strict)).toEqual([3, 'TF_STORE_UNWRITABLE']);
    const { address } = await planned(file, signs);
    expect(await codeOf(['work', address], strict)).toEqual([3, 'TF_STORE_UNWRITABLE']);
    expect(readdirSync(store)).toEqual(['fleet']);
    expect(readdirSync(join(store, 'fleet'))).toEqual([address.slice(-37)]);
  });

  test('a record counts that is signed', async () => {
    const { signs, trusts } = await keys();
    const strict = { ...required, ...trusts };
    const { record, file, put } = await gated(signs);
    put(record);
    const state = async () => (await run(['status', file], strict)).json<FleetStatus>().jobs[0];
    expect(await state()).toMatchObject({
      state: 'missing',
      gate: null,
      why: [expect.stringContaining('not signed')],
    });
    // As the worker leaves it, who proves what is there.
    await run(['work', (await planned(file, signs)).address, '--jobs', '0'], {
      ...strict,
      ...signs,
    });
    const { identity } = record;
    const left = JSON.parse(readFileSync(join(store, 'fleet', 'records', `${identity}.json`), 'utf8'));
    expect(left.signature).toMatchObject({ schema: 'trtforge.signature/1' });
    expect(await state()).toMatchObject({
      why: expect.not.arrayContaining([expect.stringContaining('not signed')]),
    });
    put({ ...left, check: 'pass' });
    expect(await state()).toMatchObject({ why: [expect.stringContaining('does not fit')] });
  });
});

/** A job with a policy whose engine is there, and a record by which it passed. */
async function gated(signs: NodeJS.ProcessEnv = {}) {
  writeFileSync('p.yaml', 'schema: trtforge.gate-policy/1\nchecks: []\n');
  const file = engines('gate: p.yaml');
  const { jobs, id } = await planned(file, signs);
  const [job] = jobs as [FleetPlan['jobs'][number]];
  const local = openLocalStore(store, environment);
  const pending = local.pending();
  writeFileSync(pending.planPath, planBytes());
  const passport = samplePassport(planBytes(), documentOf(job));
  await local.put(pending.planPath, passport);
  pending.remove();
  if (signs.TRTFORGE_SIGNING_KEY !== undefined)
    await trtforge(
      ['cache', 'sign', '--cache-dir', store, '--sign-key', signs.TRTFORGE_SIGNING_KEY, '--json'],
      environment,
    );
  const record: WorkRecord = {
    schema: 'trtforge.fleet-record/1',
    identity: job.identity,
    name: job.name,
    plan: id,
    index: 0,
    did: 'built',
    exitCode: 0,
    code: null,
    reasons: [],
    engine: { identity: job.identity, name: job.name, bytes: 4096, buildMs: passport.built.ms },
    check: 'pass',
    gate: { policy: job.gate!.digest, outcome: 'pass' },
    node: 'n1',
    gpu: null,
    at: '',
    ms: 1,
  };
  const path = join(store, 'fleet', 'records', `${job.identity}.json`);
  const put = (content: unknown) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify(content));
  };
  return { file, record, path, put };
}

describe('a record', () => {
  const policy = (outcome: string) => (record: WorkRecord) => ({ gate: { ...record.gate, outcome } });
  test.each<[string, (record: WorkRecord) => object, string]>([
    ['of a pass', () => ({}), 'have'],
    ['of a warning', policy('warn'), 'have'],
    ['of a known answer that no GPU showed', () => ({ check: 'inconclusive' }), 'have'],
    ['of a policy that failed', policy('fail'), 'missing'],
    ['of a policy that is undecided', policy('inconclusive'), 'missing'],
    ['of a known answer that failed', () => ({ check: 'fail' }), 'missing'],
    ['of work that failed', () => ({ exitCode: 1, did: 'refused' }), 'refused'],
    ['of another engine', () => ({ identity: 'a'.repeat(64) }), 'missing'],
    ['of another build', ({ engine }) => ({ engine: { ...engine, buildMs: 1 } }), 'missing'],
  ])('%s', async (_, change, state) => {
    const { file, record, put } = await gated();
    put({ ...record, ...change(record) });
    const status = await run(['status', file]);
    expect(status.json<FleetStatus>().jobs).toMatchObject([{ state }]);
    expect((await planned(file)).jobs).toMatchObject([{ state: state === 'have' ? state : 'missing' }]);
  });

  test.each<[string, (path: string) => void]>([
    ['a FIFO', (path) => execFileSync(MKFIFO, [path])],
    ['a folder', (path) => mkdirSync(join(path, 'in it'), { recursive: true })],
    ['a device', (path) => symlinkSync('/dev/zero', path)],
    ['too large', (path) => writeFileSync(path, Buffer.alloc(70 << 20))],
    ['deep', (path) => writeFileSync(path, '['.repeat(1 << 20))],
    ['half written', (path) => writeFileSync(path, '{"schema":')],
    ['of another form', (path) => writeFileSync(path, '{"schema":"trtforge.fleet-record/1"}')],
  ])('that is %s ends nothing: it is named, and the work is done', async (_, make) => {
    const { file, path } = await gated();
    mkdirSync(dirname(path), { recursive: true });
    make(path);
    const status = await run(['status', file]);
    expect(status.json<FleetStatus>().jobs).toMatchObject([
      { state: 'missing', why: expect.arrayContaining([expect.stringContaining(path)]) },
    ]);
    expect(status.exitCode).toBe(4);
    const { address, jobs } = await planned(file);
    expect(jobs).toMatchObject([{ state: 'missing', why: { reason: expect.stringContaining(path) } }]);
    expect((await run(['submit', file, '--dry-run'])).exitCode).toBe(0);
    const work = await run(['work', address]);
    const [record] = work.json<FleetWork>().jobs;
    expect([work.exitCode, record?.did]).not.toContain(2);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ did: record!.did });
  });

  test('of a machine that could not takes no place of one that could', async () => {
    const file = engines('', { target: OTHER });
    const { address, jobs, id } = await planned(file);
    await run(['work', address]);
    const path = join(store, 'fleet', 'records', `${jobs[0]!.identity}.json`);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ exitCode: 3, plan: id });
    rewritten(path, (record) =>
      Object.assign(record, { exitCode: 1, did: 'refused', reasons: ['too slow'] }),
    );
    await run(['work', address]);
    expect((await run(['status', file])).json<FleetStatus>().jobs).toMatchObject([
      { state: 'refused', why: ['too slow'] },
    ]);
  });
});

describe('what stands in the way of a document', () => {
  test.each(['fleet', 'fleet/records'])('a link %s is not followed', async (name) => {
    const { address } = await planned(engines('', { target: OTHER }));
    if (name === 'fleet') renameSync(join(store, 'fleet'), join(store, 'away'));
    symlinkSync(beside, join(store, name));
    const before = readdirSync(beside);
    const words = name === 'fleet' ? ['plan', join(models, 'engines.yaml')] : ['work', address];
    const { exitCode, json } = await run(words);
    expect(exitCode).toBe(3);
    expect(json().error).toMatchObject({
      code: 'TF_STORE_UNWRITABLE',
      remedy: expect.stringContaining('Remove it'),
    });
    expect(readdirSync(beside)).toEqual(before);
    // Nothing was begun.
    expect(readdirSync(store).filter((each) => !['fleet', 'away'].includes(each))).toEqual([]);
  });

  test('a store that is read-only serves what is there', async () => {
    const { file, record, put } = await gated();
    put(record);
    const { address } = await planned(file);
    mounted.readOnly = store;
    expect((await planned(file)).address).toBe(address);
    const { exitCode, err } = await run(['submit', file, '--events']);
    expect([exitCode, err.includes('there already')]).toEqual([0, true]);
    expect(await codeOf(['work', address, '--jobs', '0'])).toEqual([0, null]);
    rmSync(address);
    expect(await codeOf(['plan', file])).toEqual([3, 'TF_WRITE_FAILED']);
  });
});

describe('a plan that is sent by its address', () => {
  const where = '{ ssh: { host: evil-host } }';
  const sent = () => existsSync(join(beside, 'sent'));
  const programs = () => fakePrograms(join(beside, 'bin'), { ssh: `touch '${join(beside, 'sent')}'` });

  test('shows where it goes, and asks', async () => {
    // A folder that turns what follows it around.
    const turned = join(models, 'a\u202eb');
    mkdirSync(turned);
    models = turned;
    writeFileSync(join(models, 'm.onnx'), readFileSync(join(root, 'sample.onnx')));
    const { address } = await planned(engines('', { where }));
    const { PATH } = programs();
    const alone = await run(['submit', address], { PATH });
    expect(alone.json().error).toMatchObject({
      code: 'TF_USAGE',
      message: expect.stringContaining('evil-host'),
      remedy: expect.stringContaining('--yes'),
    });
    const asked: string[] = [];
    const answers = (answer: string): Terminal => ({
      ask: async (text) => {
        asked.push(text);
        return answer;
      },
    });
    const no = await run(['submit', address], { PATH }, answers('n'));
    expect(no.json().error?.code).toBe('TF_CANCELLED');
    expect(sent()).toBe(false);
    expect(asked).toEqual([expect.stringContaining('evil-host')]);
    expect(asked[0]).not.toContain('\u202e');
    expect((await run(['submit', address], { PATH }, answers('y'))).exitCode).toBe(0);
    expect(sent()).toBe(true);
  });

  test.each(['--yes', 'signed', '--dry-run'])('%s: without a question', async (how) => {
    const { signs } = await keys();
    const { address } = await planned(engines('', { where }), how === 'signed' ? signs : {});
    const words = how === 'signed' ? [] : [how];
    const { exitCode, out } = await run(['submit', address, ...words], { ...programs(), ...signs });
    expect([exitCode, sent()]).toEqual([0, how !== '--dry-run']);
    expect(out.includes('evil-host')).toBe(how === '--dry-run');
  });

  test('written to a folder sends nothing, and asks nothing', async () => {
    const { address } = await planned(engines('', { where }));
    const { exitCode } = await run(['submit', address, '-o', join(beside, 'out')], programs());
    expect([exitCode, sent()]).toEqual([0, false]);
    expect(readFileSync(join(beside, 'out', 't.sh'), 'utf8')).toContain('evil-host');
  });
});

test('a key that YAML 1.1 reads as something else is text in a manifest', async () => {
  const selector = `{ '<<': 'a', '=': '=' }`;
  const file = engines('', { where: `{ kubernetes: { image: i, nodeSelector: ${selector} } }` });
  await run(['submit', file, '-o', join(beside, 'out')]);
  const manifest = readFileSync(join(beside, 'out', 't.yaml'), 'utf8');
  expect(manifest).toContain('"<<": a');
  expect(manifest).toContain('"=": "="');
  const name = /^ {2}name: (.*)$/m.exec(manifest)?.[1] ?? '';
  expect(name.length).toBeLessThan(64);
});

describeWith('toolchain', '--local', () => {
  test('leaves out, once, the targets that this machine cannot build', async () => {
    delete environment.XDG_CACHE_HOME;
    const file = join(models, 'engines.yaml');
    const targets = (own: string) =>
      writeFileSync(
        file,
        `store: ${store}\ntargets: { ${own} }\nmodels: [{ model: m.onnx, batch: 1 }, { model: m.onnx, batch: 2 }]\n`,
      );
    targets(`a: { target: '${OTHER}' }, b: { target: '${OTHER.replace('sm_90', 'sm_89')}' }`);
    expect(await codeOf(['submit', file, '--local'])).toEqual([3, 'TF_TARGET_UNAVAILABLE']);
    expect(existsSync(join(store, 'fleet', 'records'))).toBe(false);
    targets(`a: { target: '${OTHER}' }, t: { target: 'tensorrt-rtx:sm_89' }`);
    const { json, err } = await run(['submit', file, '--local', '--events']);
    expect(json()).toMatchObject({ targets: [{ target: 't', indices: [1, 3] }], exitCode: 0 });
    expect(err.match(/lacks tensorrt 10\.13\.3\.9/g)).toHaveLength(1);
    const { jobs } = (await run(['status', file])).json<FleetStatus>();
    expect(jobs.map(({ state }) => state)).toEqual(['missing', 'have', 'missing', 'have']);
    expect(readdirSync(join(store, 'fleet', 'records'))).toHaveLength(2);
  });
});

describe('in a bucket', () => {
  /** Objects in memory, as far as documents need them. */
  async function withBucket(work: (url: string, objects: Map<string, Buffer>) => Promise<void>) {
    const objects = new Map<string, Buffer>();
    const server = createServer(async (request, response) => {
      const body: Buffer[] = [];
      for await (const part of request) body.push(part);
      const [path = '', query = ''] = (request.url ?? '').split('?');
      if (query.includes('list-type')) {
        const xml = '<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>';
        response.writeHead(200, { 'content-type': 'application/xml' }).end(xml);
        return;
      }
      if (request.method === 'PUT') objects.set(path, Buffer.concat(body));
      const there = objects.get(path);
      if (there === undefined) response.writeHead(404).end('<Error><Code>NoSuchKey</Code></Error>');
      else response.writeHead(200, { etag: '"e"' }).end(request.method === 'GET' ? there : undefined);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      await work(`http://127.0.0.1:${port}/team/a`, objects);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  test('plans and records are checked as in a folder', async () => {
    Object.assign(environment, { ARTIFACTS_ACCESS_KEY: 'a'.repeat(8), ARTIFACTS_SECRET_KEY: 'b'.repeat(12) });
    const { signs, trusts } = await keys();
    await withBucket(async (url, objects) => {
      store = url;
      const file = engines('', { target: OTHER });
      const { address, jobs, id } = await planned(file, signs);
      const [planKey] = [...objects.keys()];
      expect(planKey).toBe(`/team/a/fleet/${id}.json`);
      const strict = { ...required, ...trusts };
      expect(await codeOf(['work', address], { ...strict, ...signs })).toEqual([3, null]);
      const recordKey = `/team/a/fleet/records/${jobs[0]!.identity}.json`;
      const whyOf = async () => (await run(['status', address], strict)).json<FleetStatus>().jobs[0]?.why;
      expect(await whyOf()).toEqual([expect.stringContaining('lacks')]);
      for (const content of [' '.repeat((1 << 20) + 1), ' '.repeat((16 << 20) + 1), '{', '{}']) {
        objects.set(recordKey, Buffer.from(content));
        expect(await whyOf()).toEqual(
          expect.arrayContaining([expect.stringContaining(`${jobs[0]!.identity}.json`)]),
        );
      }
      const { signature: _, ...unsigned } = JSON.parse(String(objects.get(planKey!)));
      objects.set(planKey!, Buffer.from(JSON.stringify(unsigned)));
      expect(await codeOf(['status', address], strict)).toEqual([2, 'TF_SIGNATURE_INVALID']);
      objects.set(planKey!, Buffer.from(JSON.stringify({ ...unsigned, folder: '/' })));
      expect(await codeOf(['work', address])).toEqual([2, 'TF_FLEET_INVALID']);
    });
  });
});
