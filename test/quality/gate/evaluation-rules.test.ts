import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { compareVariants } from '../../../src/products/evaluation/compare/compare-variants.js';
import { runGate } from '../../../src/quality/gate/gate.js';
import { recorded, sampleVariants } from '../../products/evaluation/compare/sample.js';
import { folderOf, gate, policyOf, TODAY } from './gate-case.js';

const onGpu = { peakHostBytes: 2e8, gpuBytes: 1e9 };
const detector = (mAP: number, median: number, key = 'k', memory: object = onGpu) => ({
  schema: 'trtforge.eval-detector/1',
  metrics: { mAP_50_95: mAP },
  comparabilityKey: key,
  run: { latency: { median_ms: median }, memory, candidate: { backEnd: 'tensorrt' } },
});
const recogniser = (wer: number) => ({
  schema: 'trtforge.eval-recogniser/1',
  wer,
  comparabilityKey: 'k',
});

type Judged = Pick<ReturnType<typeof runGate>, 'outcome' | 'findings'>;
const missesOf = ({ outcome, findings }: Judged) => [
  outcome,
  ...findings.flatMap((each) => (each.outcome === 'pass' ? [] : [`${each.check} ${each.outcome}`])).sort(),
];

/** A result against the baseline that another of the same name makes. */
function against(rules: string, before: object, now: object) {
  const baseline = join(mkdtempSync(join(tmpdir(), 'trtforge-rules-')), 'baseline.json');
  const folder = folderOf({
    'policy.yaml': policyOf({ extends: rules }),
    'before.json': before,
    'now.json': now,
  });
  const judge = (file: string, updateBaseline: boolean) =>
    runGate({
      policy: join(folder, 'policy.yaml'),
      results: [`r=${join(folder, file)}`],
      baseline,
      updateBaseline,
      day: TODAY,
    });
  expect(judge('before.json', true).baselineUpdated).toBe(true);
  return missesOf(judge('now.json', false));
}

describe('detector-acceptance', () => {
  it.each([
    ['a point of mAP and 75 % of the time pass', detector(0.49, 3), ['pass']],
    ['more than a point fails', detector(0.4899, 3), ['fail', 'map-drop fail']],
    ['76 % of the time fails', detector(0.5, 3.04), ['fail', 'latency fail']],
    [
      'another key is inconclusive',
      detector(0.5, 3, 'other'),
      ['inconclusive', 'map-drop inconclusive', 'map-drop-relative inconclusive'],
    ],
  ])('%s', (_, now, expected) => {
    expect(against('detector-acceptance', detector(0.5, 4), now)).toEqual(expected);
  });

  it('3 % of a low mAP fail, although they are no point', () => {
    expect(against('detector-acceptance', detector(0.1, 4), detector(0.096, 3))).toEqual([
      'fail',
      'map-drop-relative fail',
    ]);
  });
});

describe('detector-acceptance of memory', () => {
  it.each([
    ['10 % more of both pass', { peakHostBytes: 2.2e8, gpuBytes: 1.1e9 }, ['pass']],
    ['11 % more of the GPU fail', { ...onGpu, gpuBytes: 1.11e9 }, ['fail', 'gpu-memory fail']],
    ['11 % more of the host fail', { ...onGpu, peakHostBytes: 2.22e8 }, ['fail', 'host-memory fail']],
    [
      'what was not measured is skipped',
      { peakHostBytes: null, gpuBytes: null },
      ['pass', 'gpu-memory skipped', 'host-memory skipped'],
    ],
  ])('%s', (_, memory, expected) => {
    expect(against('detector-acceptance', detector(0.5, 4), detector(0.5, 3, 'k', memory))).toEqual(expected);
  });
});

describe('recogniser-acceptance', () => {
  it.each([
    [0.055, ['pass']],
    [0.056, ['fail', 'wer-rise fail']],
    [0.01, ['pass']],
  ])('a word error rate of %d after 0.05', (wer, expected) => {
    expect(against('recogniser-acceptance', recogniser(0.05), recogniser(wer))).toEqual(expected);
  });
});

describe('comparison-acceptance', () => {
  const facts = { root: 'r', ran: new Set<string>(), damaged: [], warnings: [], repeat: null };
  const judged = (...variants: Parameters<typeof compareVariants>[0]) =>
    missesOf(
      gate({
        'policy.yaml': policyOf({ extends: 'comparison-acceptance' }),
        'comparison.json': compareVariants(variants, facts),
      }),
    );
  const on = { backEnd: 'trt', machine: 'H200' };
  const half = recorded({ ...on, label: 'fp16', role: 'converted', mAP: 0.5, medianMs: 4 });
  const whole = recorded({ ...on, label: 'fp32', role: 'model', mAP: 0.5, medianMs: 8 });
  const int8 = (mAP: number, medianMs: number) =>
    recorded({ ...on, label: 'int8', role: 'candidate', mAP, medianMs });

  it('passes a candidate within a point and at 75 % of FP16', () => {
    expect(judged(whole, half, int8(0.4901, 3))).toEqual(['pass', 'wer-rise skipped']);
  });

  it('fails one that lost more, and one that is slower', () => {
    expect(judged(whole, half, int8(0.48, 3.1))).toEqual([
      'fail',
      'latency fail',
      'map-drop fail',
      'map-drop-relative fail',
      'wer-rise skipped',
    ]);
  });

  it('fails a comparison in which a variant did not run', () => {
    expect(judged(...sampleVariants)).toContain('own-outcome fail');
  });

  it('without anything to compare is inconclusive', () => {
    expect(judged(whole)[0]).toBe('inconclusive');
  });
});
