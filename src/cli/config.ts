import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TrtforgeError } from '../errors.js';
import { didYouMean } from '../system/nearest-word.js';

/** What a config file says: option name (kebab-case) to value or list of values. */
export interface Config {
  readonly path: string;
  readonly values: Readonly<Record<string, unknown>>;
}

const noConfig: Config = { path: '', values: {} };

const FILE_NAMES = ['trtforge.config.json', 'trtforge.config.yaml', 'trtforge.config.yml'];

/** The option names of every command, so that a key nobody takes is an error wherever it stands. Asked for only when there is a file. */
export type KnownKeys = () => Promise<ReadonlyMap<string, ReadonlySet<string>>>;

/**
 * Reads the config file that was named, or the first of `trtforge.config.{json,yaml,yml}` in the folder; none is fine.
 * Keys at the top are options of any command that has them; a section with a command's name holds options of that command only.
 * Errors: TF_CONFIG_INVALID, TF_FILE_NOT_FOUND.
 */
export async function loadConfig(
  named: string | undefined,
  command: string,
  knownKeys: KnownKeys,
  folder = process.cwd(),
): Promise<Config> {
  const path =
    named ?? FILE_NAMES.map((name) => join(folder, name)).find((candidate) => existsSync(candidate));
  if (path === undefined) return noConfig;
  const content = await readConfig(path);
  const commands = await knownKeys();
  const anyCommand = new Set([...commands.values()].flatMap((names) => [...names]));
  const own = commands.get(command) ?? new Set<string>();
  const values: Record<string, unknown> = {};
  const take = (key: string, value: unknown, allowed: ReadonlySet<string>, place: string) => {
    if (!allowed.has(key))
      throw new TrtforgeError(
        'TF_CONFIG_INVALID',
        `${path} has the key «${key}»${place}, which is no option.${didYouMean(key, allowed)}`,
      );
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
        `${path}: «${name}» is a command, so it must hold options.`,
      );
    if (name !== command) continue;
    for (const [key, value] of Object.entries(section)) take(key, value, own, ` under ${name}`);
  }
  return { path, values };
}

async function readConfig(path: string): Promise<Readonly<Record<string, unknown>>> {
  const { parse } = await import('yaml');
  if (!existsSync(path))
    throw new TrtforgeError('TF_FILE_NOT_FOUND', `The configuration file ${path} does not exist.`);
  let content: unknown;
  try {
    content = parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new TrtforgeError('TF_CONFIG_INVALID', `${path} cannot be read: ${firstLine(cause)}.`, { cause });
  }
  if (content === null || content === undefined) return {};
  if (!isRecord(content))
    throw new TrtforgeError('TF_CONFIG_INVALID', `${path} does not hold keys and values.`);
  return content;
}

/** The resolved options as YAML that could stand in a config file. */
export async function configText(shown: Readonly<Record<string, unknown>>): Promise<string> {
  const { stringify } = await import('yaml');
  return stringify(shown).trimEnd();
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The parser's complaint without the excerpt that it announces. */
const firstLine = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).split('\n')[0]!.replace(/[.:]$/, '');
