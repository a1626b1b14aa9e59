import type { OptionTable } from '../../base/options/option.js';
import { shellQuote } from '../../base/text/shell-line.js';
import { didYouMean } from '../../base/text/suggest-name.js';
import { TrtforgeError } from '../../errors.js';
import { defaultFormat } from '../../formats/precision/formats/index.js';
import type { ArgumentSpec, Product } from '../command.js';
import { editors, type ForeignFlag, type Tool } from '../foreign-flag.js';
import { parseValue } from '../resolve.js';
import { type ForeignLine, type ReadFlag, readLine, toolOf } from './line.js';
import { isFollowedByValue, isOwn, oursFor, specOf, withOwnFlags } from './own-flags.js';
import { isProfileFlag } from './shapes.js';
import {
  conversionOf,
  convertedFirst,
  isPattern,
  isTyped,
  quantizationOf,
  stepsOf,
  yoloSettings,
} from './steps.js';
import { foreignFlags } from './tables.js';

export interface MigratedFlag {
  /** As it was written, with its value. */
  readonly flag: string;
  readonly ours: string | null;
  readonly why: string;
}

interface OwnLine {
  readonly words: readonly string[];
  readonly why: string;
}

export interface Migration {
  /** Together they do what the line does. */
  readonly lines: readonly OwnLine[];
  /** Lines that may be used instead. */
  readonly alternatives: readonly OwnLine[];
  readonly flags: readonly MigratedFlag[];
}

/** Flags that the plan of a line handles by itself; the rows fill in the rest. */
const structural = new Set([
  ...['--onnx', '--saveEngine', '--loadEngine', '--shapes', '--getPlanVersionOnly'],
  ...['--output', '--save-engine', '--save-outputs', '--save-results', '--load-outputs', '--load-results'],
  ...['--input-shapes', '--inputs', '--trt', '--onnxrt', '--onnx_path', '--output_path'],
]);

/** Flags whose values the plan of a line puts behind an option in another form. */
const spelledOtherwise: Readonly<Record<string, string>> = {
  '--check': '--check-command',
  '--show': '--nodes',
};
const cuts: Readonly<Record<string, string>> = { '--inputs': '--extract', '--outputs': '--extract' };

/** Arguments that a tool reads by their place. */
const placesOf: Partial<Record<Tool, number>> = {
  polygraphy: 1,
  'polygraphy surgeon': 1,
  onnxsim: 3,
  onnxslim: 2,
};

/** Verbs that convert before they build; elsewhere a precision is another option. */
const typed = new Set(['build', 'convert', 'forge']);

/** The lines of trtforge that do what a line of another tool does, and what became of each flag. Throws TF_USAGE for a line without an equivalent. */
export async function migrate(
  line: ForeignLine,
  products: readonly Product[],
  known: readonly ForeignFlag[],
): Promise<Migration> {
  const lines = await writtenLines(line, products);
  const codes = quantizationOf(line);
  const isConverted = convertedFirst(line) !== undefined && lines.some(({ path }) => path === 'convert');
  const converts = isConverted ? new Set(['convert']) : typed;
  for (const { path, words } of lines)
    if (codes !== undefined && converts.has(path)) words.push(...codes.words);
  const [script] = line.tool.endsWith(' script') ? lines : [];
  const translation: Translation = { line, lines, script, codes, converts };
  const flags = line.flags.map((read) => migratedFlag(read, translation, known));
  const conversion = conversionOf(line);
  const isYolo = line.tool === 'yolo';
  const unread = isYolo ? [] : line.inputs.slice(placesOf[line.tool] ?? 0);
  const settings = isYolo ? yoloSettings(line) : [];
  return {
    lines: lines.map((each) => ({ words: completed(each), why: each.why })),
    alternatives: conversion === undefined ? [] : [conversion],
    flags: [
      ...flags,
      ...settings.map(({ setting, words, why }) => ({ flag: setting, ours: words?.join(' ') ?? null, why })),
      ...unread.map((flag) => ({ flag, ours: null, why: `${line.tool} reads no such argument` })),
    ],
  };
}

/** A line on its way. */
interface WrittenLine {
  readonly words: string[];
  readonly path: string;
  readonly options: OptionTable;
  readonly places: readonly ArgumentSpec[];
  readonly why: string;
}

/** A line of another tool, and the lines of trtforge that are made of it. */
interface Translation {
  readonly line: ForeignLine;
  readonly lines: readonly WrittenLine[];
  /** The line that replaces a script; its flags are options of the verb. */
  readonly script: WrittenLine | undefined;
  readonly codes: ReturnType<typeof quantizationOf>;
  /** Verbs that convert. */
  readonly converts: ReadonlySet<string>;
}

