import { inspect } from 'node:util';
import { TrtforgeError } from '../../errors.js';
import { isRecord } from '../files/json.js';
import { rangeText } from '../text/quantity.js';
import { didYouMean } from '../text/suggest-name.js';
import type { Group, Kind } from './kinds.js';
import { longName } from './option.js';

/** One argument of a function: a group of options, or a plain value. */
export type Argument = Group | PlainArgument;

export interface PlainArgument {
  readonly name: string;
  readonly kind: Kind<unknown>;
  readonly needed?: true;
}

const isPlain = (argument: Argument): argument is PlainArgument => typeof argument.name === 'string';

/**
 * Checks the arguments of a function of the library, which JavaScript's callers can misspell or mistake, and returns them: with a Map for an object of values by
 * name, and a Set for a list of which order says nothing. Throws TF_USAGE that names the option, its value and its forms.
 */
export const checkArguments = (args: readonly unknown[], taken: readonly Argument[]): unknown[] =>
  Array.from({ length: Math.max(args.length, taken.length) }, (_, at) => {
    const [value, argument] = [args[at], taken[at]];
    if (argument === undefined) return value;
    return isPlain(argument)
      ? checkValue(value, argument.name, argument, '')
      : checkOptions(value, argument, '');
  });

/** `path` stands before the names: `mode.`. */
function checkOptions(passed: unknown, group: Group, path: string): unknown {
  const known = Object.keys(group);
  const remedy = `Options are ${known.join(', ')}.`;
  if (passed !== undefined && !isRecord(passed))
    throw new TrtforgeError('TF_USAGE', `${shown(passed)} is not an object of options.`, { remedy });
  const unknown = Object.keys(passed ?? {}).find((name) => !Object.hasOwn(group, name));
  if (unknown !== undefined)
    throw new TrtforgeError(
      'TF_USAGE',
      `"${path}${unknown}" is not an option.${didYouMean(unknown, known)}`,
      { remedy, details: { option: `${path}${unknown}` } },
    );
  const made = Object.entries(group).flatMap(([name, option]) => {
    const given = passed?.[name];
    const value = checkValue(given, name, option, path, remedy);
    return value === given ? [] : [[name, value] as const];
  });
  return made.length === 0 ? passed : { ...passed, ...Object.fromEntries(made) };
}

function checkValue(
  value: unknown,
  name: string,
  { kind, needed }: Group[string],
  path: string,
  remedy?: string,
): unknown {
  if (value === undefined && !needed) return value;
  const form = kind.forms.find((each) => each.test(value));
  if (form?.options !== undefined) return checkOptions(value, form.options, `${path}${name}.`);
  if (form?.each !== undefined) {
    for (const [at, one] of (value as readonly unknown[]).entries())
      checkValue(one, `${name}.${at}`, { kind: form.each, needed: true }, path);
    return value;
  }
  if (form !== undefined) return form.make?.(value as never) ?? value;
  const accepted = kind.forms.map((each) => each.is).join(', or ');
  throw new TrtforgeError(
    'TF_USAGE',
    `The option "${path}${name}" is ${value === undefined ? 'missing' : shown(value)}: it must be ${accepted}.`,
    { remedy, details: { option: `${path}${name}` } },
  );
}

const shown = (value: unknown): string =>
  inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY, maxStringLength: 80, maxArrayLength: 3 });

/** Throws TF_USAGE for the first number of a request that is out of its range. */
export function assertWithin(group: Group, request: object): void {
  for (const [name, { kind }] of Object.entries(group)) {
    const value = (request as Readonly<Record<string, unknown>>)[name];
    if (value === undefined || kind.range === undefined || kind.forms.some((form) => form.test(value)))
      continue;
    throw new TrtforgeError(
      'TF_USAGE',
      `${name} is ${String(value)}, and must be ${rangeText(kind.range)}.`,
      { details: { option: name } },
    );
  }
}

type Renames = ReadonlyMap<string, readonly string[]>;

const renames = (lines: string): Renames =>
  new Map(
    lines
      .split(', ')
      .map((line) => line.split(' '))
      .map(([flag = '', ...names]) => [flag, names]),
  );

