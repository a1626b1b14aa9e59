import { describe, expect, it } from 'vitest';
import { gate, gateOn, policyOf } from './gate-case.js';

describe('limits', () => {
  it.each([
    [1, { fail: { above: 1 } }, 'pass'],
    [1.0001, { fail: { above: 1 } }, 'fail'],
    [1, { fail: { 'at-least': 1 } }, 'fail'],
    [0.9, { fail: { below: 0.9 } }, 'pass'],
    [0.89, { fail: { below: 0.9 } }, 'fail'],
    [0.9, { fail: { 'at-most': 0.9 } }, 'fail'],
    [7e-4, { fail: { above: 1e-3 }, warn: { above: 5e-4 } }, 'warn'],
    [2e-3, { fail: { above: 1e-3 }, warn: { above: 5e-4 } }, 'fail'],
    [4e-4, { fail: { above: 1e-3 }, warn: { above: 5e-4 } }, 'pass'],
    [5, { fail: { below: 1, above: 4 } }, 'fail'],
    ['pass', { fail: { 'is-not': 'pass' } }, 'pass'],
    ['fail', { fail: { 'is-not': 'pass' } }, 'fail'],
    ['inconclusive', { fail: { is: 'fail' }, inconclusive: { 'is-not': 'pass' } }, 'inconclusive'],
    ['b', { fail: { 'one-of': ['a', 'b'] } }, 'fail'],
    ['c', { fail: { 'none-of': ['a', 'b'] } }, 'fail'],
    [true, { warn: { is: true } }, 'warn'],
    [null, { fail: { is: null } }, 'fail'],
    [null, { fail: { 'is-not': null } }, 'pass'],
  ])('%j under %j is %s', (value, rule, outcome) => {
    expect(gateOn(value, rule).outcome).toBe(outcome);
  });

  it.each([
    ['NaN by name', 'NaN', { fail: { above: 1 } }, 'not-a-number'],
    ['NaN where only equality is asked', 'NaN', { fail: { is: 'fail' } }, 'not-a-number'],
    ['an infinite error', 'Infinity', { fail: { above: 1 } }, 'limit'],
    ['a text for a number', 'small', { fail: { above: 1 } }, 'wrong-type'],
    ['a number for a text', 0, { fail: { is: 'fail' } }, 'wrong-type'],
    ['a list for a number', [1], { warn: { above: 1 } }, 'wrong-type'],
    ['an object for a text', {}, { warn: { is: 'x' } }, 'wrong-type'],
    ['null for a number', null, { warn: { above: 1 } }, 'missing-field'],
  ])('%s never passes', (_, value, rule, why) => {
    const result = gateOn(value, rule);
    expect(result.outcome).toBe('fail');
    expect(result.findings[0]?.rule).toBe(why);
  });

  it('takes NaN as Python writes it into JSON', () => {
    const result = gate({
      'policy.yaml': policyOf({
        checks: [{ id: 'e', result: { name: 'r' }, field: 'e', fail: { above: 1 } }],
      }),
      'r.json': '{"e": NaN, "said": "a \\" NaN"}',
    });
    expect(result.findings[0]).toMatchObject({ rule: 'not-a-number', outcome: 'fail', value: 'NaN' });
  });

  it('a number is printed with the digits that one reads, and with all where they decide', () => {
    const said = (value: number) => gateOn(value, { fail: { above: 1e-3 } }).findings[0];
    expect(said(0.0043038129806518555)?.message).toMatch(/ is 0\.00430381, above 0\.001\.$/);
    expect(said(0.0043038129806518555)?.value).toBe(0.0043038129806518555);
    expect(said(0.00100000001)?.message).toMatch(/ is 0\.00100000001, above 0\.001\.$/);
  });

  it('an infinite similarity is above every limit', () => {
    expect(gateOn('Infinity', { fail: { below: 30 } }).outcome).toBe('pass');
  });
});

