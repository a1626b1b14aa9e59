import { shellWord } from '../base/process/shell-word.js';
import { TrtforgeError } from '../errors.js';
import type { Product } from './command.js';
import type { ForeignFlag } from './foreign/flag.js';
import { toolOf } from './foreign/line.js';
import { configKeyFor, foreignFlags, isFollowedByValue, isOwn, oursFor } from './foreign/tables.js';
import type { OptionTable } from './option.js';

/** The chosen verb, and where rows come from. */
interface Chosen {
  readonly path: string;
  readonly options: OptionTable;
  readonly products: readonly Product[];
}

/** A flag that is not rewritten in silence. `ours`: what replaces it; undefined where nothing does. */
interface Answered {
  readonly row: ForeignFlag;
  readonly ours: readonly string[] | undefined;
}

/**
 * The arguments with every flag of another tool under its own name; flags of the verb, and everything behind `--`, stay as they are. Throws TF_USAGE for a
 * flag without an equivalent, and, with the whole new line, for one of an earlier release. A flag that has no row is commander's to reject.
 */
export function withOwnFlags(args: readonly string[], chosen: Chosen): readonly string[] {
  const { path, options, products } = chosen;
  // What follows the name of a tool is the line to translate, without quotes too.
  if (path === 'migrate') return beforeTool(args);
  const rows = foreignFlags(products);
  const at = path.split(' ').length;
  const own: string[] = args.slice(0, at);
  const answered: Answered[] = [];
  for (let i = at; i < args.length; i++) {
    const arg = args[i]!;
    if (arg === '--') {
      own.push(...args.slice(i));
      break;
    }
    const { flag, inline } = flagOf(arg);
    const value = inline ?? args[i + 1];
    const candidates = rows.filter(
      (row) => row.flag === flag && (isOwn(options, flag) ? row.only === value : row.only === undefined),
    );
    const found = equivalent(candidates, value, inline !== undefined, chosen);
    if (found === undefined) {
      own.push(arg);
      if (inline === undefined && isFollowedByValue(options, flag) && i + 1 < args.length)
        own.push(args[++i]!);
      continue;
    }
    if (found.row.takesValue !== undefined && inline === undefined) i++;
    if (found.ours === undefined || found.row.of === 'trtforge') answered.push(found);
    own.push(...(found.ours ?? []));
  }
  if (answered.length > 0) throw answer(answered, own, chosen);
  return own;
}

function beforeTool(args: readonly string[]): readonly string[] {
  const at = args.findIndex((arg) => !/\s/.test(arg) && toolOf(arg) !== undefined);
  return at < 0 || args.slice(0, at).includes('--') ? args : args.toSpliced(at, 0, '--');
}

const flagOf = (arg: string): { readonly flag: string; readonly inline?: string } => {
  const at = arg.startsWith('--') ? arg.indexOf('=') : -1;
  return at < 0 ? { flag: arg } : { flag: arg.slice(0, at), inline: arg.slice(at + 1) };
};

/** The row whose replacement the verb takes, else the first one; undefined where no row reads the flag as it is written. */
function equivalent(
  rows: readonly ForeignFlag[],
  value: string | undefined,
  isInline: boolean,
  { path, options }: Chosen,
): Answered | undefined {
  const readable = rows.filter(({ takesValue }) =>
    takesValue === undefined ? !isInline : value !== undefined,
  );
  const found = readable.map((row) => ({ row, ours: oursFor(row, value ?? '', path, options) }));
  return found.find(({ ours }) => ours !== undefined) ?? found[0];
}

function answer(
  answered: readonly Answered[],
  own: readonly string[],
  { path, options }: Chosen,
): TrtforgeError {
  const first = answered.find(({ ours }) => ours === undefined) ?? answered[0]!;
  const { row, ours } = first;
  const whose = row.of === 'trtforge' ? 'an earlier release' : row.of;
  const details = { flag: row.flag, of: row.of, ours: ours ?? null };
  if (ours !== undefined)
    return new TrtforgeError(
      'TF_USAGE',
      `${row.flag} of ${whose} is now ${ours.map(shellWord).join(' ') || 'the default'}: ${row.why}.`,
      { remedy: `Run: trtforge ${own.map(shellWord).join(' ')}`, details },
    );
  const isKnown = row.ours.some((each) => each.startsWith('-')) && row.values === undefined;
  return new TrtforgeError(
    'TF_USAGE',
    `\`trtforge ${path}\` has no equivalent of ${row.flag} of ${whose}${isKnown ? `, which elsewhere is ${row.ours.join(' or ')}` : ''}: ${row.why}.`,
    { remedy: remedyFor(row, configKeyFor(row, options)), details },
  );
}

function remedyFor({ flag, ours, removed }: ForeignFlag, key: string | undefined): string {
  if (key !== undefined)
    return `Write \`${key}: …\` into trtforge.config.yaml, or convert the model first: trtforge convert.`;
  if (removed && ours.length === 0)
    return `Remove ${flag}, and build a quantized model, or FP16: trtforge convert MODEL -o MODEL.fp16.onnx --precision fp16.`;
  return `Remove ${flag}. docs/migrating.md lists every flag; \`trtforge migrate\` translates whole lines.`;
}
