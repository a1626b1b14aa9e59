import { describe, expect, test } from 'vitest';
import { type Judged, judge } from '../../src/forge/verdict.js';
import { failedSample, sampleResult, stoppedSample } from '../report/sample.js';

const passed: Judged = sampleResult();

describe('the verdict of a run', () => {
  test.each<[string, Judged, 'pass' | 'fail' | 'inconclusive', number]>([
    ['compared and built', passed, 'pass', 0],
    ['compared, no engine asked for', { ...passed, build: null }, 'pass', 0],
    ['built, not compared', { ...passed, verification: null }, 'pass', 0],
    ['neither built nor compared', { ...passed, verification: null, build: null }, 'inconclusive', 4],
    ['an output outside tolerance', failedSample(), 'fail', 1],
    [
      'a comparison that cannot tell',
      { ...passed, verification: { ...passed.verification!, outcome: 'inconclusive' } },
      'inconclusive',
      4,
    ],
    ['stopped: this machine cannot', stoppedSample(), 'inconclusive', 3],
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

  test('a pass says what it does not cover', () => {
    expect(judge(passed).verdict.reasons).toContain(
      'Not done: verify engine, bench, because no NVIDIA driver on this machine.',
    );
  });

  test('a fail names every output, statistic, measure and limit', () => {
    expect(judge(failedSample()).verdict.reasons).toEqual(
      expect.arrayContaining([
        'logits: max error Infinity is above its limit 0.01.',
        'logits: mean error 0.0231 is above its limit 0.002.',
      ]),
    );
  });

  test('an error outweighs a comparison that was made before it', () => {
    const run = { ...failedSample(), error: stoppedSample().error };
    expect(judge(run).verdict).toMatchObject({ headline: 'The run stopped in its phase build.' });
  });
});
