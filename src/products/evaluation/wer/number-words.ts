/**
 * Spelled-out numbers as digits, by the rules of Whisper's English normaliser (MIT licence, (c) 2022 OpenAI): "twenty one" is 21, "one oh one" 101,
 * "two point five million dollars" $2500000. Odd results are Whisper's too: scores compare only where both are equal.
 */

/** White space of Python's `str.split` and `\s`; JavaScript's `\s` differs in six characters. */
export const SPACE = String.raw`[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]`;
/** The characters of Python's `\w`. */
export const LETTER = String.raw`[\p{L}\p{N}_]`;

const ONES = (
  'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen ' +
  'seventeen eighteen nineteen'
).split(' ');
const TENS = 'twenty thirty forty fifty sixty seventy eighty ninety'.split(' ');
const SCALES = (
  'thousand million billion trillion quadrillion quintillion sextillion septillion octillion nonillion ' +
  'decillion'
).split(' ');
const ORDINALS: Readonly<Record<string, string>> = {
  one: 'first',
  two: 'second',
  three: 'third',
  five: 'fifth',
  twelve: 'twelfth',
};

type Numeral =
  | { readonly kind: 'zero' }
  | { readonly kind: 'one' | 'ten' | 'scale'; readonly value: bigint; readonly suffix: string };
type Entry =
  | Numeral
  | { readonly kind: 'sign' | 'currency'; readonly symbol: string }
  | { readonly kind: 'percent' | 'per' | 'and' | 'repeat' | 'point' };

/** Every word that is part of a number. A suffix (`th`, `s`) ends the number. */
const lexicon = new Map<string, Entry>();
for (const word of ['o', 'oh', 'zero']) lexicon.set(word, { kind: 'zero' });
const add = (kind: 'one' | 'ten' | 'scale', value: bigint, forms: Readonly<Record<string, string>>) => {
  for (const [word, suffix] of Object.entries(forms)) lexicon.set(word, { kind, value, suffix });
};
add('one', 0n, { zeroth: 'th' });
ONES.forEach((word, at) => {
  const value = BigInt(at + 1);
  const ordinal = ORDINALS[word] ?? `${word}${word.endsWith('t') ? 'h' : 'th'}`;
  add('one', value, {
    [word]: '',
    [word === 'six' ? 'sixes' : `${word}s`]: 's',
    [ordinal]: ordinal.slice(-2),
  });
});
TENS.forEach((word, at) => {
  add('ten', BigInt(10 * (at + 2)), {
    [word]: '',
    [word.replace('y', 'ies')]: 's',
    [word.replace('y', 'ieth')]: 'th',
  });
});
['hundred', ...SCALES].forEach((word, at) => {
  add('scale', at === 0 ? 100n : 1000n ** BigInt(at), { [word]: '', [`${word}s`]: 's', [`${word}th`]: 'th' });
});
for (const [symbol, words] of Object.entries({ '-': 'minus negative', '+': 'plus positive' }))
  for (const word of words.split(' ')) lexicon.set(word, { kind: 'sign', symbol });
for (const [symbol, word] of Object.entries({ '£': 'pound', '€': 'euro', $: 'dollar', '¢': 'cent' }))
  for (const form of [word, `${word}s`]) lexicon.set(form, { kind: 'currency', symbol });
lexicon.set('percent', { kind: 'percent' }).set('per', { kind: 'per' });
lexicon.set('and', { kind: 'and' }).set('point', { kind: 'point' });
lexicon.set('double', { kind: 'repeat' }).set('triple', { kind: 'repeat' });

const PREFIXES = new Set('-+£€$¢');
const DIGITS = /^\p{Nd}+(?:\.\p{Nd}+)?$/u;

/** The entry of a word that is part of a cardinal number: no suffix. */
const plain = (word: string | undefined, kind: Entry['kind']): boolean => {
  const entry = word === undefined ? undefined : lexicon.get(word);
  return entry?.kind === kind && !('suffix' in entry && entry.suffix !== '');
};

/** Whether it is one of those words. */
export const isNumberWord = (word: string): boolean => lexicon.has(word);

