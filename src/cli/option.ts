import { statIfThere } from '../base/files/files.js';
import type { ListOption, OptionSpec, OptionTable, ValueOption } from '../base/options/option.js';

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

/** The option as a key of the configuration file, or by its environment variable, only. */
export const inConfig = <S extends OptionSpec<unknown>>(spec: S): S => ({ ...spec, configOnly: true });

/** The same options, described in other words. */
export const described = <O extends OptionTable>(table: O, words: (text: string) => string): O =>
  Object.fromEntries(
    Object.entries(table).map(([key, spec]) => [key, { ...spec, describe: words(spec.describe) }]),
  ) as unknown as O;

/** The same options, shown by --help all only. */
export const advanced = <O extends OptionTable>(table: O): O =>
  Object.fromEntries(
    Object.entries(table).map(([key, spec]) => [key, { ...spec, advanced: true }]),
  ) as unknown as O;

/** The options of every command: flags as commander reads them, and their descriptions. */
export const globalOptions = [
  ['--json', 'print exactly one JSON object on stdout'],
  ['--events', 'print progress and logs on stderr as JSON lines'],
  ['-q, --quiet', 'print nothing but the result'],
  ['-v, --verbose', "print the library's verbose log lines and what the store did too"],
  ['--log-file <file>', 'write progress and logs into this file, as --events prints them'],
  ['--config <file>', 'read options from this file instead of trtforge.config.{json,yaml}'],
  ['--print-config', 'print the options as resolved, and stop'],
  [
    '--force',
    'let results replace files of another kind, and edited ones; write what DeepStream or Triton cannot serve',
  ],
] as const;

/** The kind of write to a file that an option names: undefined where the file is read. */
export const writesTo = (spec: Pick<OptionSpec<never>, 'writes'> | undefined, path: string) =>
  spec?.writes === 'missing' ? statIfThere(path) === undefined || undefined : spec?.writes;
