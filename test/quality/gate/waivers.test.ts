import { describe, expect, it } from 'vitest';
import { gate, policyOf } from './gate-case.js';

const check = {
  id: 'error',
  result: { name: '*' },
  field: 'error',
  fail: { above: 1e-3 },
  warn: { above: 5e-4 },
};
const waiver = { check: 'error', reason: 'sm_120, fixed in 11.2', expires: '2027-03-01' };

const waived = (
  error: unknown,
  more: object = {},
  given: { readonly day?: string; readonly results?: Readonly<Record<string, unknown>> } = {},
) =>
  gate(
    {
      'policy.yaml': policyOf({ checks: [check], waivers: [{ ...waiver, ...more }] }),
      ...(given.results ?? { 'r.json': { error } }),
    },
    given.day === undefined ? {} : { day: given.day },
  );

describe('waivers', () => {
  it('excuse a miss, and state why and until when', () => {
    const result = waived(2e-3);
    expect(result.outcome).toBe('pass');
    expect(result.findings).toMatchObject([
      {
        outcome: 'waived',
        unwaived: 'fail',
        rule: 'limit',
        waiver: { reason: waiver.reason, expires: waiver.expires, owner: null },
      },
    ]);
    expect(result.waivers).toMatchObject([{ state: 'used', daysLeft: 100, outcome: 'pass' }]);
  });

  it.each([
    ['2027-03-02', 'fail', 'expired'],
    ['2027-03-01', 'warn', 'expiring'],
    ['2027-02-15', 'warn', 'expiring'],
    ['2027-02-14', 'pass', 'used'],
  ])('on %s the gate decides %s: the waiver is %s', (day, outcome, state) => {
    const result = waived(2e-3, {}, { day });
    expect(result.outcome).toBe(outcome);
    expect(result.waivers).toMatchObject([{ state }]);
  });

  it('that have ended fail even where nothing needs them', () => {
    const result = waived(0, { expires: '2026-11-20' });
    expect(result.outcome).toBe('fail');
    expect(result.reasons[0]).toContain('ended on 2026-11-20');
  });

  it('that nothing needs any more are warnings', () => {
    expect(waived(0)).toMatchObject({ outcome: 'warn', waivers: [{ state: 'unused' }] });
  });

  it('end when the policy reports it: expires-soon-days', () => {
    const files = {
      'policy.yaml': policyOf({ checks: [check], waivers: [waiver], 'expires-soon-days': 100 }),
      'r.json': { error: 1 },
    };
    expect(gate(files).waivers).toMatchObject([{ state: 'expiring', outcome: 'warn' }]);
  });

  it.each([
    ['NaN', 'NaN'],
    ['a text', 'low'],
    ['null', null],
  ])('never excuse what is no measurement: %s', (_, error) => {
    expect(waived(error).outcome).toBe('fail');
  });

  it('never excuse a missing result', () => {
    const files = {
      'policy.yaml': policyOf({
        checks: [{ ...check, result: { name: 'absent' } }],
        waivers: [waiver],
      }),
      'r.json': { error: 0 },
    };
    expect(gate(files).outcome).toBe('fail');
  });

  it.each([
    [2e-3, 'pass'],
    [3e-3, 'pass'],
    [3.1e-3, 'fail'],
  ])('up to 3e-3 excuse %s: %s', (error, outcome) => {
    expect(waived(error, { 'up-to': 3e-3 }).outcome).toBe(outcome);
  });

  it('that a miss goes beyond state how far they reach, and are not called unneeded', () => {
    const result = waived(3.1e-3, { 'up-to': 3e-3 });
    expect(result.waivers).toMatchObject([{ state: 'too-weak', outcome: 'warn' }]);
    expect(result.waivers[0]?.message).toMatch(/up to 0\.003, and error of r is 0\.0031\./);
    expect(waived('NaN').waivers[0]?.message).toMatch(/not a measured miss \(not-a-number\)/);
  });

  it('that excuse one result and not another state which they do not', () => {
    const results = { 'a.json': { error: 2e-3 }, 'b.json': { error: 4e-3 } };
    const result = waived(0, { 'up-to': 3e-3 }, { results });
    expect(result.findings.map((each) => [each.result, each.outcome])).toEqual([
      ['b', 'fail'],
      ['a', 'waived'],
    ]);
    expect(result.waivers[0]?.message).toMatch(/error of b is 0\.004/);
  });

  it('up to a number below, where less is worse', () => {
    const files = (cosine: number) => ({
      'policy.yaml': policyOf({
        checks: [{ id: 'cosine', result: { name: 'r' }, field: 'c', fail: { below: 0.99 } }],
        waivers: [{ ...waiver, check: 'cosine', 'up-to': 0.9 }],
      }),
      'r.json': { c: cosine },
    });
    expect(gate(files(0.95)).outcome).toBe('pass');
    expect(gate(files(0.85)).outcome).toBe('fail');
  });

  it('may be for one result only', () => {
    const results = { 'a.json': { error: 1 }, 'b.json': { error: 1 } };
    const result = waived(0, { result: 'a' }, { results });
    expect(result.findings.map((each) => [each.result, each.outcome])).toEqual([
      ['b', 'fail'],
      ['a', 'waived'],
    ]);
  });

  it('may be for one place only', () => {
    const files = {
      'policy.yaml': policyOf({
        checks: [{ ...check, field: 'outputs[*].error' }],
        waivers: [{ ...waiver, at: 'outputs[cache_*].error' }],
      }),
      'r.json': {
        outputs: [
          { name: 'cache_time', error: 0.1 },
          { name: 'logits', error: 0.1 },
        ],
      },
    };
    expect(gate(files).findings.map((each) => [each.at, each.outcome])).toEqual([
      ['outputs[logits].error', 'fail'],
      ['outputs[cache_time].error', 'waived'],
    ]);
  });
});
