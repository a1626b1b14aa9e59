import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { openLocalStore } from '../../../src/engines/store/open-stores.js';
import type { FleetPlan, FleetWork } from '../../../src/products/fleet/plan-schema.js';
import { manyLayers } from '../../fakes/tensorrt/affine.js';
import { fakeEngine, type NetworkPlan } from '../../fakes/tensorrt/engine.js';
import { samplePassport } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';
import { writeAffine } from './affine.js';

const home = process.cwd();
const root = mkdtempSync(join(tmpdir(), 'trtforge-fleet-proving-'));
const at = (name: string) => join(root, name);
let environment: NodeJS.ProcessEnv;
let writePlan: (path: string, more?: Partial<NetworkPlan>) => string;
afterAll(() => {
  process.chdir(home);
  rmSync(root, { recursive: true, force: true });
});

beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  environment = engine.environment({
    TENSORRT_HOME: engine.install(at('home')),
    XDG_CACHE_HOME: at('cache'),
  });
  engine.bench.enter(environment);
  writePlan = (path, more = {}) => engine.writePlan(path, { kind: 'affine', ...more });
  await writeAffine(at('right.onnx'));
  await writeAffine(at('wrong.onnx'), 3);
  writeFileSync(
    at('policy.yaml'),
    `schema: trtforge.gate-policy/1
checks:
  - { id: time, result: { schema: trtforge.bench/1 }, field: 'runs[0].gpuMs.median', fail: { above: 1000 } }
  - { id: model, result: { schema: trtforge.verify/1 }, field: outcome, fail: { is-not: pass } }
`,
  );
  process.chdir(root);
});

describe('an engine that is there and has not passed its policy', () => {
  test.each([
    ['right', 0, 'there', 'pass'],
    ['wrong', 1, 'refused', 'fail'],
  ])('is measured and verified where its GPU is: %s', async (name, exitCode, did, outcome) => {
    const file = at(`${name}.yaml`);
    writeFileSync(
      file,
      `store: ${name}\ntargets: { h100: { target: 'tensorrt@10.3.0:sm_90' } }\nmodels: [{ model: ${at(`${name}.onnx`)}, batch: 1/8/64, gate: ${at('policy.yaml')} }]\n`,
    );
    const run = (...words: readonly string[]) => trtforge(['fleet', ...words, '--json'], environment);
    const planned = async () => (await run('plan', file)).json<FleetPlan & { address: string }>();
    const { jobs, address } = await planned();
    const [job] = jobs;
    const path = writePlan(at(`${name}.plan`));
    const { model, recipe, target } = job!;
    const document = { schema: 'trtforge.identity/1' as const, model: model.digest, recipe, target };
    const passport = samplePassport(readFileSync(path), document);
    await openLocalStore(at(name), environment).put(path, passport);
    expect((await planned()).jobs).toMatchObject([{ state: 'missing', why: { from: 'gate' } }]);
    const work = await run('work', address, '--jobs', '0');
    expect(work.json<FleetWork>().jobs).toMatchObject([{ did, gate: { outcome } }]);
    expect(work.exitCode).toBe(exitCode);
  });

  test('is built again where it carries code, which does not run', async () => {
    const file = at('code.yaml');
    writeFileSync(
      file,
      `store: code\ntargets: { h100: { target: 'tensorrt@10.3.0:sm_90' } }\nmodels: [{ model: ${at('right.onnx')}, batch: 1/8/64, builder-config: [flags=version-compatible], gate: ${at('policy.yaml')} }]\n`,
    );
    const plan = { hostCode: true, layers: manyLayers };
    // The store takes the file.
    const [path, built] = [writePlan(at('code.plan'), plan), writePlan(at('built.plan'), plan)];
    const run = (...words: readonly string[]) =>
      trtforge(['fleet', ...words, '--json'], { ...environment, FAKE_PLAN: built });
    const { jobs, address } = (await run('plan', file)).json<FleetPlan & { address: string }>();
    const { model, recipe, target } = jobs[0]!;
    const document = { schema: 'trtforge.identity/1' as const, model: model.digest, recipe, target };
    const store = openLocalStore(at('code'), environment);
    await store.put(path, samplePassport(readFileSync(path), document));
    const work = await run('work', address, '--jobs', '0');
    expect(work.json<FleetWork>().jobs).toMatchObject([{ did: 'built', gate: { outcome: 'pass' } }]);
    expect(work.exitCode).toBe(0);
  });
});
