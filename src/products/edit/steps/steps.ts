import * as is from '../../../base/options/kinds.js';
import { checkArguments } from '../../../base/options/library-arguments.js';
import { longName, needed, optional } from '../../../base/options/option.js';
import { splitNames } from '../../../base/options/readers.js';
import { flag, option } from '../../../cli/option.js';
import { TrtforgeError } from '../../../errors.js';
import type { AxisPlace } from '../../../formats/onnx/open-dimensions.js';
import { dropDead } from '../dead.js';
import type { Done, EditContext, Editing } from '../edited-model.js';
import { fold } from '../fold/fold.js';
import { narrowDoubles } from './doubles.js';
import {
  type AskedCut,
  type AskedName,
  type AskedType,
  changeTypes,
  dropOutputs,
  extract,
  markOutputs,
  renameValue,
} from './interface.js';
import { type AskedSize, renameSize, setSize } from './sizes.js';
import { inline, setIr, setOpset } from './versions.js';

/** One step of an edit; `text` is how it was passed. */
export interface Step {
  readonly text: string;
  readonly apply: (editing: Editing, context: EditContext) => Done | Promise<Done>;
}

type Apply<A> = (editing: Editing, asked: A, context: EditContext) => Done | Promise<Done>;

const applied =
  <A>(apply: Apply<A>) =>
  (asked: A, text: string): Step => ({
    text,
    apply: (editing, context) => apply(editing, asked, context),
  });

/** A step without a value. */
const plain = (flags: string, describe: string, apply: Apply<true>) => ({
  option: { ...flag({ flags, describe, group: 'Steps' }), kind: is.only(true) },
  of: applied(apply),
});

/** A step with a value, which may stand several times: text that `parse` reads, or data of a kind. */
const valued = <A>(
  flags: string,
  describe: string,
  kind: is.Kind<A>,
  parse: (text: string) => A,
  apply: Apply<A>,
) => {
  const [name = ''] = flags.split(' ');
  const of = applied(apply);
  const read = (text: string) => of(parse(text), `${name} ${text}`);
  return { option: { ...option({ flags, describe, group: 'Steps', parse: read, repeat: true }), kind }, of };
};

const renaming = is.object<AskedName>({ from: needed(is.text), to: needed(is.text) });
const place = is.object<AxisPlace>({ input: needed(is.text), axis: needed(is.whole(0)) });
const size = is.object<AskedSize>({
  dimension: needed(is.either(is.text, is.list(place))),
  becomes: needed(is.either(is.whole(1, 2 ** 31 - 1), is.text)),
});
const cut = is.object<AskedCut>({ inputs: optional(is.texts), outputs: optional(is.texts) });
const type = is.object<AskedType>({ name: optional(is.text), type: needed(is.words('float16', 'uint8')) });

/** Every step there is, in the order of --help. */
const steps = {
  fold: plain(
    '--fold',
    'compute what is constant once, also shapes; merge nodes and leave out those that do nothing',
    (editing, _, context) => fold(editing, context),
  ),
  setDim: valued(
    '--set-dim <dim=size>',
    'fix an open dimension: batch=1; of an axis: x:0=1; or open and name axes: x:0,mask:0=batch',
    size,
    parseSize,
    setSize,
  ),
  renameDim: valued(
    '--rename-dim <old=new>',
    'another name of an open dimension',
    renaming,
    parsePair,
    renameSize,
  ),
  rename: valued(
    '--rename <old=new>',
    'another name of an input or output',
    renaming,
    parsePair,
    renameValue,
  ),
  extract: valued(
    '--extract <inputs:outputs>',
    "leave what lies between tensors: a,b:c; nothing before or behind the colon: the model's own",
    cut,
    parseCut,
    extract,
  ),
  mark: valued(
    '--mark <tensors>',
    'make tensors outputs too, several by comma',
    is.texts,
    splitNames,
    markOutputs,
  ),
  dropOutput: valued(
    '--drop-output <names>',
    'leave outputs out with what they alone need, several by comma',
    is.texts,
    splitNames,
    dropOutputs,
  ),
  ioType: valued(
    '--io-type <type>',
    'float16 for float32 inputs and outputs, or uint8 for inputs, with casts; images:uint8 for one',
    type,
    parseType,
    changeTypes,
  ),
  float32: plain('--float32', 'make FP32 of what is float64, as TensorRT computes it', narrowDoubles),
  opset: valued(
    '--opset <number>',
    "another opset of ONNX's operators (13 to 25), where it is lossless",
    is.whole(1, 1000),
    is.whole(1, 1000).parse,
    setOpset,
  ),
  ir: valued(
    '--ir <number>',
    'another IR version, where it is lossless',
    is.whole(1, 1000),
    is.whole(1, 1000).parse,
    setIr,
  ),
  inline: plain('--inline', "replace calls of the model's functions by their nodes", inline),
  dead: plain('--dead', 'remove nodes, weights and functions that no output needs', (editing) =>
    dropDead(editing),
  ),
};

