import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Option } from 'commander';
import { isBelow } from '../base/files/folders.js';
import { isRecord } from '../base/files/json.js';
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

/** The content of a config file: option name (kebab-case) to value or list of values. */
export interface Config {
  readonly path: string;
  readonly values: Readonly<Record<string, unknown>>;
}

const noConfig: Config = { path: '', values: {} };

const FILE_NAMES = ['trtforge.config.json', 'trtforge.config.yaml', 'trtforge.config.yml'];

/** The options of every command by their names, so that an unknown key is an error wherever it stands. Loaded only when there is a file. */
export type KnownKeys = () => Promise<ReadonlyMap<string, ReadonlyMap<string, OptionSpec<unknown>>>>;

/**
 * Reads the config file that was named, or the `trtforge.config.{json,yaml,yml}` of the folder; none is fine.
 * Keys at the top are options of any command that has them; a section with a command's name has options of that command only.
 * A file that was only found decides nothing about code and trust, and writes in its own folder only: its author is that of the folder. Errors: TF_CONFIG_INVALID, TF_FILE_NOT_FOUND.
 */
export async function loadConfig(
  named: string | undefined,
  command: string,
  knownKeys: KnownKeys,
  folder = process.cwd(),
): Promise<Config> {
  const path = named ?? foundIn(folder);
  if (path === undefined) return noConfig;
  const content = await readConfig(path);
  const commands = await knownKeys();
  const anyCommand = new Map([...commands.values()].flatMap((options) => [...options]));
  const own = commands.get(command) ?? new Map<string, OptionSpec<unknown>>();
  const values: Record<string, unknown> = {};
  const take = (
    key: string,
    value: unknown,
    allowed: ReadonlyMap<string, OptionSpec<unknown>>,
    place: string,
  ) => {
    const spec = allowed.get(key);
    if (spec === undefined)
      throw new TrtforgeError(
        'TF_CONFIG_INVALID',
        `${path} has the key "${key}"${place}, which is not an option.${didYouMean(key, allowed.keys())}`,
      );
    if (named === undefined) assertOwnAffair(path, key, own.get(key) ?? spec, value);
    if (own.has(key)) values[key] = value;
  };
  const sections = Object.entries(content).filter(([key]) => commands.has(key));
  for (const [key, value] of Object.entries(content)) {
    if (!commands.has(key)) take(key, value, anyCommand, '');
  }
  for (const [name, section] of sections) {
    if (!isRecord(section))
      throw new TrtforgeError(
        'TF_CONFIG_INVALID',
        `${path}: "${name}" is a command, so its value must be options.`,
      );
    if (name !== command) continue;
    for (const [key, value] of Object.entries(section)) take(key, value, own, ` under ${name}`);
  }
  return { path, values };
}

function foundIn(folder: string): string | undefined {
  const [first, second] = FILE_NAMES.map((name) => join(folder, name)).filter((path) => existsSync(path));
  if (first !== undefined && second !== undefined)
    throw new TrtforgeError('TF_CONFIG_INVALID', `Both ${first} and ${second} exist.`, {
      remedy: 'Keep one of them, or name one with --config.',
    });
  return first;
}

/** Throws TF_CONFIG_INVALID for what the author of the folder may not decide for its user. */
function assertOwnAffair(config: string, key: string, spec: OptionSpec<unknown>, value: unknown): void {
  const reject = (what: string) =>
    new TrtforgeError(
      'TF_CONFIG_INVALID',
      `${config} was found, not named, so it cannot set "${key}"${what}.`,
      { remedy: `Pass --config ./${basename(config)} if you trust the file, or pass --${key} itself.` },
    );
  if (spec.trust)
    throw reject(
      ', which decides what code runs, where work is sent, whose engines are trusted or what is removed',
    );
  if (spec.writes === undefined) return;
  for (const output of [value].flat())
    if (typeof output === 'string' && !isBelow(dirname(config), output))
      throw reject(` to "${output}", which is outside of its folder`);
}

async function readConfig(path: string): Promise<Readonly<Record<string, unknown>>> {
  const { readYaml } = await import('../base/text/yaml.js');
  const { content } = readYaml(path, 'TF_CONFIG_INVALID');
  if (content === null || content === undefined) return {};
  if (!isRecord(content))
    throw new TrtforgeError('TF_CONFIG_INVALID', `${path} does not have keys and values.`);
  return content;
}

/** The resolved options as YAML that could stand in a config file. */
export async function configText(shown: Readonly<Record<string, unknown>>): Promise<string> {
  const { stringify } = await import('yaml');
  return stringify(shown).trimEnd();
}

/** For an option on the command line that is a key of the configuration file alone; the remedy has its value. */
export function onlyInConfig(
  path: string,
  spec: OptionSpec<unknown>,
  args: readonly string[],
): TrtforgeError {
  const name = longName(spec);
  const at = args.findIndex((arg) => arg.split('=')[0] === `--${name}`);
  const [, inline] = /=(.*)/s.exec(args[at] ?? '') ?? [];
  const value = takesValue(spec) ? (inline ?? args[at + 1] ?? '…') : true;
  const where = spec.trust
    ? 'a file and pass it: --config ./trtforge.config.yaml'
    : 'trtforge.config.yaml, or into a file that --config names';
  return new TrtforgeError(
    'TF_USAGE',
    `\`${path}\` has no option --${name}: it is a key of the configuration file.`,
    {
      remedy: `Write \`${name}: ${value}\` into ${where}${spec.env === undefined ? '' : `; or set ${spec.env}`}.`,
      details: { option: `--${name}` },
    },
  );
}
