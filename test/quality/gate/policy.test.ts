import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { isFieldPath, valuesAt } from '../../../src/quality/gate/field-path.js';
import { matchesGlob } from '../../../src/quality/gate/glob.js';
import { loadPolicy } from '../../../src/quality/gate/policy.js';
import { policyFileSchema } from '../../../src/quality/gate/policy-schema.js';
import { presets } from '../../../src/quality/gate/presets.js';
import { mutations } from '../../support/mutations.js';
import { refusal } from '../../support/refusal.js';
import { runs } from '../../support/runs.js';
import { folderOf } from './gate-case.js';

const loadText = (text: string) => loadPolicy(join(folderOf({ 'p.yaml': text }), 'p.yaml'));

const WHOLE = `schema: trtforge.gate-policy/1
extends: streaming-parity
results:
  bench: { schema: trtforge.bench/1, where: { gpu.name: H200 } }
checks:
  - id: latency
    why: the product's promise
    result: bench
    field: gpuMs.p99
    unit: ms
    fail: { above: 21 }
    warn: { above: 18 }
    missing: inconclusive
    regression: { better: lower, fail: 10%, warn: { relative: 5%, absolute: 0.1 }, same: [gpu.name], missing-baseline: warn }
waivers:
  - check: encoder-error
    result: parity
    at: drift.max
    up-to: 2.0e-3
    reason: see the ticket
    expires: 2027-01-31
    owner: speech team
expires-soon-days: 30
`;

const policyWith = (lines: string) => folderOf({ 'p.yaml': `schema: trtforge.gate-policy/1\n${lines}` });
const fault = (lines: string) => refusal(() => loadPolicy(join(policyWith(lines), 'p.yaml')));
const check = 'checks:\n  - { id: a, result: { name: r }, field: v, fail: { above: 1 } }\n';

describe('a policy file', () => {
  it('has checks, selections, waivers, and the lines they stand on', () => {
    const policy = loadPolicy(join(folderOf({ 'p.yaml': WHOLE }), 'p.yaml'));
    expect(policy.checks.map(({ id, line }) => [id, line])).toEqual([
      ['cache-contract', null],
      ['contract-sentences', null],
      ['encoder-error', null],
      ['finite-outputs', null],
      ['task', null],
      ['latency', 6],
    ]);
    expect(policy.checks[5]).toMatchObject({ resultName: 'bench', select: { schema: 'trtforge.bench/1' } });
    expect(policy.waivers).toMatchObject([{ check: 'encoder-error', line: 16 }]);
    expect(policy).toMatchObject({ expiresSoonDays: 30, extended: ['streaming-parity'] });
  });

  it.each([
    ['an unknown key, with the one that was meant', `${check}waiver: []\n`, /line 4: .*"waiver".*"waivers"/],
    ['one inside a check', 'checks:\n  - id: a\n    feild: v\n', /line 4, checks\.0.*"feild".*"field"/],
    ['one inside a limit', check.replace('above', 'abvoe'), /"abvoe".*"above"/],
    [
      'one inside a regression',
      check.replace('fail: { above: 1 }', 'regression: { beter: lower }'),
      /"beter".*"better"/,
    ],
    [
      'one inside a waiver',
      `${check}waivers:\n  - { check: a, reson: x, expires: 2027-01-01 }\n`,
      /"reson".*"reason"/,
    ],
    ['one inside a selection', check.replace('{ name: r }', '{ nam: r }'), /"nam".*"name"/],
    ['a limit that forbids nothing', check.replace('{ above: 1 }', '{}'), /empty/],
    ['a selection of everything', check.replace('{ name: r }', '{}'), /empty/],
    ['a check that forbids nothing', check.replace(', fail: { above: 1 }', ''), /"a" forbids nothing/],
    ['a check without a field', check.replace('field: v, ', ''), /check "a": "field": it is missing/],
    ['a limit that is no number', check.replace('above: 1', 'above: low'), /number/],
    ['a limit that is not a number', check.replace('above: 1', 'above: .nan'), /number/],
    [
      'two checks of one id',
      `${check}  - { id: a, result: { name: r }, field: v, fail: { above: 1 } }\n`,
      /two checks/,
    ],
    ['a path that is none', check.replace('field: v', 'field: "a..b"'), /not a path/],
    [
      'a margin that is none',
      check.replace('fail: { above: 1 }', 'regression: { better: lower, fail: 10 percent }'),
      /10%/,
    ],
    ['a result that is not described', check.replace('{ name: r }', 'rr'), /"rr".*"results"/s],
    [
      'a check with the id of the one that every policy has',
      check.replace('id: a', 'id: own-outcome'),
      /own-outcome/,
    ],
    ['a waiver without a reason', `${check}waivers: [{ check: a, expires: 2027-01-01 }]\n`, /reason/],
    [
      'a waiver with an empty reason',
      `${check}waivers: [{ check: a, reason: " ", expires: 2027-01-01 }]\n`,
      /reason/,
    ],
    ['a waiver without an end', `${check}waivers: [{ check: a, reason: x }]\n`, /expires/],
    [
      'a day that is not in the calendar',
      `${check}waivers: [{ check: a, reason: x, expires: 2026-02-30 }]\n`,
      /calendar/,
    ],
    [
      'a waiver for no check',
      `${check}waivers: [{ check: b, reason: x, expires: 2027-01-01 }]\n`,
      /"b", which is not there.*"a"/,
    ],
    ['rules that do not exist', 'extends: streaming-partiy\n', /neither.*"streaming-parity"/],
    [
      'a check taken out that is not there',
      `extends: streaming-parity\nwithout: [encoder-eror]\n`,
      /"encoder-error"/,
    ],
    [
      'a waiver without a reason',
      `${check}waivers:\n  - check: a\n    expires: 2027-01-01\n`,
      /waivers\.0\.reason: it is missing\./,
    ],
    [
      'text where a number should be',
      `${check}expires-soon-days: soon\n`,
      /a number is expected here, not text\./,
    ],
    ['a key given twice', `${check}checks: []\n`, /line 4.*unique/],
    ['no YAML', 'checks: [\n', /, line 3:/],
  ])('is rejected for %s', (_, lines, message) => {
    const error = fault(lines);
    expect(error.code).toBe('TF_GATE_POLICY_INVALID');
    expect(error.message).toMatch(message);
  });

  it('is rejected without its schema', () => {
    expect(refusal(() => loadText(check)).message).toMatch(/schema/);
  });

  it('changes a part of a check that it inherits, and takes others out', () => {
    const policy = loadPolicy(
      join(
        policyWith(
          'extends: streaming-parity\nwithout: [cache-contract, contract-sentences, finite-outputs, task]\nchecks:\n  - id: encoder-error\n    fail: { above: 2.0e-3 }\n',
        ),
        'p.yaml',
      ),
    );
    expect(policy.dropped).toEqual(['cache-contract', 'contract-sentences', 'finite-outputs', 'task']);
    expect(policy.checks).toMatchObject([
      { id: 'encoder-error', line: 5, fail: { above: 2e-3 }, warn: { above: 5e-4 }, field: 'drift.max' },
    ]);
  });

  it('extends other files, relative to itself, but never itself', () => {
    const folder = folderOf({
      'a.yaml': `schema: trtforge.gate-policy/1\nextends: [b.yaml]\n${check}`,
      'b.yaml':
        'schema: trtforge.gate-policy/1\nextends: streaming-parity\nwithout: [cache-contract, contract-sentences, finite-outputs, task]\n',
    });
    const policy = loadPolicy(join(folder, 'a.yaml'));
    expect(policy.checks.map(({ id }) => id)).toEqual(['encoder-error', 'a']);
    writeFileSync(join(folder, 'b.yaml'), 'schema: trtforge.gate-policy/1\nextends: a.yaml\n');
    expect(refusal(() => loadPolicy(join(folder, 'a.yaml'))).message).toMatch(/extends itself/);
    expect(refusal(() => loadPolicy(join(folder, 'none.yaml')))).toMatchObject({ code: 'TF_FILE_NOT_FOUND' });
  });

  it('that is damaged is read or rejected, and nothing else', () => {
    const path = join(folderOf({}), 'p.yaml');
    for (const bytes of mutations(Buffer.from(WHOLE), runs(1500), 7)) {
      writeFileSync(path, bytes);
      try {
        loadPolicy(path);
      } catch (error) {
        expect(error).toBeInstanceOf(TrtforgeError);
      }
    }
  });

  it('cannot fill the memory with aliases', () => {
    const lines = ['a: &a0 [x, x, x, x, x, x, x, x, x]'];
    for (let depth = 1; depth < 12; depth++)
      lines.push(
        `b${depth}: &a${depth} [${Array(9)
          .fill(`*a${depth - 1}`)
          .join(', ')}]`,
      );
    expect(refusal(() => loadText(lines.join('\n')))).toMatchObject({
      code: 'TF_GATE_POLICY_INVALID',
    });
  });
});

