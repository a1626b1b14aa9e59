import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { gateResultSchema } from '../../../src/quality/gate/result.js';
import { folderOf, policyOf } from '../../quality/gate/gate-case.js';
import { trtforge } from '../../support/trtforge.js';

const home = process.cwd();
afterEach(() => process.chdir(home));

const check = { id: 'latency', result: { schema: 'trtforge.bench/1' }, field: 'gpuMs.median', unit: 'ms' };
const bench = (median: unknown) => ({ schema: 'trtforge.bench/1', gpuMs: { median } });
const policy = policyOf({ checks: [{ ...check, fail: { above: 20 }, warn: { above: 10 } }] });

/** Runs `trtforge gate` in a folder with these files. */
async function gate(files: Readonly<Record<string, unknown>>, words: readonly string[], environment = {}) {
  const folder = folderOf(files);
  process.chdir(folder);
  const { exitCode, out, err } = await trtforge(['gate', ...words], {
    ...process.env,
    NO_COLOR: '1',
    ...environment,
  });
  return {
    status: exitCode,
    stdout: out,
    stderr: err,
    file: (name: string) => readFileSync(join(folder, name), 'utf8'),
    folder,
  };
}

describe('trtforge gate', async () => {
  it.each([
    [5, 0, /pass +1 passed/],
    [15, 0, /pass with warnings +1 warning/],
    [25, 1, /FAIL +1 failed/],
    ['NaN', 1, /never passes/],
  ])('a median of %s ms ends with %i', async (median, code, said) => {
    const { status, stdout } = await gate({ 'p.yaml': policy, 'bench.json': bench(median) }, [
      'p.yaml',
      'bench.json',
    ]);
    expect(status).toBe(code);
    expect(stdout).toMatch(said);
    expect(stdout).toContain('To repeat: trtforge gate p.yaml bench.json');
  });

  it('ends with 4 when nothing failed and something is inconclusive', async () => {
    const files = {
      'p.yaml': policyOf({ checks: [{ ...check, inconclusive: { above: 1 } }] }),
      'b.json': bench(2),
    };
    expect((await gate(files, ['p.yaml', 'b.json'])).status).toBe(4);
  });

  it.each([
    ['a policy that is none', { 'p.yaml': 'a: [' }, ['p.yaml', 'b.json'], 'TF_GATE_POLICY_INVALID'],
    ['an empty result', { 'b.json': '' }, ['p.yaml', 'b.json'], 'TF_GATE_RESULT_INVALID'],
    ['a result cut short', { 'b.json': '{"schema":"trtfo' }, ['p.yaml', 'b.json'], 'TF_GATE_RESULT_INVALID'],
    ['a result that is a list', { 'b.json': '[]' }, ['p.yaml', 'b.json'], 'TF_GATE_RESULT_INVALID'],
    ['a result that is not there', {}, ['p.yaml', 'none.json'], 'TF_FILE_NOT_FOUND'],
    ['two results of one name', {}, ['p.yaml', 'b.json', 'b=b.json'], 'TF_USAGE'],
    ['no result', {}, ['p.yaml'], 'TF_USAGE'],
    ['a baseline to update that has no name', {}, ['p.yaml', 'b.json', '--update-baseline'], 'TF_USAGE'],
  ])('ends with 2 for %s', async (_, files, words, error) => {
    const { status, stdout } = await gate({ 'p.yaml': policy, 'b.json': bench(1), ...files }, [
      ...words,
      '--json',
    ]);
    expect(status).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: { code: error } });
  });

  it('answers in JSON of its schema, and writes the same with -o', async () => {
    const words = ['p.yaml', 'now=bench.json', '-o', 'gate.json', '--json'];
    const { stdout, file } = await gate({ 'p.yaml': policy, 'bench.json': bench(25) }, words);
    const answer: unknown = JSON.parse(stdout);
    expect(gateResultSchema.safeParse(answer).error).toBeUndefined();
    expect(answer).toMatchObject({
      schema: 'trtforge.gate/1',
      ok: false,
      exitCode: 1,
      results: [{ name: 'now', path: 'bench.json', checks: 1 }],
    });
    expect(gateResultSchema.parse(JSON.parse(file('gate.json'))).outcome).toBe('fail');
  });

  it('writes annotations for GitHub and GitLab', async () => {
    const files = { 'p.yaml': policy, 'bench.json': bench(25), 'summary.md': '# before\n' };
    const words = ['p.yaml', 'bench.json', '--github', '--junit', 'gate.xml', '--markdown', 'gate.md'];
    const { stdout, file } = await gate(files, words, { GITHUB_STEP_SUMMARY: 'summary.md' });
    expect(stdout).toMatch(
      /^::error file=p\.yaml,line=1,title=latency \(bench\)::gpuMs\.median of bench is 25 ms, above 20\.$/m,
    );
    expect(file('gate.xml')).toContain('<failure');
    expect(file('gate.md')).toContain('## Gate: ❌ Fail');
    expect(file('summary.md')).toMatch(/^# before\n## Gate/);
  });

  it('reports the rules that the policy leaves out', async () => {
    const rules = policyOf({
      extends: 'streaming-parity',
      without: ['cache-contract', 'encoder-error', 'finite-outputs', 'task'],
      checks: [{ ...check, fail: { above: 20 } }],
    });
    const { stdout } = await gate({ 'p.yaml': rules, 'bench.json': bench(10) }, ['p.yaml', 'bench.json']);
    expect(stdout).toContain('The policy leaves out cache-contract, encoder-error, finite-outputs, task.');
  });

  it('init writes a policy that judges the next results, and never over another file', async () => {
    const files = { 'bench.json': { ...bench(10), exitCode: 0 }, 'edited.yaml': policy };
    const printed = await gate(files, ['init', 'bench.json']);
    expect(printed.status).toBe(0);
    const written = await gate(files, ['init', 'bench.json', '-o', 'p.yaml', '--json']);
    expect(written.status).toBe(0);
    const result = JSON.parse(written.stdout) as Record<string, unknown>;
    expect(result).toMatchObject({ schema: 'trtforge.gate-init/1', command: 'gate init', output: 'p.yaml' });
    expect(written.file('p.yaml')).toBe(result.policy);
    expect(printed.stdout.trimEnd()).toBe(written.file('p.yaml').trimEnd());
    const judged = (median: number) =>
      gate({ 'p.yaml': result.policy, 'next.json': { ...bench(median), exitCode: 0 } }, [
        'p.yaml',
        'next.json',
      ]);
    expect([(await judged(10)).status, (await judged(10.5)).status]).toEqual([0, 1]);
    const refused = await gate(files, ['init', 'bench.json', '-o', 'edited.yaml', '--json']);
    expect(refused.status).toBe(2);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: 'TF_OUTPUT_OF_OTHER_KIND' } });
    expect(refused.file('edited.yaml')).toBe(policy);
  });

  it('makes a baseline, holds the next run against it, and leaves it when that fails', async () => {
    const regression = { better: 'lower', fail: '10%' };
    const rules = policyOf({ checks: [{ ...check, fail: { above: 20 }, regression }] });
    const words = ['p.yaml', 'bench.json', '--baseline', 'base.json'];
    const first = await gate({ 'p.yaml': rules, 'bench.json': bench(10) }, [...words, '--update-baseline']);
    expect(first.status).toBe(0);
    const base = first.file('base.json');
    const next = await gate({ 'p.yaml': rules, 'bench.json': bench(12), 'base.json': base }, words);
    expect(next.status).toBe(1);
    expect(next.stdout).toContain('20 % worse than 10 (allowed 10%)');
    const bad = await gate({ 'p.yaml': rules, 'bench.json': bench(30), 'base.json': base }, [
      ...words,
      '--update-baseline',
    ]);
    expect(bad.status).toBe(1);
    expect(bad.file('base.json')).toBe(base);
    expect(existsSync(join(bad.folder, 'gate.json'))).toBe(false);
  });
});
