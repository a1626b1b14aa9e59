import fs, {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { expect } from 'vitest';
import { parse } from 'yaml';
import { longName, type OptionTable, takesValue } from '../../src/base/options/option.js';
import type { Command, CommandResult, Product } from '../../src/cli/command.js';
import { toJson } from '../../src/cli/output.js';
import { ExitCode } from '../../src/errors.js';

/**
 * Products whose commands are judged while tests run them: what they print and write is valid by the published schemas, and the options of each run
 * that ended with a verdict are noted for scripts/used-options.mjs. What is not valid is added to `faults`.
 */
export const judgedProducts = (products: readonly Product[], faults: string[]): readonly Product[] =>
  products.map((product) => ({
    ...product,
    verbs: product.verbs.map((verb) => ({
      ...verb,
      load: async () => judged(verb.path, await verb.load(), faults),
    })),
  }));

/** One loaded command is one run: `parse` is asked for what was set, not for defaults. */
function judged(verb: string, command: Command, faults: string[]): Command {
  const set = new Set<string>();
  const options: OptionTable = Object.fromEntries(
    Object.entries(command.options).map(([key, spec]) => {
      const { parse = (text: string) => text } = spec;
      const noted = (text: string) => {
        set.add(longName(spec));
        return parse(text);
      };
      return [key, takesValue(spec) ? { ...spec, parse: noted } : spec];
    }),
  );
  const { plan } = command;
  return {
    ...command,
    options,
    run: async (inputs, values, context) => {
      const result = await command.run(inputs, values, context);
      const { exitCode = ExitCode.pass } = result;
      faults.push(...faultsOfText(printedOf(verb, result, exitCode)));
      for (const path of writtenBy(command, inputs, values)) faults.push(...faultsOfFile(path));
      const switches = Object.entries(command.options)
        .filter(([key, spec]) => !takesValue(spec) && values[key] === true)
        .map(([, spec]) => longName(spec));
      if (VERDICTS.has(exitCode))
        noteUsed(
          'options',
          [...set, ...switches].map((name) => `${verb} --${name}`),
        );
      for (const path of inputs.filter((input) => verb.startsWith('fleet ') && input.endsWith('.yaml')))
        noteUsed('engines', keysOf(parse(readFileSync(path, 'utf8')), []));
      return result;
    },
    // A plan is work of no option but its own.
    ...(plan && {
      plan: async (...request) => {
        const made = await plan(...request);
        noteUsed('options', [`${verb} --dry-run`]);
        return made;
      },
    }),
  };
}

/** The keys of a file by their places; what a user names is a star: `targets.*.where`. */
const keysOf = (value: unknown, place: readonly string[]): readonly string[] =>
  Array.isArray(value)
    ? value.flatMap((each) => keysOf(each, place))
    : Object.entries(Object(value)).flatMap(([key, inner]) => {
        const here = [...place, place.join('.') === 'targets' ? '*' : key];
        return typeof value === 'string' ? [] : [here.join('.'), ...keysOf(inner, here)];
      });

const VERDICTS: ReadonlySet<number> = new Set([ExitCode.pass, ExitCode.failed, ExitCode.inconclusive]);

/** As --json prints it. */
const printedOf = (command: string, { schema, ...fields }: CommandResult, exitCode: ExitCode): string =>
  toJson({ schema, ok: exitCode === ExitCode.pass, command, ...fields, exitCode });

/** What a command was told to write: files, and what is in folders. */
function writtenBy(
  { options, arguments: declared = [] }: Command,
  inputs: readonly string[],
  values: Readonly<Record<string, unknown>>,
): readonly string[] {
  const named = [
    ...inputs.filter((_input, at) => (declared[at] ?? declared.at(-1))?.writes),
    ...Object.entries(options).flatMap(([key, { writes }]) => (writes ? [values[key]].flat() : [])),
  ];
  return named.flatMap((path) => (typeof path === 'string' && existsSync(path) ? filesIn(path) : []));
}

const filesIn = (path: string): readonly string[] =>
  statSync(path).isFile()
    ? [path]
    : readdirSync(path, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.json'))
        .map((name) => join(path, name));

function faultsOfFile(path: string): readonly string[] {
  if (!path.endsWith('.json')) return [];
  return faultsOfText(readFileSync(path, 'utf8')).map((fault) => `${path}: ${fault}`);
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const ajv = new Ajv2020({
  strict: true,
  allowUnionTypes: true,
  allErrors: true,
  formats: { 'date-time': true },
  // Making validators shorter takes as long as making them, in each process again.
  code: { optimize: false },
});
const validators = new Map<string, ValidateFunction>();

/** What in a JSON text is not valid by the published schema that it names; where it names none, in the documents within it. */
export const faultsOfText = (text: string): readonly string[] => faultsOf(JSON.parse(text));

/** The same of a value. */
export function faultsOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const schema = 'schema' in value ? String(value.schema) : '';
  const name = /^trtforge\.(.+)\/\d+$/.exec(schema)?.[1];
  const file = join(root, 'schemas', `${name}.json`);
  if (name === undefined || !existsSync(file)) return Object.values(value).flatMap(faultsOf);
  const isValid = validators.get(name) ?? ajv.compile(JSON.parse(readFileSync(file, 'utf8')));
  validators.set(name, isValid);
  if (isValid(value)) return [];
  return (isValid.errors ?? []).map(
    ({ instancePath, message, params }) => `${schema} ${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}

/** Documents of stores and run roots, whose places no option names: everything of ours takes its place by a rename. */
const renamed = new Set<string>();
const { renameSync } = fs;
fs.renameSync = (from, to) => {
  renameSync(from, to);
  if (String(to).endsWith('.json')) renamed.add(resolve(String(to)));
};
syncBuiltinESMExports();

/** Does work, and adds to `faults` what is not valid of the documents that took their places meanwhile and are there at its end. */
export async function judgingWritten<T>(faults: string[], work: () => Promise<T>): Promise<T> {
  renamed.clear();
  const result = await work();
  for (const path of renamed) if (existsSync(path)) faults.push(...faultsOfFile(path));
  return result;
}

const begun = new Set<string>();

/** Adds to what the test file at work used, in build/used. A run of a part of its tests takes nothing away; what was noted before the file was changed goes. */
export function noteUsed(kind: string, names: readonly string[]): void {
  const { testPath } = expect.getState();
  if (testPath === undefined || names.length === 0) return;
  const path = join(root, 'build', 'used', `${relative(join(root, 'test'), testPath)}.${kind}`);
  if (!begun.has(path)) {
    mkdirSync(dirname(path), { recursive: true });
    const isOld = existsSync(path) && statSync(path).mtimeMs < statSync(testPath).mtimeMs;
    if (isOld) rmSync(path);
    else if (existsSync(path))
      for (const name of readFileSync(path, 'utf8').split('\n')) begun.add(`${path} ${name}`);
    begun.add(path);
  }
  const fresh = names.filter((name) => !begun.has(`${path} ${name}`));
  for (const name of fresh) begun.add(`${path} ${name}`);
  if (fresh.length > 0) appendFileSync(path, fresh.map((name) => `${name}\n`).join(''));
}
