import { expect, test } from 'vitest';
import {
  checkedLines,
  decidedBy,
  decisionsSentence,
  onSamples,
  verifyHeadline,
} from '../../../src/quality/verify/headline.js';
import type { VerifiedOutput, VerifyResult } from '../../../src/quality/verify/result.js';
import { sampleResult } from '../../report/sample.js';

type Sample = NonNullable<VerifyResult['samplesFrom']>['samples'][number];

const data = (origin: string, items?: number): Sample => ({ origin, kind: 'data', items });
const on = (...samples: readonly Sample[]) =>
  onSamples({ samples: samples.length, samplesFrom: { samples: [...samples], available: null } });

test.each<[string, readonly Sample[], string]>([
  [
    'drawn ones and edge cases',
    [
      { origin: 'zeros', kind: 'edge' },
      { origin: 'drawn with seed 0', kind: 'drawn' },
    ],
    'on drawn samples',
  ],
  ['pictures of a folder', [data('pics/a.jpg'), data('pics/b.png')], 'on 2 pictures of pics'],
  ['one picture', [data('pics/a.jpg')], 'on 1 picture of pics/a.jpg'],
  ['recordings', [data('clips/a.wav'), data('clips/b.wav')], 'on 2 recordings of clips'],
  ['rows of a file', [data('sample 1 of x.npz'), data('sample 2 of x.npz')], 'on 2 samples of x.npz'],
  ['chunks of a stream', [data('chunk 3 of s.jsonl')], 'on 1 sample of s.jsonl'],
  ['more folders', [data('a/x.jpg'), data('b/x.jpg'), data('c/x.jpg')], 'on 3 pictures of a, b and 1 more'],
  [
    'batches, the last filled up',
    [data('pics/a.jpg to pics/d.jpg', 4), data('pics/e.jpg to pics/c.jpg', 1)],
    'on 5 pictures of pics',
  ],
  [
    'a picture used again beside drawn inputs',
    [data('pics/a.jpg'), data('pics/a.jpg')],
    'on 1 picture of pics/a.jpg',
  ],
])('a verdict is about %s', (_, samples, text) => {
  expect(on(...samples)).toBe(text);
});

test('samples of the data that were not looked at are counted', () => {
  const samples = Array.from({ length: 32 }, (_, at) => data(`pics/${at}.jpg`));
  const counted = (available: number) => onSamples({ samples: 32, samplesFrom: { samples, available } });
  expect(counted(40)).toBe('on 32 pictures of pics (8 left out)');
  expect(counted(32)).toBe('on 32 pictures of pics');
});

test('a result without the origin of its samples has their number', () => {
  expect(onSamples({ samples: 4 })).toBe('on 4 samples');
});

type Decisions = NonNullable<VerifiedOutput['decisions']>[number];
const decided = (more: Partial<Decisions>): Decisions => ({
  rule: 'above 0.5',
  reference: 44,
  kept: 43,
  lost: 1,
  new: 2,
  ties: 0,
  limit: 0.05,
  pass: true,
  ...more,
});
const [first, second] = sampleResult().verification!.outputs as [VerifiedOutput, VerifiedOutput];

test('the decisions of an output are those of the rule of which most turned', () => {
  const decisions = [decided({ rule: 'above 0.25', kept: 44, lost: 0, new: 0 }), decided({})];
  expect(decisionsSentence([{ ...first, decisions }])).toBe('43 of 44 decisions (above 0.5) kept, 2 new.');
  const both = [
    { ...first, decisions },
    { ...second, decisions: [decided({ rule: 'argmax', kept: 44, lost: 0, ties: 3 })] },
  ];
  const sentence = decisionsSentence(both)!;
  expect(sentence).toContain(`${first.name}: 43 of 44 decisions (above 0.5) kept, 2 new`);
  expect(sentence).toContain(`${second.name}: 44 of 44 decisions (argmax) kept, 3 near ties`);
});

test('too few decisions are named as such, and those that failed are left to the reason', () => {
  expect(decisionsSentence([{ ...first, decisions: [decided({ pass: null })] }])).toContain(
    'too few to decide',
  );
  expect(decisionsSentence([{ ...first, decisions: [decided({ pass: false })] }])).toBeNull();
  expect(decisionsSentence([first])).toBeNull();
});

test('decisions are lines of their own, without their check beside them', () => {
  const check = {
    statistic: 'share of decisions turned (above 0.5)',
    measured: 0.04,
    limit: 0.1,
    pass: true,
  };
  const lines = checkedLines({ ...first, checks: [...first.checks, check], decisions: [decided({})] });
  expect(lines).toHaveLength(first.checks.length + 1);
  expect(lines.at(-1)).toBe('43 of 44 decisions (above 0.5) kept, 2 new');
});

test('a limit decides of an output that passes or is beyond it, not of one in doubt', () => {
  const failed = {
    statistic: 'share of decisions turned (above 0.5)',
    measured: 0.4,
    limit: 0.1,
    pass: false,
  };
  const decisions = [decided({ kept: 30, lost: 14, new: 26, pass: false })];
  const output: VerifiedOutput = { ...first, outcome: 'fail', checks: [...first.checks, failed], decisions };
  expect(decidedBy({ outputs: [output] })).toMatchObject({ isLimit: true, check: failed });
  expect(decidedBy({ outputs: [first] })).toMatchObject({ isLimit: true });
  expect(decidedBy({ outputs: [{ ...first, outcome: 'inconclusive' }] })).toMatchObject({ isLimit: false });
  expect(verifyHeadline({ outputs: [output], samples: 3 })).toMatch(
    /outside tolerance on 3 samples.*30 of 44 decisions \(above 0\.5\) kept, 26 new\.$/,
  );
});
