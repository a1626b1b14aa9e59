import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { draftedPolicySchema, draftPolicy } from '../../../src/quality/gate/draft-policy.js';
import { policyFileSchema } from '../../../src/quality/gate/policy-schema.js';
import { refusal } from '../../support/refusal.js';
import { folderOf, gate } from './gate-case.js';

const recorded = (name: string): Record<string, unknown> =>
  JSON.parse(
    readFileSync(fileURLToPath(new URL(`../../fixtures/gate/${name}.json`, import.meta.url)), 'utf8'),
  ) as Record<string, unknown>;
const fp32 = recorded('parity-fp32');
const bench = {
  schema: 'trtforge.bench/1',
  exitCode: 0,
  gpuMs: { median: 7.5, p99: 8.25 },
  endToEndMs: { p99: 'NaN' },
  itemsPerSecond: 1234.5,
};
const verified = {
  schema: 'trtforge.verify/1',
  exitCode: 0,
  outputs: [
    {
      name: 'a',
      checks: [
        { statistic: 'max abs', measured: 1e-7 },
        { statistic: 'cosine', measured: 0.9, bound: 'at-least' },
      ],
    },
    {
      name: 'b',
      checks: [
        { statistic: 'max abs', measured: 3e-3 },
        { statistic: 'cosine', measured: 0.8, bound: 'at-least' },
      ],
    },
  ],
  failures: [],
};

/** The policy drafted from results, and the gate by it. */
function drafted(
  files: Readonly<Record<string, unknown>>,
  changed: Readonly<Record<string, unknown>> = files,
) {
  const folder = folderOf(files);
  const draft = draftPolicy(Object.keys(files).map((name) => join(folder, name)));
  expect(draftedPolicySchema.parse(draft)).toEqual(draft);
  const policy = policyFileSchema.parse(parse(draft.policy));
  expect(policy.checks).toHaveLength(draft.checks);
  return { policy, text: draft.policy, gate: () => gate({ 'policy.yaml': draft.policy, ...changed }) };
}

