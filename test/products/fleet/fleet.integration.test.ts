import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import type { FleetPlan, FleetStatus, FleetWork } from '../../../src/products/fleet/plan-schema.js';
import { writeBundle } from '../../support/bundle.js';
import { describeWith } from '../../support/needs.js';
import { writeSampleModel } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';

const home = process.cwd();
const root = mkdtempSync(join(tmpdir(), 'trtforge-fleet-'));
const at = (name: string) => join(root, name);
const model = at('sample.onnx');
const environment = { ...process.env, CUDA_VISIBLE_DEVICES: '', SLURMD_NODENAME: 'node-7' };
const run = (...words: readonly string[]) => trtforge(['fleet', ...words, '--json'], environment);
type Planned = FleetPlan & { readonly address: string };

/** An engines file of its own store; gives its path. */
function written(name: string, models: readonly string[], targets: readonly string[] = []): string {
  const path = at(`${name}.yaml`);
  const own = ["ada: { target: 'tensorrt-rtx:sm_89' }", ...targets].map((line) => `  ${line}`);
  const entries = models.map((line) => `  - { ${line} }`);
  writeFileSync(path, `store: ${name}\ntargets:\n${own.join('\n')}\nmodels:\n${entries.join('\n')}\n`);
  return path;
}

const policyOf = (field: string, limit: number): string =>
  `schema: trtforge.gate-policy/1\nchecks: [{ id: size, result: { schema: trtforge.build/1 }, field: ${field}, fail: { above: ${limit} }, missing: inconclusive }]\n`;

beforeAll(async () => {
  buildAddon({ say: () => {} });
  await writeSampleModel(model);
  // As tasks run: in the folder that models are below.
  process.chdir(root);
});
afterAll(() => {
  process.chdir(home);
  rmSync(root, { recursive: true, force: true });
});

const hopper = "h100: { target: 'tensorrt@10.13.3.9:sm_90' }";

