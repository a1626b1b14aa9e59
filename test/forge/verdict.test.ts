import { describe, expect, test } from 'vitest';
import { type Judged, judge } from '../../src/forge/verdict.js';
import type { ForgeResult } from '../../src/report/forge-result.js';
import { failedSample, sampleResult, stoppedSample } from '../report/sample.js';

const passed: Judged = sampleResult();

describe('the verdict of a run', () => {
  test.each<[string, Judged, ForgeResult['verdict']['outcome'], number]>([
    ['compared and built', passed, 'pass', 0],
    ['compared, no engine asked for', { ...passed, build: null }, 'pass', 0],
    ['built, not compared', { ...passed, verification: null }, 'built', 0],
    [
      'built wrong, only its typed model compared',
      { ...passed, build: { ...passed.build!, wrongAnswer: 'y is wrong' } },
      'fail',
      1,
    ],
    ['neither built nor compared', { ...passed, verification: null, build: null }, 'inconclusive', 4],
    ['an output outside tolerance', failedSample(), 'fail', 1],
    [
      'a comparison that cannot tell',
      { ...passed, verification: { ...passed.verification!, outcome: 'inconclusive' } },
      'inconclusive',
      4,
    ],
    ['stopped: this machine cannot', stoppedSample(), 'inconclusive', 3],
    ['wrongly asked', { ...stoppedSample(), error: { ...stoppedSample().error!, exitCode: 2 } }, 'error', 2],
    [
      'stopped after a failed gate',
      { ...stoppedSample(), error: { ...stoppedSample().error!, exitCode: 1 } },
      'fail',
      1,
    ],
  ])('%s: it is %s', (_, run, outcome, exitCode) => {
    const judgement = judge(run);
    expect([judgement.verdict.outcome, judgement.exitCode]).toEqual([outcome, exitCode]);
  });

  test('a pass states what it does not cover', () => {
    expect(judge(passed).verdict.reasons).toContain(
      'Skipped verify engine, bench: no NVIDIA driver on this machine.',
    );
  });

  test('a pass states what it is about, and the decisions', () => {
    const { verification } = passed;
    const decisions = [
      {
        rule: 'above 0.5' as const,
        reference: 44,
        kept: 43,
        lost: 1,
        new: 2,
        ties: 0,
        limit: 0.05,
        pass: true,
      },
    ];
    const [logits, features] = verification!.outputs;
    const run = {
      ...passed,
      verification: {
        ...verification!,
        samplesFrom: { samples: [{ origin: 'zeros', kind: 'edge' as const }], available: null },
        outputs: [{ ...logits!, decisions }, features!],
      },
    };
    expect(judge(run).verdict.headline).toMatch(
      /on drawn samples, .*: 43 of 44 decisions \(above 0\.5\) kept, 2 new\./,
    );
  });

  test('a fail gives the reasons of the comparison', () => {
    expect(judge(failedSample()).verdict).toEqual({
      outcome: 'fail',
      headline: '1 of 1 output of the typed model is outside tolerance on 3 samples.',
      reasons: ['logits: 12 elements are infinite.', 'No repair found.'],
    });
  });

  test('outputs that are missing are reported before numbers', () => {
    const verification = failedSample().verification!;
    const verdicts = { ...verification.verdicts, contract: 'fail' as const };
    expect(judge({ ...failedSample(), verification: { ...verification, verdicts } }).verdict.headline).toBe(
      'The typed model does not have the outputs of the original.',
    );
  });

  test('an error outweighs a comparison that was made before it', () => {
    const run = { ...failedSample(), error: stoppedSample().error };
    expect(judge(run).verdict).toMatchObject({ headline: 'The run stopped in its phase build.' });
  });
});
