import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { openLocalStore } from '../../../src/engines/store/open-stores.js';
import { rehearse } from '../../../src/products/fleet/index.js';
import type { FleetPlan } from '../../../src/products/fleet/plan-schema.js';
import type { Rehearsal } from '../../../src/products/fleet/rehearsal-result.js';
import { recordAnswer } from '../../../src/quality/known-answer/record.js';
import { type FakeEngine, fakeEngine } from '../../fakes/tensorrt/engine.js';
import { samplePassport } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';
import { writeAffine } from './affine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-rehearse-'));
const at = (name: string) => join(root, name);
let environment: NodeJS.ProcessEnv;
let fresh: FakeEngine;
let old: FakeEngine;
afterAll(() => rmSync(root, { recursive: true, force: true }));

beforeAll(async () => {
  await buildAddon({ say: () => {} });
  [fresh, old] = await Promise.all([fakeEngine('10'), fakeEngine('8')]);
  environment = fresh.environment({
    TENSORRT_HOME: fresh.install(at('new')),
    TRT_HOME: old.install(at('old')),
    XDG_CACHE_HOME: at('cache'),
  });
  fresh.bench.enter(environment);
  await writeAffine(at('model.onnx'));
});

const run = (...words: readonly string[]) => trtforge(['fleet', ...words, '--json'], environment);

/** An engines file of one model for a version, and its engine in the store. */
async function stored(name: string, version: string, plan: string, hasAnswer: boolean): Promise<string> {
  const file = at(`${name}-${version}.yaml`);
  writeFileSync(
    file,
    `store: ${name}\ntargets: { h100: { target: 'tensorrt@${version}:sm_90' } }\nmodels: [{ model: ${at('model.onnx')}, batch: 1/8/64 }]\n`,
  );
  const [job] = (await run('plan', file)).json<FleetPlan>().jobs;
  const { model, recipe, target } = job!;
  const document = { schema: 'trtforge.identity/1' as const, model: model.digest, recipe, target };
  const passport = samplePassport(readFileSync(plan), document);
  const profiles = recipe.profiles;
  const knownAnswer = hasAnswer
    ? await recordAnswer({ reference: at('model.onnx'), precision: 'tf32', profiles })
    : undefined;
  await openLocalStore(at(name), environment).put(plan, { ...passport, ...(knownAnswer && { knownAnswer }) });
  return file;
}

const rehearsed = async (file: string, where: NodeJS.ProcessEnv, ...more: readonly string[]) => {
  const words = ['rehearse', file, '--from', 'tensorrt@8.6.1', '--to', 'tensorrt@10.3.0', ...more];
  const { exitCode, json } = await trtforge(['fleet', ...words, '--json'], where);
  return { exitCode, result: json<Rehearsal>() };
};