describeWith('toolchain', 'a fleet', () => {
  test('is planned, worked on and complete', async () => {
    const file = written('whole', [
      `model: ${model}, batch: 1/2/4`,
      `model: ${model}, batch: 1/2/4, precision: fp16, targets: [ada]`,
    ]);
    const { address, jobs } = (await run('plan', file)).json<Planned>();
    expect(jobs.map(({ state }) => state)).toEqual(['missing', 'missing']);
    const { exitCode, json } = await run('work', address);
    expect(exitCode).toBe(0);
    expect(json<FleetWork>().jobs).toMatchObject([
      { did: 'built', check: 'inconclusive', gate: null, node: 'node-7', code: null },
      { did: 'built' },
    ]);
    const again = await run('work', address, '--jobs', '0,1');
    expect(again.json<FleetWork>().jobs.map(({ did }) => did)).toEqual(['there', 'there']);
    const status = await run('status', file);
    expect(status.exitCode).toBe(0);
    expect(status.json<FleetStatus>()).toMatchObject({ outcome: 'pass', plan: address.slice(-37, -5) });
    const page = at('fleet.html');
    expect((await run('report', address, '-o', page)).exitCode).toBe(0);
    expect(readFileSync(page, 'utf8')).toContain('2 of 2 engines are there');
  });

  test('of two machines is undecided until both have built, and names the machine that cannot', async () => {
    const file = written('two', [`model: ${model}, batch: 1/2/4`], [hopper]);
    const { address, jobs } = (await run('plan', file)).json<Planned>();
    expect(jobs.map(({ target }) => target.version)).toContain('10.13.3.9');
    expect((await run('status', file)).exitCode).toBe(4);
    const work = await run('work', address, '--jobs', '0,1', '--index', '1');
    expect(work.exitCode).toBe(3);
    expect(work.json<FleetWork>().jobs).toMatchObject([{ did: 'failed', code: 'TF_TOOLCHAIN_NOT_FOUND' }]);
    const status = await run('status', file);
    expect(status.exitCode).toBe(4);
    expect(status.json<FleetStatus>().jobs).toMatchObject([
      { state: 'missing', node: null },
      { state: 'missing', node: 'node-7', why: [expect.stringContaining('lacks tensorrt 10.13.3.9')] },
    ]);
  });

  test('of a bundle has an engine of each component', async () => {
    const meta = await writeBundle(at('speech'));
    const file = written('bundle', [`bundle: ${meta}, precision: fp16`]);
    const { jobs, address } = (await run('plan', file)).json<Planned>();
    expect(jobs.map(({ model: { component } }) => component)).toEqual(['encoder', 'predictor', 'joint']);
    const { json } = await run('work', address, '--index', '2');
    expect(json<FleetWork>().jobs).toMatchObject([{ index: 2, did: 'built' }]);
  });

  test.each([
    ['passes', 'bytes', 1 << 30, 0, 'built', 'have'],
    ['fails', 'bytes', 1, 1, 'refused', 'missing'],
    ['is undecided', 'precisions.int8', 1, 4, 'refused', 'missing'],
  ])('whose policy %s: %s at most %i', async (name, field, limit, code, did, state) => {
    const policy = at(`${name}.policy.yaml`);
    writeFileSync(policy, policyOf(field, limit));
    const file = written(`gate-${code}`, [`model: ${model}, batch: 1/2/4, gate: ${policy}`]);
    const { address } = (await run('plan', file)).json<Planned>();
    const { exitCode, json } = await run('work', address);
    const [record] = json<FleetWork>().jobs;
    expect([exitCode, record?.did]).toEqual([code, did]);
    expect((await run('plan', file)).json<Planned>().jobs.map((job) => job.state)).toEqual([state]);
    // An engine that is not kept left nothing where engines lie.
    const engines = join(at(`gate-${code}`), 'by-identity');
    expect(existsSync(join(engines, record!.identity.slice(0, 2), record!.identity))).toBe(code === 0);
  });

  test('that another policy rejected is missing until this one has judged it', async () => {
    const policy = at('changed.policy.yaml');
    writeFileSync(policy, policyOf('bytes', 1));
    const file = written('changed-policy', [`model: ${model}, batch: 1/2/4, gate: ${policy}`]);
    const statuses = async () => {
      const { exitCode, json } = await run('status', file);
      return [exitCode, ...json<FleetStatus>().jobs.map(({ state, gate }) => `${state} ${gate}`)];
    };
    expect((await run('submit', file)).exitCode).toBe(1);
    expect(await statuses()).toEqual([1, 'refused fail']);
    writeFileSync(policy, policyOf('bytes', 2 ** 30));
    expect(await statuses()).toEqual([4, 'missing null']);
    expect((await run('submit', file)).exitCode).toBe(0);
    expect(await statuses()).toEqual([0, 'have pass']);
    writeFileSync(policy, policyOf('bytes', 2 ** 29));
    expect(await statuses()).toEqual([4, 'missing null']);
  });

  test('that was built anew since it passed its policy has to pass again', async () => {
    const policy = at('again.policy.yaml');
    writeFileSync(policy, policyOf('bytes', 2 ** 30));
    const file = written('again', [`model: ${model}, batch: 1/2/4, gate: ${policy}`]);
    const states = async () =>
      (await run('plan', file)).json<Planned>().jobs.map(({ state, why }) => why?.from ?? state);
    await run('submit', file);
    expect(await states()).toEqual(['have']);
    const build = ['build', model, '--batch', '1/2/4', '--target', 'tensorrt-rtx:sm_89'];
    await trtforge([...build, '--cache-dir', at('again'), '--force-rebuild'], environment);
    expect(await states()).toEqual(['gate']);
    await run('submit', file);
    expect(await states()).toEqual(['have']);
  });

  test('with two policies for one engine is none, whichever would be dropped', async () => {
    const gate = (name: string, limit: number) => {
      writeFileSync(at(name), policyOf('bytes', limit));
      return `gate: ${name}`;
    };
    const models = [gate('strict.yaml', 1), gate('lax.yaml', 2 ** 30)].map(
      (own) => `model: ${model}, batch: 1/2/4, ${own}`,
    );
    const { exitCode, json } = await run('plan', written('policies', models));
    expect([exitCode, json().error?.code]).toEqual([2, 'TF_FLEET_INVALID']);
    const same = models.map(() => models[0]!);
    expect((await run('plan', written('policies', same))).json<Planned>().jobs).toHaveLength(1);
  });

  test('whose policy reads what only a GPU measures is undecided without one', async () => {
    const policy = at('bench.policy.yaml');
    writeFileSync(
      policy,
      "schema: trtforge.gate-policy/1\nchecks: [{ id: time, result: { schema: trtforge.bench/1 }, field: 'runs[0].gpuMs.median', fail: { above: 1 } }]\n",
    );
    const file = written('blind', [`model: ${model}, batch: 1/2/4, gate: ${policy}`]);
    const { exitCode, json } = await run('work', (await run('plan', file)).json<Planned>().address);
    expect(exitCode).toBe(4);
    expect(json<FleetWork>().jobs).toMatchObject([{ did: 'refused', gate: { outcome: 'inconclusive' } }]);
  });

  test('whose engines were there before their policy lets them pass it, and builds none again', async () => {
    const open = written('late', [`model: ${model}, batch: 1/2/4`]);
    await run('work', (await run('plan', open)).json<Planned>().address);
    const policy = at('late.policy.yaml');
    writeFileSync(
      policy,
      'schema: trtforge.gate-policy/1\nchecks: [{ id: size, result: { schema: trtforge.build/1 }, field: bytes, fail: { below: 1 } }]\n',
    );
    const file = written('late', [`model: ${model}, batch: 1/2/4, gate: ${policy}`]);
    const { jobs, address } = (await run('plan', file)).json<Planned>();
    expect(jobs).toMatchObject([{ state: 'missing', why: { from: 'gate' } }]);
    const { json } = await run('work', address);
    expect(json<FleetWork>().jobs).toMatchObject([{ did: 'there', gate: { outcome: 'pass' } }]);
    expect((await run('plan', file)).json<Planned>().jobs).toMatchObject([{ state: 'have' }]);
  });

  test('whose model was changed after the plan is not built', async () => {
    const own = at('changed.onnx');
    await writeSampleModel(own);
    const file = written('changed', [`model: ${own}, batch: 4`]);
    const { address } = (await run('plan', file)).json<Planned>();
    await writeSampleModel(own, { scale: 0.02 });
    const { exitCode, json } = await run('work', address);
    expect(exitCode).toBe(2);
    expect(json<FleetWork>().jobs).toMatchObject([{ did: 'failed', code: 'TF_FLEET_CHANGED' }]);
  });

  test('planned twice at once has one plan, and worked on twice at once one build', async () => {
    const file = written('twice', [`model: ${model}, batch: 1/2/3`]);
    const [a, b] = await Promise.all([run('plan', file), run('plan', file)]);
    const { address } = a.json<Planned>();
    expect(b.json<Planned>().address).toBe(address);
    const works = await Promise.all([
      run('work', address, '--jobs', '0'),
      run('work', address, '--jobs', '0'),
    ]);
    const did = works.map(({ json }) => json<FleetWork>().jobs[0]?.did);
    expect(did.filter((each) => each === 'built')).toHaveLength(1);
    expect(did).toContain('there');
  });
});

