import type { EventListener } from '../../events.js';
import type { FileKind } from '../files/user-files.js';
import type { Kind } from './kinds.js';
import * as is from './kinds.js';

/** One option: its appearance to the user and its meaning. Every value is parsed and checked before any work starts. */
export interface OptionSpec<T> {
  /** `--cache-dir <folder>`; kebab-case; a boolean option has no `<value>`. */
  readonly flags: string;
  readonly describe: string;
  /** Turns the text into the value, or throws a TrtforgeError (TF_USAGE and friends). Absent for booleans and plain text. */
  readonly parse?: ((text: string) => T) | undefined;
  readonly choices?: readonly string[] | undefined;
  /** May be passed several times; `parse` gets each text, the option's value is the list. */
  readonly repeat?: true | undefined;
  /** The texts that `parse` and `make` read as this value; absent where its elements themselves are. */
  readonly texts?: ((value: never) => readonly string[]) | undefined;
  /** The value, of what was read or is the default: milliseconds of seconds, a record of a list. */
  readonly make?: ((read: never) => unknown) | undefined;
  readonly default?: T | readonly T[] | undefined;
  /** The command does not run without it. What to add to the command line, for the error's remedy: `-o model.plan`. */
  readonly required?: string | undefined;
  /** An environment variable that is used when neither the command line nor the config file sets the option. */
  readonly env?: string | undefined;
  /**
   * The named path is written (true: a file, or files in a folder; missing: a file that is read if it exists; kinds: one file, of one of them). It must
   * not be named by another option or argument, and what it replaces must be of that kind. Without this mark a file that an option names is only read.
   */
  readonly writes?: true | 'missing' | readonly FileKind[] | undefined;
  /** The heading that --help lists it under (default: Options). */
  readonly group?: string | undefined;
  /** Rarely needed: shown by --help all only. */
  readonly advanced?: true | undefined;
  /** A key of the configuration file that the command line does not take. */
  readonly configOnly?: true | undefined;
  /** It decides what code runs, where work is sent, whose engines are trusted or what is removed: a config file that was only found cannot set it. */
  readonly trust?: true | undefined;
}

/** An option spec that remembers, for the type checker only, what its value is after parsing and defaults. */
export type ValueOption<V> = OptionSpec<unknown> & { readonly '~value'?: readonly [V] | undefined };
export type ListOption<T> = ValueOption<readonly T[]>;
export type OptionTable = Readonly<Record<string, ValueOption<unknown>>>;
export type OptionValues<O extends OptionTable> = {
  readonly [K in keyof O]: O[K] extends ValueOption<infer V> ? V : never;
};

/** An option of the library. */
type Declared<L> = { readonly kind: Kind<L, unknown> };
type Needed<L> = { readonly kind: Kind<L, unknown>; readonly needed: true };
type DeclaredGroup = Readonly<Record<string, Declared<unknown>>>;
type TypeOf<D> = D extends Declared<infer L> ? L : never;

/** The options of a group, as a function of the library takes them. */
export type OptionsOf<G extends DeclaredGroup> = {
  readonly [K in keyof G as G[K] extends Needed<unknown> ? K : never]: TypeOf<G[K]>;
} & {
  readonly [K in keyof G as G[K] extends Needed<unknown> ? never : K]?: TypeOf<G[K]>;
};

/** The same option on the command line, under its name there. */
type Typed<L> = OptionSpec<unknown> & { readonly default?: L };

/** Its value: undefined where nobody passes it, but for those that have a value all the same. */
type TypedValue<L, W, S> = S extends { make: (read: never) => infer M }
  ? M
  : S extends { repeat: true }
    ? L
    : Unless<S, S extends { parse: (text: string) => infer P } ? P : W>;
type Unless<S, V> = S extends { default: unknown } | { required: string }
  ? V
  : [V] extends [boolean]
    ? V
    : V | undefined;

/**
 * Declares an option, where it is used: what it may be, and how the command line takes it, where it does. A group of them is a record by the library's names.
 * Its comment is the library's documentation.
 */
export function optional<L, W>(kind: Kind<L, W>): Declared<L>;
export function optional<L, W, const S extends Typed<L>>(
  kind: Kind<L, W>,
  typed: S,
): Declared<L> & ValueOption<TypedValue<L, W, S>>;
export function optional<L, W>(kind: Kind<L, W>, typed?: Typed<L>) {
  const { parse, choices } = kind;
  return { kind, ...(parse && { parse }), ...(choices && { choices }), ...typed };
}