/** Decimal digits of any script as ASCII ones. */
const asciiDigits = (text: string): string =>
  text.replace(/\p{Nd}/gu, (digit) => {
    const at = digit.codePointAt(0)!;
    let zero = at;
    // Digits of a script follow one another, so the digit's value is its distance from the first of at most ten.
    while (at - zero < 9 && /\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--;
    return String((at - zero) % 10);
  });

/** A decimal as digits over a power of ten; undefined for what Python's `Fraction` rejects. */
function fraction(text: string): { readonly digits: bigint; readonly scale: bigint } | undefined {
  const parts = /^(\p{Nd}*)(?:\.(\p{Nd}*))?$/u.exec(text);
  if (parts === null || !/^\.?\p{Nd}/u.test(text)) return undefined;
  const [, whole = '', decimals = ''] = parts;
  return { digits: BigInt(asciiDigits(whole + decimals)), scale: 10n ** BigInt([...decimals].length) };
}

/** A number while its words are read: an integer as long as it can grow, else its digits. */
class NumberReader {
  readonly out: string[] = [];
  value: bigint | string | undefined;
  prefix = '';

  /** The digits so far; an integer of 0 counts as none. */
  get digits(): string {
    return this.value === undefined || this.value === 0n ? '' : String(this.value);
  }

  put(text: string): void {
    this.out.push(this.prefix + text);
    this.prefix = '';
    this.value = undefined;
  }

  /** Ends the number that is being read, if there is one. */
  flush(): void {
    if (this.value !== undefined) this.put(String(this.value));
  }

  /** Ends the number, and puts a word that is no part of one. */
  putAlone(word: string): void {
    this.flush();
    this.put(word);
  }

  /** The number with one to nineteen behind it. */
  withOne(one: bigint, previous: string | undefined): bigint | string {
    const { value } = this;
    if (value === undefined) return one;
    if (typeof value === 'string' || plain(previous, 'one'))
      return plain(previous, 'ten') && one < 10n ? `${String(value).slice(0, -1)}${one}` : `${value}${one}`;
    return value % (one < 10n ? 10n : 100n) === 0n ? value + one : `${value}${one}`;
  }

  withTen(ten: bigint): bigint | string {
    const { value } = this;
    if (value === undefined) return ten;
    return typeof value !== 'string' && value % 100n === 0n ? value + ten : `${value}${ten}`;
  }

  /** The number times hundred, thousand, …; undefined where the product is not whole. */
  scaled(scale: bigint, zeroIsText: boolean): bigint | undefined {
    const { value } = this;
    if (value === undefined) return scale;
    if (typeof value === 'string' || (zeroIsText && value === 0n)) {
      const parsed = fraction(String(value));
      if (parsed === undefined || (parsed.digits * scale) % parsed.scale !== 0n) return undefined;
      return (parsed.digits * scale) / parsed.scale;
    }
    const thousands = (value / 1000n) * 1000n;
    return thousands + (value - thousands) * scale;
  }
}

const isDigits = (word: string | undefined): boolean => word !== undefined && DIGITS.test(word);

/** Whether a number can go on with a word: digits, or a word of the lexicon. */
const goesOnWith = (word: string | undefined): boolean =>
  isDigits(word) || (word !== undefined && lexicon.has(word));

function readNumbers(words: readonly string[]): readonly string[] {
  const reader = new NumberReader();
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    const hasPrefix = PREFIXES.has(word[0]!);
    const unsigned = hasPrefix ? word.slice(1) : word;
    const entry = lexicon.get(word);
    if (isDigits(unsigned)) {
      if (typeof reader.value === 'string' && reader.value.endsWith('.')) {
        reader.value += word;
        continue;
      }
      reader.flush();
      if (hasPrefix) reader.prefix = word[0]!;
      const { digits, scale } = fraction(unsigned)!;
      reader.value = digits % scale === 0n ? digits / scale : unsigned;
    } else if (entry === undefined) reader.putAlone(word);
    else if (readEntry(reader, entry, words, at)) at++;
  }
  reader.flush();
  return reader.out;
}

/** Takes one word of a number; true where the next word is part of it. */
function readEntry(reader: NumberReader, entry: Entry, words: readonly string[], at: number): boolean {
  const [previous, word, next] = [words[at - 1], words[at]!, words[at + 1]];
  switch (entry.kind) {
    case 'zero':
    case 'one':
    case 'ten':
    case 'scale':
      readNumeral(reader, entry, previous);
      return false;
    case 'sign':
      reader.flush();
      if (goesOnWith(next)) reader.prefix = entry.symbol;
      else reader.put(word);
      return false;
    case 'currency':
      if (reader.value === undefined) reader.put(word);
      else {
        reader.prefix = entry.symbol;
        reader.flush();
      }
      return false;
    case 'percent':
      reader.put(reader.value === undefined ? word : `${reader.value}%`);
      return false;
    case 'per':
      if (reader.value === undefined || next !== 'cent') {
        reader.putAlone(word);
        return false;
      }
      reader.put(`${reader.value}%`);
      return true;
    default:
      return readConnective(reader, entry.kind, words, at);
  }
}