describe('a plan', () => {
  test('for a GPU on a platform that it does not have warns, also when it is read again', async () => {
    const spark = "spark: { target: 'tensorrt-rtx@1.7.1.116:sm_121:linux-x86_64' }";
    const file = written('spark', [`model: ${model}, batch: 1/2/4, targets: [spark]`], [spark]);
    const planned = await trtforge(['fleet', 'plan', file], environment);
    expect(planned.err).toContain('sm_121 (Blackwell: DGX Spark, GB10) exists with Arm processors');
    const { address } = (await run('plan', file)).json<Planned>();
    expect((await trtforge(['fleet', 'status', address], environment)).err).toContain('is unproven');
  });

  test.each([
    ['half written', (text: string) => text.slice(0, text.length / 2)],
    ['of another form', () => '{"schema":"trtforge.fleet-plan/1"}'],
    ['of another id', (text: string) => text.replace(/"id": "\w+"/, `"id": "${'0'.repeat(32)}"`)],
  ])('%s is named', async (_, damage) => {
    const file = written('half', [`model: ${model}, batch: 1/2/4, targets: [h100]`], [hopper]);
    const { address } = (await run('plan', file)).json<Planned>();
    writeFileSync(address, damage(readFileSync(address, 'utf8')));
    const { exitCode, json } = await run('work', address);
    expect([exitCode, json().error?.code]).toEqual([2, 'TF_FLEET_INVALID']);
  });

  test('names the command that is next as a shell takes it', async () => {
    const file = written("a b's", [`model: ${model}, batch: 1/2/4, targets: [h100]`], [hopper]);
    const { out } = await trtforge(['fleet', 'plan', file], environment);
    const [, line = ''] = /^Next: trtforge (.*)$/m.exec(out) ?? [];
    const words = execFileSync('/bin/sh', ['-c', `for word in ${line}; do echo "$word"; done`]);
    expect(words.toString().split('\n')).toEqual(['fleet', 'submit', expect.stringMatching(/b's.fleet/), '']);
  });

  test('is known to schedulers as that of its store', async () => {
    const ids = await Promise.all(
      ['one', 'other'].map(async (name) => {
        const file = written(name, [`model: ${model}, batch: 1/2/4, targets: [h100]`], [hopper]);
        return (await run('plan', file)).json<Planned>().id;
      }),
    );
    expect(new Set(ids).size).toBe(2);
  });

  test('that is not there, and an index that it lacks, are named', async () => {
    // A store that one machine does not have is no fault of the plan.
    for (const [store, code, exitCode] of [
      ['nowhere', 'TF_STORE_UNWRITABLE', 3],
      ['.', 'TF_FLEET_INVALID', 2],
    ] as const) {
      const gone = await run('status', join(root, store, 'fleet', `${'a'.repeat(32)}.json`));
      expect([gone.exitCode, gone.json().error?.code]).toEqual([exitCode, code]);
    }
    const file = written('few', [`model: ${model}, batch: 1/2/4`], []);
    writeFileSync(file, readFileSync(file, 'utf8').replace('tensorrt-rtx:sm_89', 'tensorrt@10.13.3.9:sm_90'));
    const { address } = (await run('plan', file)).json<Planned>();
    for (const words of [
      ['--jobs', '7'],
      ['--jobs', '0', '--index', '3'],
    ])
      expect((await run('work', address, ...words)).json().error?.code).toBe('TF_USAGE');
  });

  test('cannot be kept where its store is a file, or below one', async () => {
    const file = written('file', [`model: ${model}, batch: 1/2/4`], []);
    writeFileSync(file, readFileSync(file, 'utf8').replace('tensorrt-rtx:sm_89', 'tensorrt@10.13.3.9:sm_90'));
    writeFileSync(at('file'), '');
    expect((await run('plan', file)).json().error?.code).toBe('TF_USAGE');
    writeFileSync(file, readFileSync(file, 'utf8').replace('store: file', 'store: file/below'));
    expect((await run('plan', file)).json().error?.code).toBe('TF_WRITE_FAILED');
  });

  test('of models of another machine has the same identities whatever is installed', async () => {
    const file = written(
      'pure',
      [`model: ${model}, batch: 1/2/4, targets: [h100]`],
      ["h100: { target: 'tensorrt@10.13.3.9:sm_90' }"],
    );
    const one = (await run('plan', file)).json<Planned>();
    const bare = { ...environment, XDG_CACHE_HOME: at('bare'), LD_LIBRARY_PATH: '', TENSORRT_HOME: '' };
    const other = (await trtforge(['fleet', 'plan', file, '--json'], bare)).json<Planned>();
    expect(other.jobs.map(({ identity }) => identity)).toEqual(one.jobs.map(({ identity }) => identity));
    expect(other.id).toBe(one.id);
  });
});
