import type { NormalizerId } from '../../../quality/tasks/options.js';
import { isNumberWord, LETTER, SPACE, spacedDigits, standardizeNumbers, wordsOf } from './number-words.js';
import { spellings } from './spellings.js';

/** The rules that make transcripts comparable before they are scored. */
export interface Normalizer {
  readonly id: NormalizerId;
  /** Words of one transcript, normalised. */
  words(text: string): readonly string[];
  /** The characters whose errors are counted; default: the words with a space between them. */
  characters?(text: string): string;
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

/** The text that replacements need: most texts have none of it. */
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

/** Texts up to this length are remembered, so many at once: with their results some 30 MB. */
const LONGEST_KNOWN = 64;
const MOST_KNOWN = 100_000;

/** The same function, which works out a short text once: words repeat. */
function remembering<T>(of: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const result = of(text);
    if (text.length > LONGEST_KNOWN) return result;
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(text, result);
    return result;
  };
}

const american = (word: string): string => spellings.get(word) ?? word;

/** Words that are not plain, one after the other, with a space at each side that has a plain word. */
const numberWords = remembering((text): readonly string[] => {
  const words = wordsOf(standardizeNumbers(text)).map(american).join(' ');
  const [before, after] = [text.startsWith(' ') ? ' ' : '', text.endsWith(' ') ? ' ' : ''];
  return wordsOf(
    `${before}${words}${after}`.replace(/[.$¢€£]([^0-9])/gu, ' $1').replace(/([^0-9])%/gu, '$1 '),
  );
});

/** A word before numbers are read. */
interface SpokenWord {
  readonly word: string;
  /** No rule of numbers and their symbols changes it or looks past it. */
  readonly isPlain: boolean;
  /** The words that it becomes between plain words. */
  readonly between: readonly string[];
}

const LETTERS_ALONE = /^\p{L}+$/u;
/** Parts of `1 st` and of `and a half`. */
const BESIDE_NUMBERS = new Set(['st', 'nd', 'rd', 'th', 's', 'a', 'half']);

const spokenWords = remembering((text): readonly SpokenWord[] => {
  let out = text.replace(FILLERS, '').replace(BEFORE_APOSTROPHE, "'");
  if (REPLACED.test(out)) for (const [from, to] of REPLACEMENTS) out = out.replace(from, to);
  out = withoutSymbols(out.replace(/(\p{Nd}),(\p{Nd})/gu, '$1$2').replace(/\.([^0-9]|$)/gu, ' $1'));
  return wordsOf(spacedDigits(out)).map((word) => {
    const isPlain = LETTERS_ALONE.test(word) && !isNumberWord(word) && !BESIDE_NUMBERS.has(word);
    return { word, isPlain, between: isPlain ? [american(word)] : numberWords(` ${word} `) };
  });
});

/** Text that may change across a space: parts that become the end of the word before, and contractions of two words. */
const ACROSS_SPACES = new RegExp(`${SPACE}(?:hmm|mm|mhm|mmm|uh|um)?'|'[ds] (?:been|gone|done|got)`, 'u');

/** Without what stands between brackets, of at least this many characters: Whisper's expressions take the square of the length where none closes. */
function withoutAsides(text: string, opening: RegExp, closing: RegExp, least: number): string {
  let out = '';
  for (let at = 0; ; ) {
    opening.lastIndex = at;
    const open = opening.exec(text)?.index;
    if (open === undefined) return out + text.slice(at);
    closing.lastIndex = open + 1;
    const close = closing.exec(text)?.index;
    if (close === undefined) return out + text.slice(at);
    const isLongEnough = close - open > least;
    out += text.slice(at, isLongEnough ? open : open + 1);
    at = isLongEnough ? close + 1 : open + 1;
  }
}

/**
 * Whisper's English normaliser (`EnglishTextNormalizer` of openai/whisper, MIT licence, (c) 2022 OpenAI), word by word equal to it: the test compares
 * with recorded results of the Python package. Its rules look at what is between two spaces, but for those of `ACROSS_SPACES` and of numbers.
 */
function whisperEnglish(text: string): readonly string[] {
  const lower = withoutAsides(withoutAsides(text.toLowerCase(), /[<[]/g, /[>\]]/g, 0), /\(/g, /\)/g, 1);
  const words: string[] = [];
  let run: SpokenWord[] = [];
  const endRun = (isLast: boolean) => {
    const [first] = run;
    if (first === undefined) return;
    const isFirst = words.length === 0;
    const text = () => run.map(({ word }) => word).join(' ');
    const isBetween = run.length === 1 && !isFirst && !isLast;
    const read = isBetween
      ? first.between
      : numberWords(`${isFirst ? '' : ' '}${text()}${isLast ? '' : ' '}`);
    for (const each of read) words.push(each);
    run = [];
  };
  for (const part of ACROSS_SPACES.test(lower) ? [lower] : lower.split(' '))
    for (const word of spokenWords(part))
      if (word.isPlain) {
        endRun(false);
        words.push(word.between[0]!);
      } else run.push(word);
  endRun(true);
  return words;
}

const TWO_SPACES = new RegExp(`${SPACE}${SPACE}+`, 'g');
const ONE_SPACE = new RegExp(SPACE);

/** Python's `str.strip`. */
function stripped(text: string): string {
  let [from, to] = [0, text.length];
  while (from < to && ONE_SPACE.test(text[from]!)) from++;
  while (to > from && ONE_SPACE.test(text[to - 1]!)) to--;
  return text.slice(from, to);
}

/** Every normaliser, by the value of `--normalizer`. */
export const normalizers: readonly Normalizer[] = [
  {
    id: 'none',
    words: (text) => {
      const spaced = stripped(text.replace(TWO_SPACES, ' '));
      return spaced === '' ? [] : spaced.split(' ');
    },
    characters: stripped,
  },
  {
    id: 'seed',
    words: (text) => wordsOf(text.toUpperCase().replace(/[.,!?;:'"()\-[\]{}]/g, '')),
  },
  { id: 'whisper-en', words: whisperEnglish },
];