/** The lines as they are planned, before flags are added. */
async function writtenLines(
  line: ForeignLine,
  products: readonly Product[],
): Promise<readonly WrittenLine[]> {
  const lines: WrittenLine[] = [];
  for (const { path, args, why } of stepsOf(line)) {
    const verb = products.flatMap(({ verbs }) => verbs).find((each) => each.path === path);
    const { options = {}, arguments: places = [] } = (await verb?.load()) ?? {};
    lines.push({ words: [...path.split(' '), ...args], why, path, options, places });
  }
  return lines;
}

/** What became of a flag; adds it to the lines that have an option for it. */
function migratedFlag(read: ReadFlag, translation: Translation, known: readonly ForeignFlag[]): MigratedFlag {
  const { line, script } = translation;
  const { flag, values } = read;
  const written = [flag, values.join(' ')]
    .filter((text) => text !== '')
    .join(line.tool === 'trtexec' ? '=' : ' ');
  const row = read.row ?? (script && known.find((each) => isForScript(each, read, script)));
  if (row === undefined && script !== undefined) return ownFlag(read, written, script);
  if (row === undefined) {
    const names = known.filter(({ of }) => of === line.tool).map((each) => each.flag);
    const why = `not a flag of ${line.tool} that trtforge knows.${didYouMean(flag, names)}`;
    return { flag: written, ours: null, why };
  }
  const planned = plannedFlag(read, row, translation);
  return { flag: written, ...(planned ?? { ours: addToEach(read, row, translation), why: row.why }) };
}

/** Whether a row of another tool states what a flag of a script is for the verb in its place. */
const isForScript = (row: ForeignFlag, { flag, values }: ReadFlag, { path, options }: WrittenLine): boolean =>
  row.flag === flag && !isOwn(options, flag) && oursFor(row, values[0] ?? '', path, options) !== undefined;

/** What became of a flag that the plan of the line handles by itself; undefined for others. */
function plannedFlag(
  read: ReadFlag,
  { why }: ForeignFlag,
  { line, lines, codes }: Translation,
): Omit<MigratedFlag, 'flag'> | undefined {
  const { flag, values } = read;
  const isEdit = editors.has(line.tool);
  const option = isEdit ? cuts[flag] : spelledOtherwise[flag];
  if (option !== undefined && isEdit && values.some(isPattern))
    return { ours: null, why: 'tensors are named one by one: `trtforge inspect --nodes .` lists them' };
  if (option !== undefined) {
    const words = lines.flatMap((each) => each.words);
    const at = words.indexOf(option);
    return { ours: at < 0 ? '' : words.slice(at, at + 2).join(' '), why };
  }
  if (!isEdit && (structural.has(flag) || isProfileFlag(flag))) return { ours: placed(read, lines), why };
  if (flag === codes?.flag) return { ours: codes.words.join(' '), why };
  return codes !== undefined && flag === `--${defaultFormat.id}`
    ? { ours: '', why: 'what is around quantized nodes is FP16: --high-precision of convert' }
    : undefined;
}

/** Adds what a flag is to the lines that have it; returns what the first of them got, null without one. */
function addToEach(
  { values }: ReadFlag,
  row: ForeignFlag,
  { line, lines, script, converts }: Translation,
): string | null {
  let ours: readonly string[] | undefined;
  for (const each of lines) {
    if (row.removed && script === undefined && (isTyped(line) || !converts.has(each.path))) continue;
    const added = addTo(each, row, row.takesValue === 'ranked' ? values.slice(0, 1) : values);
    ours ??= added;
  }
  return ours === undefined ? null : ours.join(' ');
}

/** The words with what the verb needs and the line of the other tool does not name, under the names of its help. */
function completed({ words, path, options, places }: WrittenLine): readonly string[] {
  const at = path.split(' ').length;
  const rest = words.slice(at);
  const named = rest.filter(
    (word, i) => !word.startsWith('-') && !isFollowedByValue(options, rest[i - 1] ?? ''),
  );
  const missing = places.filter(({ optional }) => !optional).slice(named.length);
  const needed = Object.values(options).filter(
    (spec) => spec.required !== undefined && !rest.some((word) => specOf(options, word) === spec),
  );
  return [
    ...words.slice(0, at),
    ...missing.map(({ name }) => name),
    ...rest,
    ...needed.flatMap(({ required = '' }) => required.split(' ')),
  ];
}

/** A flag of a script that trtforge's verb has under the same name. */
function ownFlag({ flag, values }: ReadFlag, written: string, line: WrittenLine): MigratedFlag {
  const spec = specOf(line.options, flag);
  if (!isOwn(line.options, flag))
    return { flag: written, ours: null, why: `\`trtforge ${line.path}\` has no such option` };
  try {
    for (const value of values) if (spec !== undefined) parseValue(spec, flag, value);
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    return { flag: written, ours: null, why: error.message };
  }
  line.words.push(flag, ...values);
  return { flag: written, ours: written, why: 'the same' };
}

