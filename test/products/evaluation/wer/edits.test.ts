import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { countCharacters, countEdits } from '../../../../src/products/evaluation/wer/edits.js';

const recorded = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../fixtures/evaluation/speech.json'), 'utf8'),
) as { readonly pairs: readonly (readonly [string, string, number, number, number])[] };

it('splits the edits of 500 pairs into substitutions, deletions and insertions as jiwer does', () => {
  expect(recorded.pairs.length).toBe(500);
  for (const [reference, hypothesis, substitutions, deletions, insertions] of recorded.pairs)
    expect([reference, countEdits(reference.split(' '), hypothesis.split(' '))]).toEqual([
      reference,
      { substitutions, deletions, insertions },
    ]);
});

it('counts lists without words', () => {
  expect(countEdits([], [])).toEqual({ substitutions: 0, deletions: 0, insertions: 0 });
  expect(countEdits(['a'], [])).toEqual({ substitutions: 0, deletions: 1, insertions: 0 });
  expect(countEdits([], ['a', 'b'])).toEqual({ substitutions: 0, deletions: 0, insertions: 2 });
});

it('explains the difference in length, and is zero for equal lists alone', () => {
  const words = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 30 });
  fc.assert(
    fc.property(words, words, (reference, hypothesis) => {
      const edits = countEdits(reference, hypothesis);
      if (edits === null) throw new Error('short lists are aligned');
      const { substitutions, deletions, insertions } = edits;
      expect(insertions - deletions).toBe(hypothesis.length - reference.length);
      expect(substitutions + deletions).toBeLessThanOrEqual(reference.length);
      expect(substitutions + deletions + insertions === 0).toBe(reference.join() === hypothesis.join());
    }),
  );
});

it('aligns 6,000 words and rejects what would need gigabytes', () => {
  const long = Array.from({ length: 6000 }, (_, at) => `w${at % 97}`);
  expect(countEdits(long, ['x', ...long.slice(0, -1), 'y'])).toEqual({
    substitutions: 1,
    deletions: 0,
    insertions: 1,
  });
  const all = (word: string) => new Array<string>(11_000).fill(word);
  expect(countEdits(all('a'), all('b'))).toBeNull();
});

it('counts characters as Python does, those beyond 16 bits as one', () => {
  expect(countCharacters('a😀b', 'a🙂b')).toEqual({ edits: 1, of: 3 });
  expect(countCharacters('😀🙂', '🙂😀😀')).toEqual({ edits: 2, of: 2 });
  expect(countCharacters('naïve', 'naive')).toEqual({ edits: 1, of: 5 });
});