describe('a rehearsal', () => {
  test('is go where each engine was verified, compared with its old answer and measured', async () => {
    await stored('go', '10.3.0', fresh.writePlan(at('new.plan'), { kind: 'affine' }), false);
    const file = await stored('go', '8.6.1', old.writePlan(at('old.plan'), { kind: 'affine' }), true);
    const { exitCode, result } = await rehearsed(file, environment, '-o', at('upgrade.html'));
    expect(result.engines).toMatchObject([{ verify: 'pass', answer: 'pass', ratio: {}, notDone: [] }]);
    expect([exitCode, result.outcome]).toEqual([0, 'pass']);
    expect(readFileSync(at('upgrade.html'), 'utf8')).toContain(result.engines[0]!.name);
    const versions = { from: 'tensorrt@8.6.1', to: 'tensorrt@10.3.0' };
    const fromNode = await rehearse({ engines: file, ...versions }, { environment });
    expect([fromNode.outcome, fromNode.repeat]).toEqual([
      'pass',
      `trtforge fleet rehearse ${file} --from tensorrt@8.6.1 --to tensorrt@10.3.0`,
    ]);
  });

  // Neither would have failed a check of the policy.
  test.each([['the old library does not load', true, { TRT_HOME: '' }, ['ratio'], /not measured beside/]])(
    'is undecided by name where %s',
    async (name, hasAnswer, without, undone, reason) => {
      const store = name.replaceAll(' ', '-');
      await stored(store, '10.3.0', fresh.writePlan(at('new.plan'), { kind: 'affine' }), false);
      const file = await stored(store, '8.6.1', old.writePlan(at('old.plan'), { kind: 'affine' }), hasAnswer);
      const policy = at(`${store}-policy.yaml`);
      writeFileSync(
        policy,
        'schema: trtforge.gate-policy/1\nchecks: [{ id: time, result: { schema: trtforge.bench-compare/1 }, field: ratios.gpuMs.low, fail: { above: 100 }, missing: skip }, { id: model, result: { schema: trtforge.verify/1 }, field: outcome, fail: { is-not: pass } }]\n',
      );
      const { exitCode, result } = await rehearsed(file, { ...environment, ...without }, '--gate', policy);
      const [engine] = result.engines;
      expect(engine?.verify).toBe('pass');
      expect((['answer', 'ratio'] as const).filter((step) => engine?.[step] === null)).toEqual(undone);
      expect(result.gate.outcome).toBe('pass');
      expect([exitCode, result.outcome]).toEqual([4, 'inconclusive']);
      expect(result.reasons[0]).toContain(engine!.name);
      expect(result.reasons[0]).toMatch(reason);
    },
  );

  test('records the answer that the old engine lacks, and compares with it', async () => {
    await stored('unanswered', '10.3.0', fresh.writePlan(at('new.plan'), { kind: 'affine' }), false);
    const plan = old.writePlan(at('old.plan'), { kind: 'affine' });
    const { exitCode, result } = await rehearsed(
      await stored('unanswered', '8.6.1', plan, false),
      environment,
    );
    expect(result.engines).toMatchObject([{ verify: 'pass', answer: 'pass', ratio: {}, notDone: [] }]);
    expect(exitCode).toBe(0);
  });

  test('is decided without a GPU: targets, versions, policy, and what the new version cannot build', async () => {
    const file = at('dry.yaml');
    const written = (gpu: string) =>
      writeFileSync(
        file,
        `store: dry\ntargets: { h100: { target: 'tensorrt@8.6.1:${gpu}' } }\nmodels: [{ model: ${at('model.onnx')}, batch: 1/8/64 }]\n`,
      );
    written('sm_90');
    const dry = async (from: string, to: string, ...more: readonly string[]) => {
      const words = ['rehearse', file, '--from', from, '--to', to, '--dry-run', ...more];
      const { exitCode, json } = await trtforge(['fleet', ...words, '--json'], {
        ...environment,
        CUDA_VISIBLE_DEVICES: '-1',
      });
      return { exitCode, answer: json() };
    };
    const [here, absent] = [
      await dry('tensorrt@8.6.1', 'tensorrt@10.3.0'),
      await dry('tensorrt@8.6.1', 'tensorrt@10.6.0'),
    ];
    expect(here.answer.steps).toMatchObject([{ does: 'rehearse', skipped: null }]);
    expect(absent.answer.steps).toMatchObject([{ skipped: expect.stringContaining('10.6.0') }]);
    const { error } = (await dry('10.13.3.9', 'tensorrt@10.6.0')).answer;
    expect(error).toMatchObject({ code: 'TF_USAGE', remedy: expect.stringContaining('tensorrt@10.13.3.9') });
    expect((await dry('tensorrt@9.9.9', 'tensorrt@10.6.0')).answer.error?.remedy).toContain(
      'tensorrt@8.6.1:sm_90',
    );
    writeFileSync(at('bad.yaml'), 'schema: other');
    const bad = await dry('tensorrt@8.6.1', 'tensorrt@10.6.0', '--gate', at('bad.yaml'));
    expect(bad.answer.error?.code).toBe('TF_GATE_POLICY_INVALID');
    written('sm_61');
    expect((await dry('tensorrt@8.6.1', 'tensorrt@10.6.0')).answer.error?.code).toBe('TF_TARGET_UNSUPPORTED');
  });

  test('of an engine that cannot be built is no go, whatever its model is called', async () => {
    const file = await stored('unbuilt', '8.6.1', old.writePlan(at('old.plan'), { kind: 'affine' }), true);
    const { exitCode, result } = await rehearsed(file, { ...environment, TENSORRT_HOME: '' });
    expect(result.engines).toMatchObject([{ after: null, verify: null, notDone: [expect.any(String)] }]);
    expect(result.outcome).not.toBe('pass');
    expect(exitCode).not.toBe(0);
  });
});