/** Adds what a flag is for a verb; what is there already, or contradicts it, is not added. */
function addTo(
  line: WrittenLine,
  row: ForeignFlag,
  values: readonly string[],
): readonly string[] | undefined {
  const all = (values.length === 0 ? [''] : values).map((value) =>
    oursFor(row, value, line.path, line.options),
  );
  if (all.some((each) => each === undefined)) return undefined;
  const words = all.flatMap((each) => each ?? []);
  const [option, value] = words;
  const isRepeatable = option === '--builder-config' || row.takesValue === 'many';
  const stands = option === undefined || isRepeatable ? -1 : line.words.indexOf(option);
  if (stands >= 0) return value === undefined || line.words[stands + 1] === value ? words : undefined;
  // An edit folds last, under the sizes that are set.
  const fold = line.path === 'edit' ? line.words.indexOf('--fold') : -1;
  line.words.splice(fold < 0 ? line.words.length : fold, 0, ...words);
  return words;
}

/** Where the plan of the line put a flag: its value in one of the lines. */
function placed({ values, flag }: ReadFlag, lines: readonly { readonly words: readonly string[] }[]): string {
  const all = lines.flatMap(({ words }) => words);
  if (isProfileFlag(flag)) {
    const profiles = all.flatMap((word, i) => (word === '--profile' ? [`--profile ${all[i + 1]}`] : []));
    return profiles.join(' ');
  }
  const at = all.findIndex((word) => values.includes(word));
  if (at < 0) return '';
  const option = all[at - 1];
  return option?.startsWith('-') ? `${option} ${all[at]}` : (all[at] ?? '');
}

/** Verbs of other programs: what does their work here, and what follows the user's arguments. */
const theirs: Readonly<Record<string, readonly [verb: string, ...rest: readonly string[]]>> = {
  export: ['forge'],
  compile: ['build'],
  optimize: ['build'],
  predict: ['run', '--inputs', 'random'],
  infer: ['run', '--inputs', 'random'],
  profile: ['bench'],
  benchmark: ['bench'],
  quantize: ['convert', '--precision', 'int8', '--calibration', 'samples/'],
  check: ['inspect'],
  info: ['inspect'],
  simplify: ['edit', '--fold'],
  slim: ['edit', '--fold'],
};

/** Verbs that cannot work while a dimension is open. */
const sized = new Set(['build', 'forge']);

/**
 * Throws TF_USAGE, with the line to run, for arguments that begin with another program, with one of its verbs, or with flags of trtexec. Does nothing for
 * other arguments.
 */
export async function rejectOtherVerb(args: readonly string[], products: readonly Product[]): Promise<void> {
  const lines = await linesFor(args, products);
  if (lines.length === 0) return;
  const commands = await Promise.all(lines.map(async (line) => ['trtforge', ...(await withRanges(line))]));
  const typed = commands.map((words) => words.map(shellQuote).join(' '));
  throw new TrtforgeError('TF_USAGE', `\`${args[0]}\` is not a command of trtforge.`, {
    remedy: `Run: ${typed.join(' && ')}`,
    details: { lines: typed },
  });
}

async function linesFor(
  args: readonly string[],
  products: readonly Product[],
): Promise<readonly (readonly string[])[]> {
  const [first = '', ...rest] = args;
  const [verb, ...more] = (Object.hasOwn(theirs, first) ? theirs[first] : undefined) ?? [];
  const line = [
    ...(first === 'export' && rest.some((word) => word.startsWith('model=')) ? ['yolo'] : []),
    ...(/^--(?:onnx|loadEngine)\b/.test(first) ? ['trtexec'] : []),
    ...args,
  ];
  if (/^python[\d.]*$/.test(first) || toolOf(line[0] ?? '') !== undefined) {
    const rows = await foreignFlags(products);
    const { lines } = await migrate(readLine(line, rows), products, rows);
    return lines.map(({ words }) => words);
  }
  if (verb === undefined) return [];
  const path = verb === 'bench' && rest.some((word) => word.endsWith('.onnx')) ? 'bench model' : verb;
  // Of `predict model=m.onnx source=0` the model is what has a place here.
  const own = rest.flatMap(
    (word) => /^model=(.+)/.exec(word)?.slice(1) ?? (/^\w+=/.test(word) ? [] : [word]),
  );
  return [await withOwnFlags([...path.split(' '), ...own, ...more], path, products)];
}

/** The line with a profile where its model leaves dimensions open and nothing sets them. */
async function withRanges(line: readonly string[]): Promise<readonly string[]> {
  const model = line.find((word) => word.endsWith('.onnx'));
  if (
    !sized.has(line[0] ?? '') ||
    model === undefined ||
    line.some((word) => /^--(?:profile|batch|dim)/.test(word))
  )
    return line;
  const { suggestFor } = await import('../../engines/builder/resolve-build.js');
  try {
    const { profile } = suggestFor(model);
    return profile === null ? line : [...line, '--profile', profile];
  } catch (error) {
    // The line itself reports what is wrong with the model.
    if (error instanceof TrtforgeError) return line;
    throw error;
  }
}