describe('a drafted policy', () => {
  it('passes the results that it was made of, with what they measured as limits', () => {
    const { policy, text, gate: judge } = drafted({ 'parity.json': fp32, 'bench.json': bench });
    expect(judge().outcome).toBe('pass');
    expect(policy.results).toEqual({
      parity: { schema: 'trtforge.stream-verify/1' },
      bench: { schema: 'trtforge.bench/1' },
    });
    expect(policy.checks?.map(({ id }) => id)).toEqual(
      expect.arrayContaining(['parity-drift.max', 'parity-outputs.nonFinite.candidate', 'bench-gpuMs.p99']),
    );
    expect(policy.checks?.find(({ id }) => id === 'bench-itemsPerSecond')?.fail).toEqual({ below: 1234.5 });
    // What is no number now could never pass.
    expect(policy.checks?.map(({ id }) => id)).not.toContain('bench-endToEndMs.p99');
    expect(text.match(/^ {4}fail: .* # /gm)).toHaveLength(policy.checks?.length ?? -1);
  });

  it.each([
    ['a worse number', { ...bench, gpuMs: { median: 7.5, p99: 8.26 } }, ['gpuMs.p99']],
    ['a lower throughput', { ...bench, itemsPerSecond: 1234 }, ['itemsPerSecond']],
    ['an outcome of its own that is fail', { ...bench, exitCode: 1 }, ['own-outcome']],
  ])('fails %s', (_, changed, checks) => {
    const { outcome, findings } = drafted({ 'r.json': bench }, { 'r.json': changed }).gate();
    expect(outcome).toBe('fail');
    expect(findings.filter((each) => each.outcome === 'fail').map(({ check }) => check)).toEqual(checks);
  });

  it('of a result that failed fails it, and reports it', () => {
    const { text, gate: judge } = drafted({ 'fp16.json': recorded('parity-fp16') });
    expect(judge().findings.filter(({ outcome }) => outcome === 'fail')).toMatchObject([
      { check: 'own-outcome' },
    ]);
    expect(text).toMatch(/^ {2}# .*verdicts\.numeric fail/m);
  });

  it('has a check for each statistic over all outputs, by its direction', () => {
    const { policy, gate: judge } = drafted({ 'v.json': verified });
    expect(policy.checks?.map(({ field, fail }) => [field, fail])).toEqual([
      ["outputs[*].checks[statistic='max abs'].measured", { above: 3e-3 }],
      ["outputs[*].checks[statistic='cosine'].measured", { below: 0.8 }],
      ['failures.length', { above: 0 }],
    ]);
    expect(judge().outcome).toBe('pass');
  });

  it('has the measures of the steps of forge, and a field elsewhere is named', () => {
    const forged = {
      schema: 'trtforge.forge/2',
      exitCode: 0,
      engine: 'e.engine',
      build: { passport: { plan: { bytes: 4096 }, built: { ms: 700 } } },
      verification: { outputs: verified.outputs },
      engineVerification: null,
      bench: { gpuMs: { median: 7.5, p99: 8.25 } },
    };
    const { policy, gate: judge } = drafted({ 'forge.json': forged });
    expect(policy.checks?.map(({ field }) => field)).toEqual([
      'build.passport.plan.bytes',
      "verification.outputs[*].checks[statistic='max abs'].measured",
      "verification.outputs[*].checks[statistic='cosine'].measured",
      'bench.gpuMs.median',
      'bench.gpuMs.p99',
    ]);
    expect(judge().outcome).toBe('pass');
    const messageOf = (field: string) => {
      const check = { id: 'it', result: { name: 'forge' }, field, fail: { above: 1 } };
      const files = { 'policy.yaml': JSON.stringify({ schema: 'trtforge.gate-policy/1', checks: [check] }) };
      return gate({ ...files, 'forge.json': forged }).findings[0]?.message;
    };
    expect(messageOf('engine.bytes')).toContain('build.passport.plan.bytes');
    expect(messageOf('bench.gpuMs.medain')).toContain('Did you mean "median"?');
  });

  it('has the least decibels of layers as the limit, of which those that do not differ have infinitely many', () => {
    const layers = (...decibels: readonly (number | string)[]) => ({
      schema: 'trtforge.compare-layers/1',
      tensors: decibels.map((sqnr, index) => ({ name: `node${index}`, error: { sqnr } })),
    });
    const now = { 'm.json': layers(40.5, 'Infinity') };
    const { policy, gate: judge } = drafted(now);
    expect(policy.checks?.map(({ field, fail }) => [field, fail])).toEqual([
      ['tensors[*].error.sqnr', { below: 40.5 }],
    ]);
    expect(judge().outcome).toBe('pass');
    for (const worse of [40, 'NaN', '-Infinity'])
      expect(drafted(now, { 'm.json': layers(41, worse) }).gate().outcome).toBe('fail');
    expect(drafted({ 'm.json': layers(41, 'NaN') }).policy.checks).toHaveLength(0);
  });

  it.each([
    [
      'compare layers',
      {
        diverging: 0,
        tensors: [
          { name: 'a', error: null },
          { name: 'b', error: { sqnr: 31 } },
        ],
      },
      2,
    ],
    ['convert advise', { drop: { metric: 0.004, relative: null } }, 1],
    ['convert advise without a task', { drop: null }, 0],
  ])('has the measures of %s', (_, result, checks) => {
    const { policy, gate: judge } = drafted({ 'r.json': { ...result, outcome: 'pass' } });
    expect(policy.checks).toHaveLength(checks);
    expect(judge().outcome).toBe('pass');
  });

  it('names several results of one schema', () => {
    const { policy, gate: judge } = drafted({
      'a b.json': bench,
      'a-b.json': bench,
      'true.json': { value: 1, exitCode: 0 },
    });
    expect(policy.results).toEqual({
      'a b': { schema: 'trtforge.bench/1', name: 'a b' },
      'a-b': { schema: 'trtforge.bench/1', name: 'a-b' },
      true: { name: 'true' },
    });
    expect(judge().outcome).toBe('pass');
  });

  it('is rejected for an error', () => {
    const folder = folderOf({ 'e.json': { schema: 'trtforge.error/1', error: { code: 'TF_USAGE' } } });
    expect(refusal(() => draftPolicy([join(folder, 'e.json')])).code).toBe('TF_GATE_RESULT_INVALID');
  });

  it('of anything at all is a policy under which no limit is missed', () => {
    const value = fc.oneof(fc.double(), fc.constantFrom('NaN', 'fail', null, true), fc.array(fc.integer()));
    const content = fc.record(
      {
        drift: fc.oneof(value, fc.record({ max: value, p95: value })),
        outputs: fc.array(
          fc.record({
            nonFinite: fc.record({ candidate: value }),
            checks: fc.array(fc.record({ statistic: fc.string(), measured: value })),
          }),
        ),
        verdicts: fc.dictionary(fc.string(), value),
        failures: value,
        bytes: value,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(content, (result) => {
        const { findings } = drafted({ 'r.json': result }).gate();
        expect(
          findings.filter(({ outcome, check }) => outcome === 'fail' && check !== 'own-outcome'),
        ).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});
