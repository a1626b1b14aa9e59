import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { baselineSchema } from '../../../src/quality/gate/baseline.js';
import { runGate } from '../../../src/quality/gate/gate.js';
import { refusal } from '../../support/refusal.js';
import { checkOf, folderOf, gate, policyOf, TODAY } from './gate-case.js';

const entry = (value: number, more: object = {}) => ({
  check: 'it',
  result: 'r',
  field: 'value',
  at: 'value',
  value,
  same: {},
  ...more,
});
const baseline = (...values: readonly object[]) => ({ schema: 'trtforge.gate-baseline/1', values });

const against = (value: unknown, before: number, regression: object) =>
  gate(
    {
      'policy.yaml': policyOf({ checks: [checkOf({ regression })] }),
      'r.json': { value },
      'baseline.json': baseline(entry(before)),
    },
    { baseline: 'baseline.json' },
  );

describe('regression against a baseline', () => {
  it.each([
    ['lower', 110, 100, '10%', 'pass'],
    ['lower', 110.1, 100, '10%', 'fail'],
    ['lower', 50, 100, '10%', 'pass'],
    ['higher', 90, 100, '10%', 'pass'],
    ['higher', 89.9, 100, '10%', 'fail'],
    ['higher', 200, 100, '10%', 'pass'],
    ['lower', 75, 100, '-25%', 'pass'],
    ['lower', 75.1, 100, '-25%', 'fail'],
    ['higher', 124.9, 100, '-25%', 'fail'],
    ['lower', 100.5, 100, 0.5, 'pass'],
    ['lower', 100.6, 100, 0.5, 'fail'],
    ['lower', 0.001, 0, '10%', 'fail'],
    ['lower', 0, 0, '10%', 'pass'],
    ['lower', 1.1, 1, { relative: '5%', absolute: 0.2 }, 'pass'],
    ['lower', 104, 100, { relative: '5%', absolute: 0.2 }, 'pass'],
    ['lower', 106, 100, { relative: '5%', absolute: 0.2 }, 'fail'],
    ['lower', -8, -10, '10%', 'fail'],
    ['lower', 'NaN', 100, '10%', 'fail'],
    ['lower', 'Infinity', 100, '10%', 'fail'],
    ['higher', 'fast', 100, '10%', 'fail'],
  ] as const)(
    'better is %s: %s after %s with a margin of %j is %s',
    (better, value, before, fail, outcome) => {
      expect(against(value, before, { better, fail }).outcome).toBe(outcome);
    },
  );

  it('warns within its first margin and states how much worse it is', () => {
    const result = against(107, 100, { better: 'lower', fail: '10%', warn: '5%' });
    expect(result.findings).toMatchObject([{ outcome: 'warn', rule: 'regression', baseline: 100 }]);
    expect(result.reasons).toEqual(['it: value of r is 107, 7 % worse than 100 (allowed 5%).']);
  });

  it.each([
    [undefined, 'fail'],
    ['inconclusive', 'inconclusive'],
    ['warn', 'warn'],
    ['skip', 'pass'],
  ])('a value without baseline, with missing-baseline: %s, is %s', (missing, outcome) => {
    const regression = { better: 'lower', fail: '10%', ...(missing && { 'missing-baseline': missing }) };
    const files = { 'policy.yaml': policyOf({ checks: [checkOf({ regression })] }), 'r.json': { value: 1 } };
    expect(gate(files).outcome).toBe(outcome);
    const withOther = { ...files, 'b.json': baseline(entry(1, { at: 'other' })) };
    expect(gate(withOther, { baseline: 'b.json' }).outcome).toBe(outcome);
  });

  it('numbers of different GPUs are not compared', () => {
    const result = gate(
      {
        'policy.yaml': policyOf({
          checks: [checkOf({ regression: { better: 'lower', fail: '10%', same: ['gpu.name'] } })],
        }),
        'r.json': { value: 50, gpu: { name: 'L4' } },
        'b.json': baseline(entry(100, { same: { 'gpu.name': 'H200' } })),
      },
      { baseline: 'b.json' },
    );
    expect(result.outcome).toBe('inconclusive');
    expect(result.reasons[0]).toContain('another gpu.name: "H200", now "L4"');
  });
});

describe('--update-baseline', () => {
  const policy = policyOf({
    checks: [
      checkOf({ fail: { above: 100 }, regression: { better: 'lower', fail: '10%', same: ['gpu'] } }),
      { ...checkOf({ fail: { above: 1 } }), id: 'limit-only' },
    ],
  });
  const update = (files: Readonly<Record<string, unknown>>, results = ['r.json']) => {
    const folder = folderOf({ 'policy.yaml': policy, ...files });
    const path = join(folder, 'b.json');
    const result = runGate({
      policy: join(folder, 'policy.yaml'),
      results: results.map((name) => join(folder, name)),
      baseline: path,
      updateBaseline: true,
      day: TODAY,
    });
    return {
      result,
      path,
      values: existsSync(path) ? baselineSchema.parse(JSON.parse(readFileSync(path, 'utf8'))).values : null,
    };
  };

  it('makes a baseline of what regression checks measured', () => {
    const { result, values } = update({ 'r.json': { value: 1, gpu: 'H200' } });
    expect(result).toMatchObject({ outcome: 'pass', baselineUpdated: true });
    expect(values).toEqual([entry(1, { same: { gpu: 'H200' } })]);
  });

  it('takes a worse value, keeps results that were not measured now, drops checks that are gone', () => {
    const old = baseline(entry(0.1), entry(5, { result: 'other' }), entry(6, { check: 'gone' }));
    const { values } = update({ 'r.json': { value: 0.9 }, 'b.json': old });
    expect(values?.map(({ result, value }) => [result, value])).toEqual([
      ['other', 5],
      ['r', 0.9],
    ]);
  });

  it('writes the same bytes for the same values', () => {
    const first = update({ 'r.json': { value: 1 } });
    const second = update({ 'r.json': { value: 1 } });
    expect(readFileSync(first.path)).toEqual(readFileSync(second.path));
  });

  it.each([
    ['breaks a limit', { value: 101 }],
    ['is not a number', { value: 'NaN' }],
    ['is infinite', { value: '-Infinity' }],
    ['is missing', {}],
  ])('leaves the baseline as it is when a value %s', (_, content) => {
    const { result, values } = update({ 'r.json': content, 'b.json': baseline(entry(7)) });
    expect(result).toMatchObject({ outcome: 'fail', baselineUpdated: false });
    expect(result.reasons.at(-1)).toContain('left as it is');
    expect(values).toEqual([entry(7)]);
  });

  it('needs a name, and rejects what is not a baseline', () => {
    const files = { 'policy.yaml': policy, 'r.json': { value: 1 }, 'b.json': '{"schema":"x"}' };
    expect(refusal(() => gate(files, { updateBaseline: true }))).toMatchObject({ code: 'TF_USAGE' });
    expect(refusal(() => gate(files, { baseline: 'b.json' }))).toMatchObject({
      code: 'TF_GATE_BASELINE_INVALID',
    });
    expect(refusal(() => gate({ ...files, 'b.json': '{' }, { baseline: 'b.json' }))).toMatchObject({
      code: 'TF_GATE_BASELINE_INVALID',
    });
    expect(refusal(() => gate(files, { baseline: 'none.json' }))).toMatchObject({
      remedy: expect.stringContaining('--update-baseline'),
      code: 'TF_FILE_NOT_FOUND',
    });
  });
});
