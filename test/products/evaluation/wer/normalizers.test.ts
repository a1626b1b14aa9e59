import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { normalizers } from '../../../../src/products/evaluation/wer/normalizers.js';
import { wordsOf } from '../../../../src/products/evaluation/wer/number-words.js';

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
    ["he um's gone", 'he has gone'],
    ["she 's here, isn't 't", 'she is here is not not'],
    ["it's been; he'd  been; he's gotta", 'it has been he would been he has got to'],
    ['$ 5 cars $', '5 cars $'],
    ['costs 5 % of 7, 100 % sure %', 'costs 5 of 7 100 sure'],
    ['1 s one 1 and colour', 'ones one one and color'],
    ['two and a half men, half and a half', '2.5 men half and a half'],
    ['two hundred and one and three', '201 and 3'],
    ['minus and plus five', '-and +5'],
  ])('makes "%s" "%s"', (text, expected) => {
    expect(words('whisper-en', text)?.join(' ')).toBe(expected);
  });
});

it('whisper-en makes the same of a text whatever white space is between its words', () => {
  for (const [text] of recorded.normalized) {
    const spaced = text.trim().replace(/'([ds]) /g, '$1 ');
    expect(words('whisper-en', spaced.replaceAll(' ', '\t'))).toEqual(words('whisper-en', spaced));
  }
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

it.each([
  ['  a\tb  c ', ['a\tb', 'c'], 'a\tb  c'],
  ['a \tb\u00a0c', ['a', 'b\u00a0c'], 'a \tb\u00a0c'],
  ['\u2003a\x1f', ['a'], 'a'],
  [' \t ', [], ''],
])('none has the words and characters of jiwer: %j', (text, split, characters) => {
  const none = normalizers.find(({ id }) => id === 'none')!;
  expect([none.words(text), none.characters?.(text)]).toEqual([split, characters]);
});

it.each(['<', '[', '(', '()('])('whisper-en takes time in proportion to %s that nothing closes', (open) => {
  expect(words('whisper-en', `${open.repeat(400_000)} end`)?.at(-1)).toBe('end');
});

it('whisper-en drops what stands between brackets as its expressions do', () => {
  expect(words('whisper-en', '<a> b [c] () d (e(f) g <h] i')?.join(' ')).toBe('b d g i');
});
