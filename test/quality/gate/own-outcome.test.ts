import { describe, expect, it } from 'vitest';
import { githubAnnotations, junitXml } from '../../../src/cli/commands/gate-text.js';
import { gateResultSchema } from '../../../src/quality/gate/result.js';
import { checkOf, gate, policyOf } from './gate-case.js';

const waiver = { check: 'own-outcome', reason: 'limits of FP32, FP16 engine', expires: '2027-03-01' };

/** The gate on one result under a policy whose only check passes. */
const over = (result: Readonly<Record<string, unknown>>, more: Readonly<Record<string, unknown>> = {}) =>
  gate({
    'policy.yaml': policyOf({ checks: [checkOf({ fail: { above: 1 } })], ...more }),
    'r.json': { schema: 'trtforge.bench/1', value: 0, ...result },
  });

const own = (result: ReturnType<typeof gate>) =>
  result.findings.filter(({ check }) => check === 'own-outcome').map(({ at, outcome }) => [at, outcome]);

describe("a result's own outcome", () => {
  it.each([
    ['a command that passed', { exitCode: 0, ok: true }, 'pass', [['exitCode', 'pass']]],
    ['one that failed', { exitCode: 1, ok: false }, 'fail', [['exitCode', 'fail']]],
    ['one that this machine cannot do', { exitCode: 3, ok: false }, 'fail', [['exitCode', 'fail']]],
    ['one that could not decide', { exitCode: 4, ok: false }, 'inconclusive', [['exitCode', 'inconclusive']]],
    ['a result of the library', { outcome: 'fail' }, 'fail', [['outcome', 'fail']]],
    ['one without an exit code', { ok: false }, 'fail', [['ok', 'fail']]],
    [
      'a report',
      { verdict: { outcome: 'inconclusive' } },
      'inconclusive',
      [['verdict.outcome', 'inconclusive']],
    ],
    ['a bundle', { exitCode: 5, outcome: 'error' }, 'fail', [['exitCode', 'fail']]],
    [
      'a run that compared nothing',
      { exitCode: 0, verdict: { outcome: 'built' } },
      'pass',
      [['verdict.outcome', 'skipped']],
    ],
    ['a bundle that compared nothing', { exitCode: 0, outcome: 'built' }, 'pass', [['outcome', 'skipped']]],
    ['a log of a run that failed', { exitCode: 0, outcome: 'failed' }, 'fail', [['outcome', 'fail']]],
    ['a log that holds no run', { outcome: 'unknown' }, 'pass', []],
    ['a comparison of speeds', { verdict: 'slower' }, 'pass', []],
    ['a result that reports nothing', {}, 'pass', []],
    [
      'verdicts apart, which the exit code repeats',
      { exitCode: 1, outcome: 'fail', verdicts: { contract: 'pass', numeric: 'fail', task: 'inconclusive' } },
      'fail',
      [
        ['verdicts.numeric', 'fail'],
        ['verdicts.task', 'inconclusive'],
      ],
    ],
    [
      'an exit code that is worse than the verdicts',
      { exitCode: 1, verdicts: { numeric: 'inconclusive', task: null } },
      'fail',
      [
        ['exitCode', 'fail'],
        ['verdicts.numeric', 'inconclusive'],
      ],
    ],
  ])('%s', (_, result, outcome, findings) => {
    const judged = over(result);
    expect(own(judged)).toEqual(findings);
    expect(judged.outcome).toBe(outcome);
    const { folder: _folder, ...plain } = judged;
    expect(gateResultSchema.safeParse(plain).error).toBeUndefined();
  });

  it('decides alone where the policy has no checks, and passes nothing that reports nothing', () => {
    expect(over({ exitCode: 0 }, { checks: [] }).outcome).toBe('pass');
    expect(over({ exitCode: 1 }, { checks: [] }).outcome).toBe('fail');
    expect(over({}, { checks: [] }).outcome).toBe('inconclusive');
  });

  it('never makes a pass of a policy whose every check was skipped', () => {
    const checks = [checkOf({ result: { name: 'absent' }, fail: { above: 1 }, missing: 'skip' })];
    expect(over({ exitCode: 0 }, { checks }).outcome).toBe('inconclusive');
  });

  it('leaves a gate undecided that asks for the comparison of a run that compared nothing', () => {
    const built = { exitCode: 0, verdict: { outcome: 'built', headline: 'Built.' }, verification: null };
    expect(over(built, { checks: [] }).outcome).toBe('inconclusive');
    for (const field of ['verification.outcome', 'verdict.outcome'])
      expect(
        over(built, {
          checks: [checkOf({ field, fail: { is: 'fail' }, inconclusive: { 'is-not': 'pass' } })],
        }).outcome,
      ).toBe('inconclusive');
    expect(over(built, { checks: [checkOf({ field: 'bench.gpuMs', fail: { above: 1 } })] }).outcome).toBe(
      'fail',
    );
    expect(junitXml(over(built))).toContain('<skipped message="r itself reports built');
  });

  it('names what a pass is about', () => {
    const { findings } = over({ exitCode: 0, headline: 'It passes on drawn samples.' });
    expect(findings.map(({ message }) => message).join()).toContain('on drawn samples');
  });

  it('cannot be taken out, only waived: by place, with a reason and an end', () => {
    const failed = { exitCode: 1, verdicts: { contract: 'pass', numeric: 'fail' } };
    expect(over(failed, { waivers: [waiver] }).outcome).toBe('pass');
    const narrow = { ...waiver, at: 'verdicts.numeric' };
    expect(over(failed, { waivers: [narrow] }).outcome).toBe('pass');
    const broken = { exitCode: 1, verdicts: { contract: 'fail', numeric: 'fail' } };
    expect(own(over(broken, { waivers: [narrow] }))).toEqual([
      ['verdicts.contract', 'fail'],
      ['verdicts.numeric', 'waived'],
    ]);
    expect(over(failed, { waivers: [{ ...waiver, 'up-to': 1 }] }).outcome).toBe('fail');
    expect(over(failed, { waivers: [{ ...waiver, expires: '2026-11-20' }] }).outcome).toBe('fail');
    expect(() => over(failed, { without: ['own-outcome'] })).toThrow(/own-outcome/);
  });

  it('stands in every view', () => {
    const { policy: _, ...rest } = over({ exitCode: 1, reasons: ['Chunk 3 is 0.2 off.'] });
    const result = { ...rest, policy: 'p.yaml' };
    expect(result.reasons[0]).toContain('Chunk 3 is 0.2 off.');
    expect(githubAnnotations(result)[0]).toContain('own-outcome');
    expect(junitXml(result)).toContain('type="own-outcome"');
  });
});
