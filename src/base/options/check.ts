import { inspect } from 'node:util';
import { TrtforgeError } from '../../errors.js';
import { isRecord } from '../text/lenient-json.js';
import { rangeText } from '../text/quantity.js';
import { didYouMean } from '../text/suggest-name.js';
import type { Group, Kind } from './kinds.js';

/** One argument of a function: a group of options, or a plain value. */
export type Argument = Group | PlainArgument;

export interface PlainArgument {
  readonly name: string;
  readonly kind: Kind<unknown>;
  readonly needed?: true;
}

export const isPlain = (argument: Argument): argument is PlainArgument => typeof argument.name === 'string';

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
