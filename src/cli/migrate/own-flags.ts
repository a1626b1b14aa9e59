import { longName, type OptionTable } from '../../base/options/option.js';
import { shellQuote } from '../../base/text/shell-line.js';
import { TrtforgeError } from '../../errors.js';
import type { Product } from '../command.js';
import { editors, type ForeignFlag, templateOption, templateWords } from '../foreign-flag.js';
import { globalOptions } from '../option.js';
import { type ReadFlag, toolOf } from './line.js';
import { isProfileEnd, profilesOf } from './shapes.js';
import { foreignFlags } from './tables.js';

/** The verb of a line, and its options. */
interface Chosen {
  readonly path: string;
  readonly options: OptionTable;
}

/** A flag that is not rewritten in silence. `ours`: what replaces it; undefined where nothing does. */
interface Answered {
  readonly row: ForeignFlag;
  readonly ours: readonly string[] | undefined;
  readonly value: string;
}

/**
 * The arguments with every flag of another tool under its own name; flags of the verb, and everything behind `--`, stay as they are. Throws TF_USAGE for a
 * flag without an equivalent. What has no row is commander's to reject.
 */
export async function withOwnFlags(
  args: readonly string[],
  /** The verb that the arguments begin with, or the first of them where there is none. */
  typed: string,
  products: readonly Product[],
): Promise<readonly string[]> {
  // The text after the name of a tool is the line to translate, without quotes too.
  if (typed === 'migrate') return beforeTool(args);
  const verb = products.flatMap(({ verbs }) => verbs).find(({ path }) => path === typed);
  if (verb === undefined) return args;
  const chosen = { path: typed, options: (await verb.load()).options };
  const words = typed.split(' ');
  const { own, answered } = rewritten(args.slice(words.length), await foreignFlags(products), chosen);
  const line = [...words, ...own];
  const first = answered.find(({ ours }) => ours === undefined) ?? answered[0];
  if (first === undefined) return line;
  const { row, ours } = first;
  const isNamed = row.verbs?.includes(typed) || configKeyFor(row, chosen.options) !== undefined;
  // An option of another verb is one that this verb does not have, and no flag of another tool.
  if (ours === undefined && !isNamed && (await isOfTrtforge(row.flag, products))) return args;
  throw await answer(first, answered, line, chosen);
}

async function isOfTrtforge(flag: string, products: readonly Product[]): Promise<boolean> {
  const verbs = await Promise.all(products.flatMap((product) => product.verbs).map(({ load }) => load()));
  return verbs.some(({ options }) => specOf(options, flag) !== undefined);
}

function rewritten(typed: readonly string[], rows: readonly ForeignFlag[], chosen: Chosen) {
  const { options } = chosen;
  const args = [...typed];
  const own: string[] = [];
  const defaults: string[] = [];
  const answered: Answered[] = [];
  const ranges: ReadFlag[] = [];
  let rangesAt: number | undefined;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (arg === '--') {
      own.push(...args.slice(i));
      break;
    }
    const { flag, inline } = flagOf(arg);
    const value = inline ?? args[i + 1];
    const candidates = rows.filter(
      (row) =>
        row.flag === flag &&
        isForVerb(row, chosen) &&
        (row.only === undefined ? !isKnown(options, flag) : row.only === value),
    );
    const takesNext = isFollowedByValue(options, flag) || candidates.some(({ takesValue }) => takesValue);
    if (takesNext && inline === undefined) assertNoFlag(flag, value ?? '', options);
    const found = equivalent(candidates, value, inline !== undefined, chosen);
    if (found === undefined) {
      own.push(arg);
      if (inline === undefined && isFollowedByValue(options, flag) && i + 1 < args.length)
        own.push(args[++i]!);
      continue;
    }
    if (found.row.takesValue !== undefined && inline === undefined) i++;
    // Of a flag with several values each counts as if it stood behind a flag of its own: `--show layers weights`.
    if (
      found.row.only !== undefined &&
      rows.some((row) => row.flag === flag && row.only === (args[i + 1] ?? ''))
    )
      args.splice(i + 1, 0, flag);
    while (found.row.takesValue === 'ranked' && found.row.values?.(args[i + 1] ?? '')) i++;
    if (found.ours === undefined || found.row.isExplained) answered.push(found);
    if (isProfileEnd(flag) && found.ours !== undefined) {
      rangesAt ??= own.length;
      ranges.push({ flag, row: found.row, values: found.ours.slice(1) });
    } else (found.row.isDefault ? defaults : own).push(...(found.ours ?? []));
  }
  own.splice(rangesAt ?? 0, 0, ...profilesOf(ranges, []).flatMap((profile) => ['--profile', profile]));
  // The last of two counts.
  return { own: [...defaults, ...own], answered };
}

/** Throws TF_USAGE where a flag of the verb stands in the place of a value: commander would take it for that. */
function assertNoFlag(flag: string, value: string, options: OptionTable): void {
  if (!isOwn(options, flagOf(value).flag)) return;
  throw new TrtforgeError('TF_USAGE', `${flag} has no value: ${value} behind it is an option.`, {
    remedy: 'Write a value behind it, or "=" between the two where that is the value.',
    details: { option: flag },
  });
}

