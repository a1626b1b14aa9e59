import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import type { WorkEvent } from '../../../src/events.js';
import { bundleParts } from '../../../src/products/bundle/index.js';
import {
  fleetStatus,
  planFleet,
  planRehearsal,
  planSubmit,
  rehearse,
  type Sending,
  submitFleet,
  whichEngines,
  workFleet,
} from '../../../src/products/fleet/index.js';
import { contractProfiles } from '../../../src/products/streaming/index.js';
import { writeBundle } from '../../support/bundle.js';
import { describeWith } from '../../support/needs.js';
import { writeSampleModel } from '../../support/sample-engine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-fleet-library-'));
const at = (name: string) => join(root, name);
const environment = { ...process.env, CUDA_VISIBLE_DEVICES: '' };

/** An engines file of its own store. */
function written(name: string, model: string, target = 'tensorrt-rtx:sm_89'): string {
  const path = at(`${name}.yaml`);
  writeFileSync(path, `store: ${name}\ntargets: { ada: { target: '${target}' } }\nmodels: [{ ${model} }]\n`);
  return path;
}

beforeAll(async () => {
  buildAddon({ say: () => {} });
  await writeSampleModel(at('sample.onnx'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describeWith('toolchain', 'a fleet from Node', () => {
  test('is planned, submitted after a yes, complete, and its engine is found for a machine', async () => {
    const { address, jobs } = await planFleet(
      { fleet: written('whole', 'model: sample.onnx, batch: 1/2/4') },
      { environment },
    );
    expect(jobs.map(({ state }) => state)).toEqual(['missing']);
    expect((await fleetStatus({ fleet: address }, { environment })).outcome).toBe('inconclusive');
    // Without a list of its own each target is built here.
    const options = { fleet: address, instead: 'local' } as const;
    const { sending } = await planSubmit(options, { environment });
    expect(sending).toEqual([{ target: 'ada', where: 'local', jobs: [0], folder: root }]);
    await expect(submitFleet(options, { environment })).rejects.toMatchObject({
      code: 'TF_USAGE',
      remedy: expect.stringContaining('confirm'),
    });
    const refusing = { ...options, confirm: async () => false };
    await expect(submitFleet(refusing, { environment })).rejects.toMatchObject({ code: 'TF_USAGE' });
    const asked: (readonly Sending[])[] = [];
    const events: WorkEvent[] = [];
    const confirm = async (list: readonly Sending[]) => asked.push(list) > 0;
    const submitted = await submitFleet(
      { ...options, confirm },
      { environment, emit: (event) => events.push(event) },
    );
    expect([submitted.exitCode, asked]).toEqual([0, [sending]]);
    expect(submitted.targets).toMatchObject([{ target: 'ada', did: '1 built', indices: [0] }]);
    expect(events.some((event) => event.type === 'phase-start' && event.phase === '1 of 1')).toBe(true);
    const status = await fleetStatus({ fleet: address }, { environment });
    expect(status).toMatchObject({ outcome: 'pass', jobs: [{ state: 'have' }] });
    const inventory = at('inventory.yaml');
    writeFileSync(
      inventory,
      `machines: { ada: { gpu: L4, tensorrt-rtx: '${jobs[0]!.target.version}' }, turing: { gpu: T4, tensorrt-rtx: '1.0' } }\n`,
    );
    const which = await whichEngines(
      { query: at('sample.onnx'), inventory, store: at('whole'), remote: false },
      { environment },
    );
    expect(which.machines.map(({ best }) => best !== null)).toEqual([true, false]);
    const server = { query: at('sample.onnx'), triton: '24.05-py3', gpu: 'L4', store: at('whole') };
    expect((await whichEngines(server, { environment })).machines[0]?.gpu?.capability).toBe(89);
    await expect(whichEngines({ query: at('sample.onnx') }, { environment })).rejects.toMatchObject({
      code: 'TF_USAGE',
    });
  });

  test('is worked job by job, of the folder that is passed, and ended by its signal', async () => {
    const { address } = await planFleet(
      { fleet: written('worked', 'model: sample.onnx, batch: 1/2/4') },
      { environment },
    );
    const options = { fleet: address, folder: root };
    const stopped = workFleet(options, { environment, signal: AbortSignal.abort() });
    await expect(stopped).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    await expect(workFleet({ ...options, jobs: [1] }, { environment })).rejects.toMatchObject({
      code: 'TF_USAGE',
    });
    const { exitCode, jobs } = await workFleet({ ...options, jobs: [0], index: 0 }, { environment });
    expect([exitCode, jobs.map(({ did }) => did)]).toEqual([0, ['built']]);
  });

  test('has bundles and contracts by what reads them', async () => {
    const meta = await writeBundle(at('asr'));
    const file = written('bundle', `bundle: ${meta}`);
    await expect(planFleet({ fleet: file }, { environment })).rejects.toMatchObject({
      code: 'TF_USAGE',
      remedy: expect.stringContaining('bundleParts'),
    });
    const { jobs } = await planFleet({ fleet: file, bundleParts }, { environment });
    expect(jobs.map(({ model }) => model.component)).toContain('encoder');
    const contract = at('sample.contract.json');
    const bindings = { name: 'x', dtype: 'float32', shape: [null, 4] };
    writeFileSync(contract, JSON.stringify({ schema: 'trtforge.contract/1', ...bindings }));
    const stated = written('contract', `model: sample.onnx, profile-from: ${contract}`);
    const sources = { fleet: stated, profileSources: [contractProfiles] };
    await expect(planFleet(sources, { environment })).rejects.toMatchObject({ code: 'TF_CONTRACT_INVALID' });
  });

  test('is written as a script, and sends nothing', async () => {
    const fleet = written('scripts', 'model: sample.onnx, batch: 1/2/4');
    const { targets } = await submitFleet({ fleet, output: at('out') }, { environment });
    expect(targets.map(({ job, did }) => [job, did])).toEqual([[null, null]]);
    expect(readFileSync(targets[0]!.manifest!, 'utf8')).toContain('trtforge fleet work');
  });
});

describe('a rehearsal from Node', () => {
  test('is decided without a GPU, and needs one', async () => {
    const engines = written('old', 'model: sample.onnx, batch: 1/2/4', 'tensorrt@8.6.1.6:sm_89');
    const options = { engines, from: 'tensorrt@8.6.1.6', to: 'tensorrt@10.6.0.26' };
    const plan = await planRehearsal(options, { environment });
    expect(plan).toMatchObject({
      from: 'tensorrt 8.6.1.6',
      to: 'tensorrt 10.6.0.26',
      policy: 'rehearsal',
      engines: [{ isMissing: true }],
    });
    await expect(rehearse(options, { environment })).rejects.toMatchObject({ code: 'TF_GPU_UNAVAILABLE' });
    await expect(planRehearsal({ ...options, to: '10.6' }, { environment })).rejects.toMatchObject({
      code: 'TF_USAGE',
    });
    expect(existsSync(at('old'))).toBe(false);
  });
});
