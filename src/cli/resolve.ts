import { existsSync } from 'node:fs';
import { Option } from 'commander';
import {
  defaultOf,
  longName,
  madeOf,
  type OptionSpec,
  type OptionTable,
  type OptionValues,
  takesValue,
} from '../base/options/option.js';
import { shellLine } from '../base/text/shell-line.js';
import { didYouMean } from '../base/text/suggest-name.js';
import { TrtforgeError } from '../errors.js';
import type { Command } from './command.js';
import type { Config } from './config.js';
import { globalOptions } from './option.js';

/**
 * Turns what the user set into the resolved options, once: flags over config file over environment over default.
 * A value that does not parse is TF_USAGE (or the parser's own code) with the option's name in front.
 */
export function resolveOptions<O extends OptionTable>(
  table: O,
  flags: Readonly<Record<string, unknown>>,
  config: Config,
  environment: NodeJS.ProcessEnv,
): {
  readonly values: OptionValues<O>;
  /** Option name to what was set or is the default, unparsed: what `--print-config` shows. */
  readonly shown: Readonly<Record<string, unknown>>;
} {
  const values: Record<string, unknown> = {};
  const shown: Record<string, unknown> = {};
  for (const [key, spec] of Object.entries(table)) {
    const source = sourceOf(spec, flags, config, environment);
    values[key] = madeOf(spec, source === undefined ? defaultOf(spec) : readValue(spec, source));
    const unparsed =
      source === undefined ? defaultOf(spec) : spec.repeat ? source.values : source.values.at(-1);
    // Left out where nobody set it, so that what --print-config shows may stand in the config file that is found.
    const isShown = unparsed !== undefined && !(spec.trust && source === undefined);
    if (isShown) shown[longName(spec)] = unparsed;
  }
  return { values: values as OptionValues<O>, shown };
}

/** The words of a command line, and the arguments in it that are too many. */
interface TypedLine {
  readonly path: string;
  readonly words: readonly string[];
  readonly excess: readonly string[];
}

/** As files are named: with an ending. */
const isFileName = (word: string): boolean => /\.\w+$/.test(word);

