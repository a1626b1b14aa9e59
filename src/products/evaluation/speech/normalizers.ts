import { LETTER, SPACE, standardizeNumbers, wordsOf } from './number-words.js';
import { spellings } from './spellings.js';

/** How transcripts are made comparable before they are scored. */
export interface Normalizer {
  readonly id: string;
  readonly summary: string;
  /** Words of one transcript, normalised. */
  words(text: string): readonly string[];
}

/** A regular expression over whole words, with Python's idea of a letter. */
const word = (pattern: string) => new RegExp(`(?<!${LETTER})(?:${pattern})(?!${LETTER})`, 'gu');
/** The end of a word: what stands before it belongs to it. */
const ending = (pattern: string) => new RegExp(`${pattern}(?!${LETTER})`, 'gu');

/** Contractions and titles in the order in which they are replaced: an earlier one decides. */
const REPLACEMENTS: readonly (readonly [RegExp, string])[] = [
  ...Object.entries({
    "won't": 'will not',
    "can't": 'can not',
    "let's": 'let us',
    "ain't": 'aint',
    "y'all": 'you all',
    wanna: 'want to',
    kinda: 'kind of',
    sorta: 'sort of',
    dunno: 'do not know',
    gotta: 'got to',
    gonna: 'going to',
    "i'ma": 'i am going to',
    imma: 'i am going to',
    woulda: 'would have',
    coulda: 'could have',
    shoulda: 'should have',
    cause: 'because',
    "ma'am": 'madam',
    mr: 'mister ',
    mrs: 'missus ',
    st: 'saint ',
    dr: 'doctor ',
    prof: 'professor ',
    capt: 'captain ',
    gov: 'governor ',
    ald: 'alderman ',
    gen: 'general ',
    sen: 'senator ',
    rep: 'representative ',
    pres: 'president ',
    rev: 'reverend ',
    hon: 'honorable ',
    asst: 'assistant ',
    assoc: 'associate ',
    lt: 'lieutenant ',
    col: 'colonel ',
    jr: 'junior ',
    sr: 'senior ',
    esq: 'esquire ',
  }).map(([from, to]) => [word(from), to] as const),
  ...Object.entries({
    "'d been": ' had been',
    "'s been": ' has been',
    "'d gone": ' had gone',
    "'s gone": ' has gone',
    "'d done": ' had done',
    "'s got": ' has got',
    "n't": ' not',
    "'re": ' are',
    "'s": ' is',
    "'d": ' would',
    "'ll": ' will',
    "'t": ' not',
    "'ve": ' have',
    "'m": ' am',
  }).map(([from, to]) => [ending(from), to] as const),
];

/** What every replacement needs: most texts have none of it. */
const REPLACED = new RegExp(REPLACEMENTS.map(([from]) => from.source).join('|'), 'u');

const FILLERS = word('hmm|mm|mhm|mmm|uh|um');
const BEFORE_APOSTROPHE = new RegExp(`${SPACE}+'`, 'gu');

/** Letters that NFKD leaves whole. */
const LETTERS: Readonly<Record<string, string>> = {
  œ: 'oe',
  Œ: 'OE',
  ø: 'o',
  Ø: 'O',
  æ: 'ae',
  Æ: 'AE',
  ß: 'ss',
  ẞ: 'SS',
  đ: 'd',
  Đ: 'D',
  ð: 'd',
  Ð: 'D',
  þ: 'th',
  Þ: 'th',
  ł: 'l',
  Ł: 'L',
};

/** Symbols as spaces but those of numbers, accents dropped. */
const withoutSymbols = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/[œŒøØæÆßẞđĐðÐþÞłŁ]/g, (letter) => LETTERS[letter]!)
    .replace(/\p{Mn}/gu, '')
    .replace(/(?![.%$¢€£])[\p{M}\p{S}\p{P}]/gu, ' ');

/**
 * Whisper's English normaliser (`EnglishTextNormalizer` of openai/whisper, MIT licence, (c) 2022 OpenAI), word by word equal to it: the test compares
 * with recorded results of the Python package.
 */
function whisperEnglish(text: string): readonly string[] {
  let out = text
    .toLowerCase()
    .replace(/[<[][^>\]]*[>\]]/g, '')
    .replace(/\([^)]+?\)/g, '')
    .replace(FILLERS, '')
    .replace(BEFORE_APOSTROPHE, "'");
  if (REPLACED.test(out)) for (const [from, to] of REPLACEMENTS) out = out.replace(from, to);
  out = withoutSymbols(out.replace(/(\p{Nd}),(\p{Nd})/gu, '$1$2').replace(/\.([^0-9]|$)/gu, ' $1'));
  const american = wordsOf(standardizeNumbers(out)).map((each) => spellings.get(each) ?? each);
  return wordsOf(
    american
      .join(' ')
      .replace(/[.$¢€£]([^0-9])/gu, ' $1')
      .replace(/([^0-9])%/gu, '$1 '),
  );
}

/** Every normaliser, by the value of `--normalizer`. */
export const normalizers: readonly Normalizer[] = [
  {
    id: 'none',
    summary: 'words between spaces, as they are',
    words: (text) => text.trim().split(/ +/).filter(Boolean),
  },
  {
    id: 'seed',
    summary: 'upper case without . , ! ? ; : \' " ( ) - [ ] { }, as trt-asr-engine scores',
    words: (text) => wordsOf(text.toUpperCase().replace(/[.,!?;:'"()\-[\]{}]/g, '')),
  },
  { id: 'whisper-en', summary: "Whisper's English normaliser", words: whisperEnglish },
];
