import { expect, test } from 'vitest';
import {
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

test('the decisions of an output are those of the rule that lost or gained most', () => {
  const decisions = [decided({ rule: 'above 0.25', kept: 44, lost: 0, new: 0 }), decided({})];
  expect(decisionsSentence([{ ...first, decisions }])).toBe('Decisions: 43 of 44 above 0.5 kept, 2 new.');
  const both = [
    { ...first, decisions },
    { ...second, decisions: [decided({ rule: 'argmax', kept: 44, lost: 0, ties: 3 })] },
  ];
  const sentence = decisionsSentence(both)!;
  expect(sentence).toContain(`${first.name}: 43 of 44 above 0.5 kept, 2 new`);
  expect(sentence).toContain(`${second.name}: 44 of 44 argmax kept, 3 near ties`);
});

test('decisions that nothing was asked of are not named, and too few are named as such', () => {
  expect(
    decisionsSentence([{ ...first, decisions: [decided({ reference: 0, kept: 0, new: 0 })] }]),
  ).toBeNull();
  expect(decisionsSentence([{ ...first, decisions: [decided({ pass: null })] }])).toContain(
    'too few to decide',
  );
});

test('decisions that failed decide, where no limit did', () => {
  const failed: VerifiedOutput = {
    ...first,
    outcome: 'fail',
    decisions: [decided({ kept: 30, lost: 14, new: 26, pass: false })],
  };
  expect(decidedBy({ outputs: [failed] })).toMatchObject({ isLimit: false });
  expect(verifyHeadline({ outputs: [failed], samples: 3 })).toContain('30 of 44 above 0.5 kept, 26 new');
});

test('a limit decides of an output that passes or is beyond it, not of one in doubt', () => {
  expect(decidedBy({ outputs: [first] })).toMatchObject({ isLimit: true });
  expect(decidedBy({ outputs: [{ ...first, outcome: 'inconclusive' }] })).toMatchObject({ isLimit: false });
});