/** Options that are neither declared with their flag nor a flag in camelCase; of several the first that the function takes, none where the command line alone has it. */
const renamed = renames(
  'profile profiles, plugin plugins, dim dims, inputs sources data, shapes shapes profiles, against reference, provider-option providerOptions, cache-dir store, trust-key trustKeys, builder-config settings, with tool, onnxruntime onnxRuntime, images imagesDir, audio audioDir, on inventory, max-batch limits.firstMaxBatch, max-batch-limit limits.maxBatchLimit, root names.root, backends backEnds, force, json, local instead',
);

/** Declared options by their flags; of an option in other options the way to it, `verify.atol`, unless the function itself has the flag. */
function renamesIn(groups: readonly Group[], path = ''): Renames {
  const options = groups.flatMap((group) => Object.entries(group));
  const inner = options.flatMap(([name, { kind }]) =>
    kind.forms.flatMap((form) => [...renamesIn(form.options ? [form.options] : [], `${path}${name}.`)]),
  );
  const own = options.flatMap(([name, { flags }]) =>
    flags === undefined ? [] : [[longName({ flags }), [path + name]] as const],
  );
  return new Map([...inner, ...own]);
}

/** Commands, in backticks or to the end of their line: their flags stay. */
export const COMMANDS = /(`[^`]*`|(?<![\w./-])(?:trtforge [a-z].*|trtexec --\S+))/;

/** A sentence for the command line in words of the library, for a function that takes these arguments: `--keep-nodes /x/` is `keepNodes` /x/. */
export function inLibraryWords(sentence: string, taken: readonly Argument[] = [], own?: Renames): string {
  const groups = taken.flatMap((argument) => (isPlain(argument) ? [] : [argument]));
  const known = groups.flatMap((group) => Object.keys(group));
  const declared = renamesIn(groups);
  const optionOf = (flag: string) => {
    const alike = flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    const named = own?.get(flag) ?? declared.get(flag) ?? renamed.get(flag) ?? [alike];
    const name = [...named, alike].find((each) => known.includes(each)) ?? named[0];
    return name === undefined ? `\`--${flag}\` of the command line` : `\`${name}\``;
  };
  return sentence
    .split(COMMANDS)
    .map((part, at) =>
      at % 2 === 1
        ? part
        : part.replace(/(?<![\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?![\w-])/g, (_, flag) => optionOf(flag)),
    )
    .join('');
}

/** An error in words of the library, for a caller of a function that takes these arguments. */
export function libraryError(error: unknown, taken?: readonly Argument[], own?: Renames): unknown {
  if (!(error instanceof TrtforgeError)) return error;
  const { code, cause, stack, details } = error;
  const option = typeof details?.option === 'string' ? details.option : '';
  const [message = '', remedy = '', named = ''] = [error.message, error.remedy, option].map((text) =>
    inLibraryWords(text, taken, own),
  );
  if (message === error.message && remedy === error.remedy && named === option) return error;
  const inWords = option === '' ? details : { ...details, option: named.replaceAll('`', '') };
  return Object.assign(new TrtforgeError(code, message, { remedy, details: inWords, cause }), {
    stack: stack?.replace(error.message, message),
  });
}

/**
 * A function as an entry of the package has it: its arguments are checked against the groups of their options, and its errors name options. One that is `async`
 * rejects where another throws.
 */
export function atDoor<F extends (...args: never[]) => unknown>(call: F, ...taken: readonly Argument[]): F {
  const isAsync = Object.prototype.toString.call(call) === '[object AsyncFunction]';
  const inWords = (error: unknown): never => {
    throw libraryError(error, taken);
  };
  const called = (...args: Parameters<F>) => {
    try {
      const result = call(...(checkArguments(args, taken) as Parameters<F>));
      return result instanceof Promise ? result.catch(inWords) : result;
    } catch (error) {
      return isAsync ? Promise.reject(error).catch(inWords) : inWords(error);
    }
  };
  return called as F;
}
