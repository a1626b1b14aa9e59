import { TrtforgeError } from '../../errors.js';
import { isRecord } from '../files/json.js';
import { decimalOf, isWithin, type NumberRange, rangeText } from '../text/quantity.js';
import { pattern as parsePattern } from './readers.js';

/** One form of a value. */
export interface Form {
  /** For errors: `a text`, `a whole number from 1 to 256`. */
  readonly is: string;
  test(value: unknown): boolean;
  /** Converts a value that functions take in another form: an object to a Map. */
  make?(value: never): unknown;
  /** The options that an object of options has. */
  readonly options?: Group;
  /** The kind of the values of a list. */
  readonly each?: Kind<unknown>;
}

/** The values that an option may have, and their parser for the command line: `W` is its result. */
export interface Kind<T, W = T> {
  readonly forms: readonly Form[];
  /** Absent: text as it is. */
  readonly parse?: (text: string) => W;
  readonly choices?: readonly string[];
  readonly range?: NumberRange;
  /** For the type checker only. */
  readonly '~types'?: readonly [T, W];
}

/** The options of an object, by their names. */
export type Group = Readonly<
  Record<string, { readonly kind: Kind<unknown, unknown>; readonly needed?: true; readonly flags?: string }>
>;

/** A kind with one form, which `is` describes in errors. */
const like = <T>(is: string, test: Form['test'], make?: Form['make']): Kind<T> => ({
  forms: [make === undefined ? { is, test } : { is, test, make }],
});

export const text: Kind<string> = like('a text', (value) => typeof value === 'string' && value !== '');

/** One of some words, of which the function itself knows which there are. */
export const word = <T extends string>(): Kind<T> => text as unknown as Kind<T>;

const SHA256 = /^[0-9a-f]{64}$/;

/** An identity, whole: a beginning of it names other engines too. */
export const identity: Kind<string> = {
  ...like('a SHA-256 in hexadecimal digits', (value) => typeof value === 'string' && SHA256.test(value)),
  parse: (written) => {
    if (SHA256.test(written)) return written;
    throw new TrtforgeError('TF_USAGE', `"${written}" is not an identity of 64 hexadecimal digits.`, {
      remedy: 'Pass the one that `trtforge build` printed, or that `trtforge cache ls --json` states.',
    });
  },
};

const ranged = (range: NumberRange): Kind<number> & { readonly parse: (text: string) => number } => ({
  ...like(rangeText(range), (value) => isWithin(range, value)),
  range,
  parse: (written) => {
    const value = range.whole && !/^\s*[+-]?\d+\s*$/.test(written) ? undefined : decimalOf(written);
    if (isWithin(range, value)) return value;
    throw new TrtforgeError('TF_USAGE', `"${written}" is not ${rangeText(range)}.`);
  },
});

/** Whole numbers, both bounds included. */
export const whole = (from: number, to = Number.MAX_SAFE_INTEGER) => ranged({ whole: true, from, to });

/** Numbers, both bounds included. */
export const decimal = (from = -Number.MAX_VALUE, to = Number.MAX_VALUE) =>
  ranged({ whole: false, from, to });

const inMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds, which the command line states as `90s`, `5m` or `2h`; where it states none, by default so many. */
export const duration = (usual: number): Kind<number, number | undefined> => ({
  ...ranged({ whole: true, from: 1, to: 7 * 24 * inMs.h! }),
  parse: (written) => {
    if (written === 'true') return usual;
    if (written === 'false') return undefined;
    const [, amount, unit = ''] = /^(\d{1,6}(?:\.\d+)?)([smh])$/.exec(written.trim()) ?? [];
    const ms = Math.round(Number(amount) * (inMs[unit] ?? Number.NaN));
    if (ms > 0) return ms;
    throw new TrtforgeError('TF_USAGE', `"${written}" is not a time such as 90s, 5m or 2h.`);
  },
});

export const flag: Kind<boolean> = like('true or false', (value) => typeof value === 'boolean');

/** One of a few words. */
export function words<const W extends readonly string[]>(...choices: W): Kind<W[number]> {
  const quoted = choices.map((word) => `"${word}"`);
  const last = quoted.pop();
  const is = quoted.length === 0 ? `${last}` : `${quoted.join(', ')} or ${last}`;
  return { ...like(is, (value) => choices.some((word) => word === value)), choices };
}

/** This very value. */
export const only = <const T extends boolean | null>(value: T): Kind<T> =>
  like(String(value), (given) => given === value);

/** A list, of values of a kind. */
export const list = <T>(each?: Kind<T>): Kind<readonly T[]> => ({
  forms: [{ is: 'a list', test: Array.isArray, ...(each === undefined ? {} : { each }) }],
});

export const object = <T>(options?: Group): Kind<T> => ({
  forms: [{ is: 'an object', test: isRecord, ...(options === undefined ? {} : { options }) }],
});

/** Names and other texts. */
export const texts: Kind<readonly string[]> = like(
  'a list of texts',
  (value) => Array.isArray(value) && value.every((each) => typeof each === 'string'),
);

/** Values by name. */
export const map = <T>(): Kind<ReadonlyMap<string, T>> =>
  like('an object or a Map', isRecord, (value: object) =>
    value instanceof Map ? value : new Map(Object.entries(value)),
  );

/** A list of which order says nothing. */
export const set = <T>(): Kind<ReadonlySet<T>> =>
  like(
    'a list or a Set',
    (value) => Array.isArray(value) || value instanceof Set,
    (value: Iterable<T>) => new Set(value),
  );

export const pattern: Kind<RegExp> = {
  ...like('a regular expression', (value) => value instanceof RegExp),
  parse: parsePattern,
};

export const callback = <F>(): Kind<F> => like('a function', (value) => typeof value === 'function');

export const instance = <T>(type: abstract new (...args: never[]) => T, name: string): Kind<T> =>
  like(name, (value) => value instanceof type);

export const signal: Kind<AbortSignal> = instance(AbortSignal, 'an AbortSignal');

export const layers = like(
  'what layersOf returns',
  (value) => isRecord(value) && Array.isArray(value.layers),
);

/** A value of one kind or another; the first of them reads the command line. */
export const either = <A, B>(a: Kind<A>, b: Kind<B>): Kind<A | B, A> => ({
  ...(a as Kind<A | B, A>),
  forms: [...a.forms, ...b.forms],
});
