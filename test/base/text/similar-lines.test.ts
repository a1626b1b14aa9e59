import { expect, test } from 'vitest';
import { SimilarLines } from '../../../src/base/text/similar-lines.js';

const grouped = (lines: readonly string[]) => {
  const similar = new SimilarLines();
  for (const line of lines) similar.add(line);
  return similar.groups.map(({ line, count }) => [line, count]);
};

test.each([
  ['equal lines', ['Slow.', 'Slow.'], [['Slow.', 2]]],
  [
    'lines of several layers',
    ['Layer /a/MatMul is slow.', 'Layer /b/MatMul is slow.', 'Layer (Unnamed Layer* 3) [Shuffle] is slow.'],
    [['Layer /a/MatMul is slow.', 3]],
  ],
  [
    'a name twice in a line',
    ['x of x', 'y of y', 'x of z'],
    [
      ['x of x', 2],
      ['x of z', 1],
    ],
  ],
  [
    'amounts',
    ['54 weights are subnormal', '17 weights are subnormal'],
    [
      ['54 weights are subnormal', 1],
      ['17 weights are subnormal', 1],
    ],
  ],
  [
    'another word than the name',
    ['Layer a is slow', 'Layer b is slow', 'Layer a was slow'],
    [
      ['Layer a is slow', 2],
      ['Layer a was slow', 1],
    ],
  ],
  [
    'another number of words',
    ['Layer a', 'Layer a b'],
    [
      ['Layer a', 1],
      ['Layer a b', 1],
    ],
  ],
])('%s', (_, lines, groups) => {
  expect(grouped(lines)).toEqual(groups);
});

test('states whether a line is the first of its group', () => {
  const similar = new SimilarLines();
  expect(['Input a is large', 'Input b is large', 'Output a is'].map((line) => similar.add(line))).toEqual([
    true,
    false,
    true,
  ]);
});