/** The options of the steps. */
export const stepOptions = Object.fromEntries(
  Object.entries(steps).map(([name, step]) => [name, step.option]),
) as { readonly [K in keyof typeof steps]: (typeof steps)[K]['option'] };

/** One step as data: `{ fold: true }`, `{ setDim: { dimension: 'batch', becomes: 1 } }`. */
export type EditStep = {
  [K in keyof typeof steps]: { readonly [P in K]: Parameters<(typeof steps)[P]['of']>[0] };
}[keyof typeof steps];

type AnyStep = (asked: unknown, text: string) => Step;

/** Throws TF_USAGE. */
export function stepOf(data: EditStep): Step {
  checkArguments([data], [stepOptions]);
  const [[name, asked] = ['', undefined], ...others] = Object.entries(data).filter(
    ([, value]) => value !== undefined,
  );
  if (name === '' || others.length > 0)
    throw new TrtforgeError('TF_USAGE', `A step has one option, and ${JSON.stringify(data)} has not.`, {
      remedy: `Pass each as a step of its own, one of ${Object.keys(steps).join(', ')}.`,
      details: { option: 'steps' },
    });
  return (steps[name as keyof typeof steps].of as AnyStep)(asked, `${name} ${JSON.stringify(asked)}`);
}

/** The steps in the order of the command line; those of a configuration file come first, in the order of --help. */
export function stepsOf(
  values: Readonly<Record<string, unknown>>,
  order: readonly string[],
): readonly Step[] {
  const taken = new Map<string, number>();
  const rows = Object.entries(steps).map(([key, step]) => {
    const value = values[key];
    const read = step.of as AnyStep;
    const all = Array.isArray(value)
      ? (value as readonly Step[])
      : value === true
        ? [read(true, step.option.flags)]
        : [];
    // A step without a value is the same each time.
    const next = (at: number) => (Array.isArray(value) ? all.slice(at, at + 1) : all);
    return [longName(step.option), { all, next }] as const;
  });
  const configured = rows.flatMap(([name, { all }]) => (order.includes(name) ? [] : all));
  const byName = new Map(rows);
  const typed = order.flatMap((name) => {
    const at = taken.get(name) ?? 0;
    taken.set(name, at + 1);
    return byName.get(name)?.next(at) ?? [];
  });
  return [...configured, ...typed];
}

const notWritten = (text: string, how: string) =>
  new TrtforgeError('TF_USAGE', `"${text}" is not written as ${how}.`, { remedy: `Write ${how}.` });

/** `old=new`; the last `=` separates. */
function parsePair(text: string): AskedName {
  const at = text.lastIndexOf('=');
  const [from = '', to = ''] = [text.slice(0, at), text.slice(at + 1)].map((part) => splitNames(part)[0]);
  if (at <= 0 || from === '' || to === '') throw notWritten(text, 'old=new');
  return { from, to };
}

/** `batch=1`, `x:0=1`, `x:0=batch`, `x:0,mask:0=batch`. */
function parseSize(text: string): AskedSize {
  const at = text.lastIndexOf('=');
  const { to: becomes } = parsePair(text);
  const size = /^\d+$/.test(becomes) ? Number(becomes) : becomes;
  const names = splitNames(text.slice(0, at));
  const places = names.flatMap((name): readonly AxisPlace[] => {
    const [, input, axis] = /^(.+):(\d+)$/.exec(name) ?? [];
    return input === undefined ? [] : [{ input, axis: Number(axis) }];
  });
  const isName = typeof size === 'string';
  if (places.length < names.length && (isName || names.length > 1))
    throw notWritten(text, 'batch=1 or x:0=batch');
  if (!isName && !(size >= 1 && size < 2 ** 31)) throw notWritten(text, 'batch=1, with a size from 1 on');
  return { dimension: places.length === 0 ? names[0]! : places, becomes: size };
}

/** `a,b:c,d`; the only colon separates, or the one that stands outside quotes. */
function parseCut(text: string): AskedCut {
  const parts: readonly string[] = text.match(/(?:'[^']*'|"[^"]*"|[^:])+|:/g) ?? [];
  const at = parts.indexOf(':');
  const rest = parts.slice(at + 1).join('');
  if (at < 0 || parts.lastIndexOf(':') !== at || (at === 0 && rest === ''))
    throw notWritten(text, `inputs:outputs, names with a colon in quotes: 'a:0',b:c`);
  return { inputs: splitNames(parts.slice(0, at).join('')), outputs: splitNames(rest) };
}

/** `float16`, `uint8`, `images:uint8`. */
function parseType(text: string): AskedType {
  const [, name = null, type] = /^(?:(.+):)?(float16|uint8)$/.exec(text) ?? [];
  if (type === undefined) throw notWritten(text, 'float16, uint8 or images:uint8');
  return { name: name === null ? undefined : splitNames(name)[0], type: type as AskedType['type'] };
}