/** Whether a word of a command line is an option that takes no value. */
export function isBareFlag(word: string | undefined, options: OptionTable): boolean {
  const flags = [...Object.values(options).map((spec) => spec.flags), ...globalOptions.map(([own]) => own)];
  const found = flags.find((each) => each.split(/[ ,]+/).includes(word ?? ''));
  return found !== undefined && !/[<[]/.test(found);
}

/** Throws TF_USAGE, with the line completed, for an option that the command needs and nobody set, and for an argument too many. */
export function assertComplete(
  { options, arguments: taken = [] }: Command,
  shown: Readonly<Record<string, unknown>>,
  { path, words, excess }: TypedLine,
): void {
  const specs = Object.values(options);
  const isUnset = (spec: OptionSpec<unknown>) => shown[longName(spec)] === undefined;
  const missing = specs.filter((spec) => spec.required !== undefined && isUnset(spec));
  const [extra] = excess;
  if (extra !== undefined) {
    const valueAt = words.findIndex(
      (word, at) =>
        isBareFlag(words[at - 1], options) &&
        !word.startsWith('-') &&
        (word === extra ? !isFileName(word) : !existsSync(word)),
    );
    if (valueAt > 0)
      throw new TrtforgeError(
        'TF_USAGE',
        `${words[valueAt - 1]} takes no value, and ${words[valueAt]} stands behind it.`,
        {
          remedy: `Run: ${shellLine(words.toSpliced(valueAt, 1))}`,
        },
      );
    const output = specs.find((spec) => longName(spec) === 'output' && isUnset(spec) && !existsSync(extra));
    const meant = excess.length === 1 ? (missing[0] ?? output) : undefined;
    const line = words.toSpliced(words.lastIndexOf(extra), 1, `--${meant && longName(meant)}`, extra);
    const rest = missing.flatMap((spec) => (spec === meant ? [] : [spec.required]));
    const names = taken.map(({ name }) => name).join(' and ') || 'options';
    throw new TrtforgeError(
      'TF_USAGE',
      `\`${path}\` takes ${names} only, not ${excess.join(', ')} as well.`,
      {
        remedy:
          meant === undefined
            ? 'Remove it, or run the command once for each.'
            : `Run: ${[shellLine(line), ...rest].join(' ')}`,
      },
    );
  }
  const [first] = missing;
  if (first === undefined) return;
  throw new TrtforgeError('TF_USAGE', `The command needs ${first.flags}: ${first.describe}.`, {
    remedy: `Run: ${[shellLine(words), ...missing.map(({ required }) => required)].join(' ')}`,
  });
}

interface Source {
  /** For messages: `--workspace`, `trtforge.config.yaml: workspace`, `$TENSORRT_CACHE_DIR`. */
  readonly where: string;
  readonly values: readonly unknown[];
}

function sourceOf(
  spec: OptionSpec<unknown>,
  flags: Readonly<Record<string, unknown>>,
  config: Config,
  environment: NodeJS.ProcessEnv,
): Source | undefined {
  const value = spec.configOnly ? undefined : flagValue(attribute(spec.flags), flags);
  if (value !== undefined) return { where: `--${longName(spec)}`, values: [value].flat() };
  return configSource(longName(spec), config) ?? environmentSource(spec, environment);
}

function readValue(spec: OptionSpec<unknown>, source: Source): unknown {
  if (!takesValue(spec)) return booleanOf(source.where, source.values.at(-1));
  const parsed = source.values.map((value) => parseValue(spec, source.where, value));
  return spec.repeat ? parsed : parsed.at(-1);
}

/** commander's name for a flag. `--no-cache` is `!cache`. */
function attribute(flags: string): string {
  const shape = new Option(flags);
  return `${shape.negate ? '!' : ''}${shape.attributeName()}`;
}

/** commander keeps `--no-cache` as `cache: false`; here it is the option `no-cache` set to true. */
function flagValue(name: string, values: Readonly<Record<string, unknown>>): unknown {
  if (!name.startsWith('!')) return values[name];
  return values[name.slice(1)] === false ? true : undefined;
}

function configSource(name: string, config: Config): Source | undefined {
  const value = config.values[name];
  return value === undefined
    ? undefined
    : { where: `${config.path}: ${name}`, values: Array.isArray(value) ? value : [value] };
}

function environmentSource(spec: OptionSpec<unknown>, environment: NodeJS.ProcessEnv): Source | undefined {
  const value = spec.env === undefined ? undefined : environment[spec.env];
  return value === undefined || value === '' ? undefined : { where: `$${spec.env}`, values: [value] };
}

function booleanOf(where: string, value: unknown): boolean {
  if (value === true || value === 'true' || value === '1') return true;
  if (value === false || value === 'false' || value === '0') return false;
  throw new TrtforgeError('TF_USAGE', `${where} is on or off: "${String(value)}" is neither true nor false.`);
}

/** Returns an option's value from its text. Throws TF_USAGE and the errors of the value's reader, with `where` in front. */
export function parseValue(spec: OptionSpec<unknown>, where: string, value: unknown): unknown {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') {
    const pairs = Object.entries(value ?? {}).map(([name, each]) => `${name}=${each}`);
    throw new TrtforgeError('TF_CONFIG_INVALID', `${where} is not text, a number, true or false.`, {
      remedy: pairs.length > 0 && spec.repeat ? `Write a list: [${pairs.join(', ')}].` : undefined,
    });
  }
  const text = String(value);
  if (spec.choices !== undefined && !spec.choices.includes(text)) {
    throw new TrtforgeError(
      'TF_USAGE',
      `${where}: "${text}" is not one of ${spec.choices.join(', ')}.${didYouMean(text, spec.choices)}`,
    );
  }
  if (spec.parse === undefined) return text;
  try {
    return spec.parse(text);
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    throw new TrtforgeError(error.code, `${where}: ${error.message}`, { remedy: error.remedy, cause: error });
  }
}
