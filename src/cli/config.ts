import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isBelow } from '../base/files/folders.js';
import { isRecord } from '../base/files/json.js';
import { longName, type OptionSpec, takesValue } from '../base/options/option.js';
import { didYouMean } from '../base/text/suggest-name.js';
import { TrtforgeError } from '../errors.js';

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
