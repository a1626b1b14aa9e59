import type { Limit, Scalar } from './policy-schema.js';

/** Numbers that JSON cannot represent are written by name. */
const NAMED_NUMBERS: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
};

const BOUNDS = {
  above: (value: number, bound: number) => value > bound,
  'at-least': (value: number, bound: number) => value >= bound,
  below: (value: number, bound: number) => value < bound,
  'at-most': (value: number, bound: number) => value <= bound,
} as const;
type Bound = keyof typeof BOUNDS;

const bounds = Object.keys(BOUNDS) as readonly Bound[];

const words: Readonly<Record<Bound, string>> = {
  above: 'above',
  'at-least': 'at or above',
  below: 'below',
  'at-most': 'at or below',
};

/** A limit that a value breaks. */
export interface Breach {
  /** "above 0.001". */
  readonly text: string;
  /** Which way is worse; null for a limit that names values. */
  readonly worse: 'higher' | 'lower' | null;
}

/** A field's value as a number; undefined for what is none. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && Object.hasOwn(NAMED_NUMBERS, value) ? NAMED_NUMBERS[value] : undefined;
}

/** Which of a limit's operators the value breaks first; null when it keeps all. Call `misfit` before. */
export function breachOf(value: Scalar, limit: Limit): Breach | null {
  const number = numberOf(value);
  for (const bound of bounds) {
    const at = limit[bound];
    if (at === undefined || number === undefined || !BOUNDS[bound](number, at)) continue;
    return {
      text: `${words[bound]} ${at}`,
      worse: bound === 'above' || bound === 'at-least' ? 'higher' : 'lower',
    };
  }
  const breach = (reason: string): Breach => ({ text: reason, worse: null });
  if (limit.is !== undefined && value === limit.is) return breach(`which must not be ${text(limit.is)}`);
  if (limit['is-not'] !== undefined && value !== limit['is-not'])
    return breach(`which must be ${text(limit['is-not'])}`);
  if (limit['one-of']?.includes(value))
    return breach(`which must be none of ${limit['one-of'].map(text).join(', ')}`);
  if (limit['none-of'] !== undefined && !limit['none-of'].includes(value))
    return breach(`which must be one of ${limit['none-of'].map(text).join(', ')}`);
  return null;
}

/** Why a value cannot be compared with a limit, so that a field of another type never passes; null when it can. */
export function misfit(value: unknown, limit: Limit): string | null {
  if (bounds.some((bound) => limit[bound] !== undefined) && numberOf(value) === undefined)
    return 'is not a number';
  const named = namedValues(limit);
  return named.length > 0 && !named.some((each) => typeName(each) === typeName(value))
    ? `is ${withArticle(typeName(value))}, not ${withArticle(typeName(named[0]))}`
    : null;
}

/** Whether a limit is about null, which otherwise counts as missing. */
export const speaksOfNull = (limit: Limit | undefined): boolean =>
  limit !== undefined && namedValues(limit).includes(null);

const namedValues = (limit: Limit): readonly Scalar[] =>
  [limit.is, limit['is-not'], ...(limit['one-of'] ?? []), ...(limit['none-of'] ?? [])].filter(
    (each) => each !== undefined,
  );

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'list';
  return { string: 'text', number: 'number', boolean: 'boolean' }[typeof value as string] ?? 'object';
}

const withArticle = (noun: string): string =>
  noun === 'null' || noun === 'text' ? noun : `${noun === 'object' ? 'an' : 'a'} ${noun}`;

/** Enough digits of a number to read; all of them where fewer would put it on a limit. The result keeps every digit as data. */
export function readable(value: number, limits: readonly unknown[] = []): number {
  const short = Number(value.toPrecision(6));
  return limits.includes(short) ? value : short;
}

/** A value as a sentence has it: texts in quotation marks. */
export const text = (value: unknown): string =>
  typeof value === 'string' ? `"${value}"` : JSON.stringify(value);
