import { describe, expect, it } from 'vitest';
import { githubAnnotations, junitXml, renderGateMarkdown } from '../../../src/cli/commands/gate-text.js';
import { gateResultSchema } from '../../../src/quality/gate/result.js';
import { gate, policyOf } from './gate-case.js';

const field = 'v';
const rule = { result: { name: 'r' }, field };
const HOSTILE = 'a "b" <c> & %0A,:\r\n::error::x\u0000 ]]> |`@me`';

const every = () =>
  gate({
    'policy.yaml': policyOf({
      checks: [
        { id: 'ok', ...rule, fail: { above: 5 } },
        { id: 'bad', ...rule, fail: { above: 1 }, why: 'a reason' },
        { id: 'unsure', ...rule, inconclusive: { above: 1 } },
        { id: 'high', ...rule, warn: { above: 1 } },
        { id: 'known', ...rule, fail: { above: 1 } },
        { id: 'optional', result: { name: 'absent' }, field, fail: { above: 1 }, missing: 'skip' },
      ],
      waivers: [{ check: 'known', reason: 'we know', expires: '2026-11-30' }],
    }),
    'r.json': { [field]: 2 },
  });

const hostile = () =>
  gate({
    'policy.yaml': policyOf({
      checks: [{ id: 'it', result: { name: 'r' }, field: 'v', fail: { 'is-not': 'x' } }],
    }),
    'r.json': { v: HOSTILE },
  });

describe('rules that a policy leaves out', () => {
  it('are named, also where everything else passes', () => {
    const result = gate({
      'policy.yaml': policyOf({
        extends: 'streaming-parity',
        without: ['cache-contract', 'encoder-error', 'finite-outputs', 'task'],
        checks: [{ id: 'ok', ...rule, fail: { above: 5 } }],
      }),
      'r.json': { [field]: 2 },
    });
    expect(result.outcome).toBe('pass');
    expect(renderGateMarkdown(result)).toContain(
      'The policy leaves out cache-contract, encoder-error, finite-outputs, task.',
    );
    expect(renderGateMarkdown(every())).not.toContain('leaves out');
  });
});

describe('the result', () => {
  it('is of its schema, worst first, and counted', () => {
    const { folder: _, ...result } = every();
    expect(gateResultSchema.safeParse(result).error).toBeUndefined();
    expect(result.outcome).toBe('fail');
    expect(result.counts).toEqual({ pass: 1, waived: 1, warn: 1, inconclusive: 1, fail: 1, skipped: 1 });
    expect(result.findings.map(({ check }) => check)).toEqual([
      'bad',
      'unsure',
      'high',
      'known',
      'ok',
      'optional',
    ]);
  });
});

describe('GitHub annotations', () => {
  it('are errors, warnings and notices at the lines of the policy', () => {
    const { policy, ...rest } = every();
    const lines = githubAnnotations({ policy: 'gate/policy.yaml', ...rest });
    expect(policy).toMatch(/policy\.yaml$/);
    expect(lines).toEqual([
      '::error file=gate/policy.yaml,line=1,title=bad (r)::v of r is 2, above 1.',
      '::error file=gate/policy.yaml,line=1,title=unsure (r)::v of r is 2, above 1.',
      '::warning file=gate/policy.yaml,line=1,title=high (r)::v of r is 2, above 1.',
      expect.stringMatching(/^::warning .*title=waiver for known::.*ends on 2026-11-30, in 9 days/),
      '::notice file=gate/policy.yaml,line=1,title=known (r)::v of r is 2, above 1.',
    ]);
  });

  it('hold no value that could begin a command of its own', () => {
    const lines = githubAnnotations({ ...hostile(), policy: 'a,b:c%.yaml' });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^::error file=a%2Cb%3Ac%25\.yaml,/);
    expect(lines[0]).not.toMatch(/[\r\n]/);
    expect(lines[0]).toContain('%250A');
  });

  it('are ten of a level at most, the last saying how many more there are', () => {
    const result = gate({
      'policy.yaml': policyOf({
        checks: [{ id: 'it', result: { name: 'r' }, field: 'l[*]', fail: { above: 0 } }],
      }),
      'r.json': { l: Array(25).fill(1) },
    });
    const lines = githubAnnotations(result);
    expect(lines).toHaveLength(10);
    expect(lines.at(-1)).toContain('and 16 more');
  });
});

describe('JUnit XML', () => {
  it('has a case for each value and each waiver', () => {
    const xml = junitXml(every());
    expect(xml).toContain('tests="7" failures="1" errors="1" skipped="2"');
    expect(xml).toContain('<failure type="limit" message="v of r is 2, above 1.">');
    expect(xml).toContain('<error type="limit"');
    expect(xml).toContain('Waived until 2026-11-30: we know');
    expect(xml).toContain('<system-out>warning: v of r is 2, above 1.</system-out>');
    expect(xml).toContain('classname="waivers"');
  });

  it('holds any text and stays XML', () => {
    const xml = junitXml(hostile());
    expect(xml).not.toContain(']]>');
    expect(xml).not.toContain('\u0000');
    expect(xml).toContain('&quot;b&quot; &lt;c&gt; &amp; %0A');
    expect(tagsBalance(xml)).toBe(true);
  });
});

describe('the Markdown summary', () => {
  it('has verdict, reasons, table, waivers and the command', () => {
    const markdown = renderGateMarkdown({ ...every(), repeat: 'trtforge gate p.yaml' });
    expect(markdown).toContain('## Gate: ❌ Fail');
    expect(markdown).toContain('1 failed, 1 inconclusive, 2 warnings, 1 waived, 1 skipped, 1 passed');
    expect(markdown).toMatch(/\| ❌ fail \| `bad` \| r \| v of r is 2, above 1\.<br>\*a reason\* \|/);
    expect(markdown).toContain('### Waivers');
    expect(markdown).toContain('trtforge gate ');
  });

  it('lets no value become markup', () => {
    const row = renderGateMarkdown(hostile())
      .split('\n')
      .find((line) => line.startsWith('| ❌'));
    expect(row).toContain('&lt;c&gt;');
    expect(row).toContain('\\|');
    expect(row).not.toContain('@me');
  });

  it('fits a job summary with thousands of values', () => {
    const result = gate({
      'policy.yaml': policyOf({
        checks: [{ id: 'it', result: { name: 'r' }, field: 'l[*]', fail: { above: 0 } }],
      }),
      'r.json': { l: Array(20_000).fill(1) },
    });
    expect(Buffer.byteLength(renderGateMarkdown(result))).toBeLessThan(1 << 20);
  });
});

/** Whether every element that begins also ends, in order; entities and attributes hold no bare `<`. */
function tagsBalance(xml: string): boolean {
  const open: string[] = [];
  for (const [, slash, name = '', self] of xml.matchAll(/<(\/?)([a-z-]+)(?:\s+[a-z]+="[^"<]*")*(\/?)>/g)) {
    if (slash === '/' ? open.pop() !== name : false) return false;
    if (slash !== '/' && self !== '/') open.push(name);
  }
  return open.length === 0 && !/<(?![/?a-z])/.test(xml);
}
