import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { normalizers } from '../../../../src/products/evaluation/speech/normalizers.js';
import { wordsOf } from '../../../../src/products/evaluation/speech/number-words.js';

const recorded = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../fixtures/evaluation/speech.json'), 'utf8'),
) as { readonly normalized: readonly (readonly [string, string])[] };
const words = (id: string, text: string) => normalizers.find((each) => each.id === id)?.words(text);

describe('whisper-en', () => {
  it('makes of 700 generated texts what the Python package makes of them', () => {
    expect(recorded.normalized.length).toBe(700);
    for (const [text, expected] of recorded.normalized)
      expect([text, words('whisper-en', text)]).toEqual([text, wordsOf(expected)]);
  });

  it.each([
    ['one two three', '123'],
    ["5 o'clock", '50 clock'],
    ['one and a half', 'one.5'],
    ["QUILTER'S", 'quilter is'],
    ['two point five million dollars', '$2500000'],
    ['a hundred million billion', 'a 100000000'],
    ['twenty-first of May (softly)', '21st of may'],
    ['£2 and ¢7', '£2.07'],
    ['١٢٣', '123'],
    ['the colour of Mr. Smith', 'the color of mister smith'],
  ])('makes "%s" "%s"', (text, expected) => {
    expect(words('whisper-en', text)?.join(' ')).toBe(expected);
  });
});

it('seed is upper case without punctuation, hyphenated words merged', () => {
  expect(words('seed', "Quilter's well-known, (so) he said:\tyes.")).toEqual([
    'QUILTERS',
    'WELLKNOWN',
    'SO',
    'HE',
    'SAID',
    'YES',
  ]);
});

it('none splits at spaces alone, as jiwer does', () => {
  expect(words('none', '  a\tb  c ')).toEqual(['a\tb', 'c']);
});
