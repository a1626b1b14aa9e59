import { statIfThere } from '../base/files/files.js';
import type { FileKind } from '../base/files/user-files.js';

/** How one option looks to the user and what it means. Every value is parsed and checked before any work starts. */
export interface OptionSpec<T> {
  /** `--cache-dir <folder>`; kebab-case; a boolean option has no `<value>`. */
  readonly flags: string;
  readonly describe: string;
  /** Turns the text into the value, or throws a TrtforgeError (TF_USAGE and friends). Absent for booleans and plain text. */
  readonly parse?: (text: string) => T;
  readonly choices?: readonly string[];
  /** May be passed several times; `parse` gets each text, the option's value is the list. */
  readonly repeat?: true;
  readonly default?: T | readonly T[];
  /** The command does not run without it. What to add to the command line, for the error's remedy: `-o model.plan`. */
  readonly required?: string;
  /** An environment variable that is used when neither the command line nor the config file sets the option. */
  readonly env?: string;
  /**
   * What it names is written (true: a file, or files in a folder; missing: a file that is read where it is there; kinds: one file, of one of them). It must
   * not be what another option or argument names, and what it replaces must be of that kind. Without this mark a file that an option names is only read.
   */
  readonly writes?: true | 'missing' | readonly FileKind[];
  /** The heading that --help lists it under (default: Options). */
  readonly group?: string;
  /** Rarely needed: shown by --help all only. */
  readonly advanced?: true;
  /** A key of the configuration file that the command line does not take. */
  readonly configOnly?: true;
  /** It decides what code runs, where work is sent, whose engines are trusted or what is removed: a config file that was only found cannot set it. */
  readonly trust?: true;
}

/** Declares an option whose parsed value is a T. */
export function option<T>(
  spec: OptionSpec<T> & { readonly parse: (text: string) => T; readonly required: string },
): ValueOption<T>;
export function option<T>(
  spec: OptionSpec<T> & { readonly parse: (text: string) => T; readonly repeat: true },
): ListOption<T>;
export function option<T>(
  spec: OptionSpec<T> & { readonly parse: (text: string) => T; readonly default: T },
): ValueOption<T>;
export function option<T>(
  spec: OptionSpec<T> & { readonly parse: (text: string) => T },
): ValueOption<T | undefined>;
export function option(spec: OptionSpec<unknown>): OptionSpec<unknown> {
  return spec;
}

/** An option that takes text as it is. */
export function text(spec: Omit<OptionSpec<string>, 'parse'> & { readonly repeat: true }): ListOption<string>;
export function text(
  spec: Omit<OptionSpec<string>, 'parse'> & ({ readonly default: string } | { readonly required: string }),
): ValueOption<string>;
export function text(spec: Omit<OptionSpec<string>, 'parse'>): ValueOption<string | undefined>;
export function text(spec: Omit<OptionSpec<string>, 'parse'>): OptionSpec<string> {
  return spec;
}

/** An option without a value: absent is false. */
export function flag(
  spec: Pick<
    OptionSpec<boolean>,
    'flags' | 'describe' | 'env' | 'group' | 'advanced' | 'configOnly' | 'trust'
  >,
): ValueOption<boolean> {
  return spec as ValueOption<boolean>;
}

/** An option that takes one of a few words. */
export function choice<const C extends readonly string[]>(
  spec: Pick<OptionSpec<string>, 'flags' | 'describe' | 'env' | 'group' | 'advanced' | 'configOnly'> & {
    readonly choices: C;
    readonly default: C[number];
  },
): ValueOption<C[number]>;
export function choice<const C extends readonly string[]>(
  spec: Pick<OptionSpec<string>, 'flags' | 'describe' | 'env' | 'group' | 'advanced' | 'configOnly'> & {
    readonly choices: C;
  },
): ValueOption<C[number] | undefined>;
export function choice(spec: OptionSpec<string>): OptionSpec<string> {
  return spec;
}

declare const valueType: unique symbol;
/** An option spec that remembers, for the type checker only, what its value is after parsing and defaults. */
export type ValueOption<V> = OptionSpec<unknown> & { readonly [valueType]?: V };
export type ListOption<T> = ValueOption<readonly T[]>;
export type OptionTable = Readonly<Record<string, ValueOption<unknown>>>;
export type OptionValues<O extends OptionTable> = {
  readonly [K in keyof O]: O[K] extends ValueOption<infer V> ? V : never;
};

/** The option as a key of the configuration file, or by its environment variable, only. */
export const inConfig = <S extends OptionSpec<unknown>>(spec: S): S => ({ ...spec, configOnly: true });

/** The same options, shown by --help all only. */
export const advanced = <O extends OptionTable>(table: O): O =>
  Object.fromEntries(
    Object.entries(table).map(([key, spec]) => [key, { ...spec, advanced: true }]),
  ) as unknown as O;

/** The long name of an option: `--cache-dir <folder>` is `cache-dir`. */
export function longName(spec: OptionSpec<unknown>): string {
  const match = /--([a-zA-Z0-9-]+)/.exec(spec.flags);
  if (match?.[1] === undefined) throw new Error(`Option "${spec.flags}" has no long name.`);
  return match[1];
}

export const takesValue = (spec: OptionSpec<unknown>): boolean => spec.flags.includes('<');

/** What every command takes: flags as commander reads them, and what they do. */
export const globalOptions = [
  ['--json', 'print exactly one JSON object on stdout'],
  ['--events', 'print progress and logs on stderr as JSON lines'],
  ['-q, --quiet', 'print nothing but the result'],
  ['-v, --verbose', "print the library's verbose log lines and what the store did too"],
  ['--log-file <file>', 'write progress and logs into this file, as --events prints them'],
  ['--config <file>', 'read options from this file instead of trtforge.config.{json,yaml}'],
  ['--print-config', 'print the options as resolved, and stop'],
  ['--force', 'let results replace files of another kind, and edited ones'],
] as const;

/** What an option does to a file that it names: undefined where the file is read. */
export const writesTo = (spec: Pick<OptionSpec<never>, 'writes'> | undefined, path: string) =>
  spec?.writes === 'missing' ? statIfThere(path) === undefined || undefined : spec?.writes;