/** Flags of a script or an editor of graphs, and values that are foreign, are so to the verbs that are named; elsewhere they are as unknown as any other. */
const isForVerb = ({ of, only, verbs }: ForeignFlag, { path }: Chosen): boolean =>
  (!of.endsWith(' script') && !editors.has(of) && only === undefined) ||
  verbs === undefined ||
  verbs.includes(path);

const remedyOf = (line: readonly string[]): string => `Run: trtforge ${line.map(shellQuote).join(' ')}`;

function beforeTool(args: readonly string[]): readonly string[] {
  const at = args.findIndex((arg) => !/\s/.test(arg) && toolOf(arg) !== undefined);
  return at < 0 || args.slice(0, at).includes('--') ? args : args.toSpliced(at, 0, '--');
}

const flagOf = (arg: string): { readonly flag: string; readonly inline?: string } => {
  const at = arg.startsWith('--') ? arg.indexOf('=') : -1;
  return at < 0 ? { flag: arg } : { flag: arg.slice(0, at), inline: arg.slice(at + 1) };
};

/** The row whose replacement the verb takes, of several one that names it, else one that is for the verb, else the first one; undefined where no row reads the flag as it is written. */
function equivalent(
  rows: readonly ForeignFlag[],
  value: string | undefined,
  isInline: boolean,
  { path, options }: Chosen,
): Answered | undefined {
  const readable = rows.filter(({ takesValue }) =>
    takesValue === undefined ? !isInline : value !== undefined,
  );
  const found = readable.map((row) => ({
    row,
    ours: oursFor(row, value ?? '', path, options),
    value: value ?? '',
  }));
  const isNamed = ({ row }: Answered) => row.verbs?.includes(path) === true;
  const replaced = found.filter(({ ours }) => ours !== undefined);
  return replaced.find(isNamed) ?? replaced[0] ?? found.find(isNamed) ?? found[0];
}

async function answer(
  { row, ours }: Answered,
  all: readonly Answered[],
  line: readonly string[],
  { path, options }: Chosen,
): Promise<TrtforgeError> {
  const details = { flag: row.flag, of: row.of, ours: ours ?? null };
  if (ours !== undefined)
    return new TrtforgeError(
      'TF_USAGE',
      `${[row.flag, row.only].join(' ').trim()} is ${ours.map(shellQuote).join(' ') || 'the default'}: ${row.why}.`,
      { remedy: remedyOf(line), details },
    );
  const passed = new Map(all.map(({ row: { flag }, value }) => [flag, value]));
  const instead = await row.instead?.(passed, `trtforge ${line.map(shellQuote).join(' ')}`, options);
  if (instead !== undefined)
    return new TrtforgeError('TF_USAGE', `${row.flag} of ${row.of} is written otherwise here: ${row.why}.`, {
      remedy: `Run: ${instead}`,
      details,
    });
  const isKnown = row.ours.some((each) => each.startsWith('-')) && row.values === undefined;
  return new TrtforgeError(
    'TF_USAGE',
    `\`trtforge ${path}\` has no equivalent of ${row.flag} of ${row.of}${isKnown ? `, which elsewhere is ${row.ours.join(' or ')}` : ''}: ${row.why}.`,
    { remedy: remedyFor(row, configKeyFor(row, options)), details },
  );
}

function remedyFor({ flag, ours, removed }: ForeignFlag, key: string | undefined): string {
  if (key !== undefined)
    return `Write \`${key}: …\` into trtforge.config.yaml, or convert the model first: \`trtforge convert MODEL -o MODEL.onnx\`.`;
  if (removed && ours.length === 0)
    return `Remove ${flag}, and convert the model first: trtforge convert MODEL -o MODEL.int8.onnx --precision int8 --calibration SAMPLES`;
  return `Remove ${flag}. docs/migrating.md lists every flag; \`trtforge migrate\` translates whole lines.`;
}

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

/** The option that a flag is of a verb. */
export const specOf = (options: OptionTable, flag: string): OptionTable[string] | undefined =>
  Object.values(options).find(({ flags }) => words(flags).includes(flag));

/** Whether a flag of a verb, or of every command, has a value in the next argument. */
export const isFollowedByValue = (options: OptionTable, flag: string): boolean =>
  specOf(options, flag)?.flags.includes('<') ??
  globalOptions.some(([flags]) => words(flags).includes(flag) && flags.includes('<'));

/** Whether a flag is of a verb or of every command; on the command line, or as a key of the configuration file, which is another answer. */
const isKnown = (options: OptionTable, flag: string): boolean =>
  flag === '--help' ||
  specOf(options, flag) !== undefined ||
  globalOptions.some(([flags]) => words(flags).includes(flag));

/** Whether a verb's command line has a flag, as its own or as every command. */
export const isOwn = (options: OptionTable, flag: string): boolean =>
  specOf(options, flag)?.configOnly === undefined && isKnown(options, flag);

/** The key of the configuration file that a row's option is for a verb. */
export function configKeyFor({ ours }: ForeignFlag, options: OptionTable): string | undefined {
  const spec = ours
    .map((template) => specOf(options, templateOption(template) ?? ''))
    .find((each) => each?.configOnly);
  return spec === undefined ? undefined : longName(spec);
}