describe('what is not there', () => {
  const check = {
    id: 'it',
    result: { schema: 'trtforge.bench/1' },
    field: 'gpuMs.median',
    fail: { above: 1 },
  };
  const without = (missing?: string) => ({
    'policy.yaml': policyOf({ checks: [{ ...check, ...(missing === undefined ? {} : { missing }) }] }),
  });

  it.each([
    [undefined, 'fail', 'fail'],
    ['inconclusive', 'inconclusive', 'inconclusive'],
    ['warn', 'warn', 'warn'],
    ['skip', 'inconclusive', 'skipped'],
  ])('a missing result with missing: %s ends as %s', (missing, outcome, finding) => {
    const result = gate({ ...without(missing), 'other.json': { schema: 'trtforge.verify/1' } });
    expect(result.outcome).toBe(outcome);
    expect(result.findings).toMatchObject([{ rule: 'missing-result', outcome: finding, result: null }]);
    expect(result.results).toMatchObject([{ name: 'other', checks: 0 }]);
  });

  it.each([{}, { gpuMs: null }, { gpuMs: { p99: 1 } }, { gpuMs: { median: null } }])(
    'a missing field fails: %j',
    (content) => {
      const result = gate({ ...without(), 'b.json': { schema: 'trtforge.bench/1', ...content } });
      expect(result.findings).toMatchObject([{ rule: 'missing-field', outcome: 'fail', result: 'b' }]);
    },
  );

  it('an empty list has nothing to be judged, which fails', () => {
    const result = gate({
      'policy.yaml': policyOf({
        checks: [{ id: 'it', result: { name: 'r' }, field: 'outputs[*].max', fail: { above: 1 } }],
      }),
      'r.json': { outputs: [] },
    });
    expect(result.findings).toMatchObject([{ rule: 'missing-field', outcome: 'fail' }]);
  });

  it('a result that is an error fails whatever the policy asks', () => {
    const result = gate({
      'policy.yaml': policyOf({ checks: [{ ...check, missing: 'skip' }] }),
      'b.json': {
        schema: 'trtforge.error/1',
        error: { code: 'TF_GPU_UNAVAILABLE', message: 'There is no GPU.' },
      },
    });
    expect(result.outcome).toBe('fail');
    expect(result.reasons[0]).toContain('TF_GPU_UNAVAILABLE There is no GPU.');
  });
});

describe('which results and which fields', () => {
  const outputs = [
    { name: 'logits', max: 0.5 },
    { name: 'cache', max: 3 },
  ];

  it.each([
    ['outputs[*].max', ['outputs[cache].max', 'outputs[logits].max']],
    ['outputs[name=logits].max', ['outputs[logits].max']],
    ['outputs[name=c*].max', ['outputs[cache].max']],
    ["outputs[name='cache'].max", ['outputs[cache].max']],
    ['outputs[-1].max', ['outputs[cache].max']],
    ['outputs.length', ['outputs.length']],
    ["['outputs'][0]['max']", ['outputs[logits].max']],
  ])('%s leads to %j', (field, places) => {
    const result = gate({
      'policy.yaml': policyOf({ checks: [{ id: 'it', result: { name: 'r' }, field, warn: { above: 1 } }] }),
      'r.json': { outputs },
    });
    expect(result.findings.map(({ at }) => at).sort()).toEqual([...places].sort());
  });

  it('outputs of a parity result are called by their tensors, elements that share one by their number', () => {
    const placesOf = (tensors: readonly string[]) =>
      gate({
        'policy.yaml': policyOf({
          checks: [{ id: 'it', result: { name: 'r' }, field: 'outputs[*].max', warn: { above: 1 } }],
        }),
        'r.json': { outputs: tensors.map((tensor) => ({ tensor, max: 0 })) },
      }).findings.map(({ at }) => at);
    expect(placesOf(['a', 'b'])).toEqual(['outputs[a].max', 'outputs[b].max']);
    expect(placesOf(['a', 'a'])).toEqual(['outputs[0].max', 'outputs[1].max']);
  });

  it('elements without names of their own are called by number', () => {
    const result = gate({
      'policy.yaml': policyOf({
        checks: [{ id: 'it', result: { name: 'r' }, field: 'l[*].v', fail: { above: 5 } }],
      }),
      'r.json': {
        l: [
          { v: 1, name: 'same' },
          { v: 2, name: 'same' },
        ],
      },
    });
    expect(result.findings.map(({ at }) => at)).toEqual(['l[0].v', 'l[1].v']);
  });

  it.each([
    [{ schema: 'trtforge.stream-verify/1' }, ['a', 'b']],
    [{ schema: 'trtforge.stream-verify/*' }, ['a', 'b']],
    [{ schema: 'trtforge.*', where: { mode: 'closed-loop' } }, ['a']],
    [{ schema: 'trtforge.*', name: 'b' }, ['b']],
    [{ name: '*' }, ['a', 'b', 'c']],
  ])('%j selects %j', (select, names) => {
    const content = (schema: string | undefined, mode: string) => ({ schema, mode, value: 0 });
    const result = gate({
      'policy.yaml': policyOf({
        checks: [{ id: 'it', result: select, field: 'value', fail: { above: 1 } }],
      }),
      'a.json': content('trtforge.stream-verify/1', 'closed-loop'),
      'b.json': content('trtforge.stream-verify/1', 'functional'),
      'c.json': content(undefined, 'x'),
    });
    expect(result.findings.map((finding) => finding.result)).toEqual(names);
  });
});
