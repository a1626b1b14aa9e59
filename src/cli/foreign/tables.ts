import type { Product } from '../command.js';
import type { OptionTable } from '../option.js';
import { globalOptions, longName } from '../option.js';
import { type ForeignFlag, templateOption, templateWords } from './flag.js';
import { formerRows } from './former.js';
import { modeloptRows } from './modelopt.js';
import { polygraphyRows } from './polygraphy.js';
import { trtexecRows } from './trtexec.js';

/** Every row, of the core and of products. */
export const foreignFlags = (products: readonly Product[]): readonly ForeignFlag[] => [
  ...trtexecRows,
  ...polygraphyRows,
  ...modeloptRows,
  ...products.flatMap(({ foreignFlags: rows }) => rows ?? []),
  ...formerRows,
];

/** Our arguments for a flag with its value, for a verb; undefined where the verb has no equivalent. */
export function oursFor(
  { ours, values, verbs }: ForeignFlag,
  value: string,
  path: string,
  options: OptionTable,
): readonly string[] | undefined {
  if (verbs !== undefined && !verbs.includes(path)) return undefined;
  const template = ours.find((each) => {
    const option = templateOption(each);
    return option === undefined || isOwn(options, option);
  });
  const texts = values === undefined ? [value] : values(value);
  if (template === undefined || texts === null) return undefined;
  return texts.flatMap((text) => templateWords(template, text));
}

const words = (flags: string): readonly string[] =>
  flags.split(/[ ,]+/).filter((word) => word.startsWith('-'));

const specOf = (options: OptionTable, flag: string): OptionTable[string] | undefined =>
  Object.values(options).find(({ flags }) => words(flags).includes(flag));

/** Whether a flag of a verb, or of every command, has a value in the next argument. */
export const isFollowedByValue = (options: OptionTable, flag: string): boolean =>
  specOf(options, flag)?.flags.includes('<') ??
  globalOptions.some(([flags]) => words(flags).includes(flag) && flags.includes('<'));

/** Whether a verb's command line has a flag, as its own or as every command. */
export const isOwn = (options: OptionTable, flag: string): boolean =>
  specOf(options, flag)?.configOnly === undefined && (specOf(options, flag) !== undefined || isGlobal(flag));

const isGlobal = (flag: string): boolean =>
  flag === '--help' || globalOptions.some(([flags]) => words(flags).includes(flag));

/** The key of the configuration file that a row's option is for a verb. */
export function configKeyFor({ ours }: ForeignFlag, options: OptionTable): string | undefined {
  const spec = ours
    .map((template) => specOf(options, templateOption(template) ?? ''))
    .find((each) => each?.configOnly);
  return spec === undefined ? undefined : longName(spec);
}