/** The same of an option that the library's function does not work without. */
export function needed<L, W>(kind: Kind<L, W>): Needed<L>;
export function needed<L, W, const S extends Typed<L>>(
  kind: Kind<L, W>,
  typed: S,
): Needed<L> & ValueOption<TypedValue<L, W, S>>;
export function needed<L, W>(kind: Kind<L, W>, typed?: Typed<L>) {
  return { ...(typed === undefined ? optional(kind) : optional(kind, typed)), needed: true };
}

export const namesOf = <G extends object>(group: G) => Object.keys(group) as (keyof G & string)[];

/** The options of a group without those named. */
export const allBut = <G extends object, K extends keyof G & string>(group: G, ...names: K[]) =>
  Object.fromEntries(Object.entries(group).filter(([name]) => !names.includes(name as K))) as Omit<G, K>;

/** The options of a group among others, to be passed on. */
export const valuesOf = <G extends DeclaredGroup, V extends Partial<Record<keyof G, unknown>>>(
  group: G,
  values: V,
): Pick<V, keyof G & keyof V> =>
  Object.fromEntries(
    Object.keys(group).flatMap((name) => (Object.hasOwn(values, name) ? [[name, values[name]]] : [])),
  ) as Pick<V, keyof G & keyof V>;

/** `--heal [limit]` has one of its own where none is passed, which its reader gets as `true`. */
export const takesValue = (spec: Pick<OptionSpec<unknown>, 'flags'>): boolean => /[<[]/.test(spec.flags);

/** The value of an option where nobody passed it, as --print-config shows it. */
export const defaultOf = (spec: OptionSpec<unknown>): unknown =>
  spec.default ?? (spec.repeat ? [] : takesValue(spec) ? undefined : false);

export const madeOf = ({ make }: OptionSpec<unknown>, read: unknown): unknown =>
  make === undefined ? read : make(read as never);

/** A group's values where nobody passes any. */
export const defaultsOf = <G extends OptionTable>(group: G) =>
  Object.fromEntries(
    Object.entries(group).map(([name, spec]) => [name, madeOf(spec, defaultOf(spec))]),
  ) as OptionValues<G>;

/** The values passed, and the defaults of those that are not. */
export const withDefaults = <D extends object>(
  defaults: D,
  passed: { readonly [K in keyof D]?: D[K] | undefined },
): D =>
  Object.fromEntries(
    Object.entries(defaults).map(([name, value]) => [name, passed[name as keyof D] ?? value]),
  ) as D;

/** The long name of an option: `--cache-dir <folder>` is `cache-dir`. */
export function longName(spec: Pick<OptionSpec<unknown>, 'flags'>): string {
  const match = /--([a-zA-Z0-9-]+)/.exec(spec.flags);
  if (match?.[1] === undefined) throw new Error(`Option "${spec.flags}" has no long name.`);
  return match[1];
}

/** An option as messages name it: `--cache-dir`. */
export const flagOf = (spec: Pick<OptionSpec<unknown>, 'flags'>): string => `--${longName(spec)}`;

/** The words of a command line that state these values: none for defaults. */
export const wordsOf = (group: DeclaredGroup, values: object): readonly string[] =>
  Object.entries(group).flatMap(([name, declared]) => {
    const spec = declared as Partial<OptionSpec<unknown>>;
    const value: unknown = (values as Readonly<Record<string, unknown>>)[name];
    const { flags } = spec;
    if (flags === undefined || [undefined, null, false, spec.default].includes(value as never)) return [];
    if (value === true) return [flagOf({ flags })];
    const texts = spec.texts?.(value as never) ?? (value instanceof Set ? [...value] : [value].flat());
    return texts.flatMap((each) => [flagOf({ flags }), each instanceof RegExp ? each.source : String(each)]);
  });

/** The event receiver, abort signal and environment of long work; the default is the environment of this process. */
export const contextOptions = {
  emit: optional(is.callback<EventListener>()),
  signal: optional(is.signal),
  environment: optional(is.object<NodeJS.ProcessEnv>()),
};