describe('ready rules', () => {
  it.each(Object.keys(presets))('%s are a policy of their own', (name) => {
    expect(policyFileSchema.safeParse(presets[name]).error).toBeUndefined();
    expect(loadPolicy(join(policyWith(`extends: ${name}\n`), 'p.yaml')).checks.length).toBeGreaterThan(0);
  });
});

describe('paths', () => {
  it('never throw, whatever they are and whatever they are put to', () => {
    fc.assert(
      fc.property(fc.string(), fc.jsonValue(), (path, value) => {
        if (isFieldPath(path)) expect(Array.isArray(valuesAt(value, path))).toBe(true);
        else expect(refusal(() => valuesAt(value, path)).code).toBe('TF_GATE_POLICY_INVALID');
      }),
    );
  });

  it('lead to what JSON.parse put there, and to nothing inherited', () => {
    expect(valuesAt({}, 'constructor')).toEqual([]);
    expect(valuesAt('text', 'length')).toEqual([]);
    expect(valuesAt({ a: { 'b c': [0, { d: 1 }] } }, "a['b c'][1].d")).toEqual([
      { at: 'a.b c[1].d', value: 1 },
    ]);
  });

  it.each(['', '.', 'a.', '.a', 'a[', 'a[]', 'a[x]', 'a[x=]', 'ab cd', 'a[1]b'])(
    '"%s" is rejected',
    (path) => {
      expect(isFieldPath(path)).toBe(false);
    },
  );
});

describe('stars', () => {
  it.each([
    ['trtforge.bench/1', 'trtforge.*', true],
    ['a', '*', true],
    ['', '*', true],
    ['abc', 'a*c', true],
    ['abcd', 'a*c', false],
    ['a.c', 'a.c', true],
    ['abc', 'a.c', false],
    ['aXbXc', '*b*', true],
  ])('%s fits %s: %s', (text, pattern, fits) => {
    expect(matchesGlob(text, pattern)).toBe(fits);
  });

  it('are fast where a regular expression would not be', () => {
    expect(matchesGlob('a'.repeat(5000), `${'*a'.repeat(50)}b`)).toBe(false);
  });
});