/** Takes a word that has a value. */
function readNumeral(reader: NumberReader, entry: Numeral, previous: string | undefined): void {
  if (entry.kind === 'zero') {
    reader.value = `${reader.digits}0`;
    return;
  }
  let value: bigint | string;
  if (entry.kind === 'one') value = reader.withOne(entry.value, previous);
  else if (entry.kind === 'ten') value = reader.withTen(entry.value);
  else {
    const scaled = reader.scaled(entry.value, entry.suffix === '');
    if (scaled === undefined) reader.flush();
    value = scaled ?? entry.value;
  }
  if (entry.suffix === '') reader.value = value;
  else reader.put(`${value}${entry.suffix}`);
}

/** Takes a word that counts only before a number: "and", "point", "double", "triple"; true where the next word is part of it. */
function readConnective(
  reader: NumberReader,
  kind: 'and' | 'point' | 'repeat',
  words: readonly string[],
  at: number,
): boolean {
  const [previous, word, next] = [words[at - 1], words[at]!, words[at + 1]];
  if (!goesOnWith(next)) reader.putAlone(word);
  else if (kind === 'and') {
    if (!plain(previous, 'scale')) reader.putAlone(word);
  } else if (kind === 'point') {
    if (isDigits(next) || ['zero', 'one', 'ten'].some((each) => plain(next, each as Entry['kind'])))
      reader.value = `${reader.digits}.`;
  } else if (plain(next, 'one') || plain(next, 'zero')) {
    const digit = lexicon.get(next!)!;
    reader.value =
      reader.digits + String('value' in digit ? digit.value : 0).repeat(word === 'double' ? 2 : 3);
    return true;
  } else reader.putAlone(word);
  return false;
}

const HALF = new RegExp(`(?<!${LETTER})and${SPACE}+a${SPACE}+half(?!${LETTER})`, 'u');
const SPACES = new RegExp(`${SPACE}+`, 'u');
const ORDINAL_GAP = new RegExp(`([0-9])${SPACE}+(st|nd|rd|th|s)(?!${LETTER})`, 'gu');
const CENTS = new RegExp(`([€£$])([0-9]+) (?:and )?¢([0-9]{1,2})(?!${LETTER})`, 'gu');
const ONLY_CENTS = new RegExp(`[€£$]0.([0-9]{1,2})(?!${LETTER})`, 'gu');
const SINGLE_ONE = new RegExp(`(?<!${LETTER})1(s?)(?!${LETTER})`, 'gu');

/** Words of a text, by Python's white space. */
export const wordsOf = (text: string): readonly string[] => text.split(SPACES).filter((word) => word !== '');

/** Digits and the letters beside them as words of their own. */
export const spacedDigits = (text: string): string =>
  text.replace(/([a-z])([0-9])/g, '$1 $2').replace(/([0-9])([a-z])/g, '$1 $2');

/** A lower-case text with its numbers as digits, currency signs in front, and "one" for a lone 1. */
export function standardizeNumbers(text: string): string {
  const segments = text.split(HALF);
  const joined: string[] = [];
  segments.forEach((segment, at) => {
    const words = wordsOf(segment);
    if (words.length === 0) return;
    joined.push(segment);
    if (at === segments.length - 1) return;
    const last = words.at(-1);
    const counts = ['zero', 'one', 'ten', 'scale'].some((kind) => plain(last, kind as Entry['kind']));
    joined.push(counts ? 'point five' : 'and a half');
  });
  const spaced = spacedDigits(joined.join(' ')).replace(ORDINAL_GAP, '$1$2');
  return readNumbers(wordsOf(spaced))
    .join(' ')
    .replace(
      CENTS,
      (_, currency, whole, cents) => `${currency}${whole}.${String(Number(cents)).padStart(2, '0')}`,
    )
    .replace(ONLY_CENTS, (_, cents) => `¢${Number(cents)}`)
    .replace(SINGLE_ONE, 'one$1');
}
