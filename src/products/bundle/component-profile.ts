import { type ProfileRequest, resolveProfiles } from '../../engines/identity/profile.js';
import type { ProfileRange } from '../../engines/identity/recipe.js';
import { TrtforgeError } from '../../errors.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import type { Component } from './component.js';
import { type AxisRole, roleOfWord } from './layout-contract.js';
import type { BundleMeta } from './meta.js';
import type { ProfilesFile, SizeRange } from './profiles-file.js';

/** What a user may say of one range: any of its ends. */
export type RangeRequest = { readonly [End in keyof SizeRange]?: number | undefined };

/** Ranges by component and by what an axis runs along; `batch` is one for the whole bundle. */
export interface ProfileOptions {
  readonly batch?: RangeRequest | undefined;
  readonly encoderTime?: RangeRequest | undefined;
  readonly predictorTokens?: RangeRequest | undefined;
  readonly jointTime?: RangeRequest | undefined;
  readonly jointTokens?: RangeRequest | undefined;
  readonly file?: ProfilesFile | undefined;
}

const ONE: SizeRange = { min: 1, opt: 1, max: 1 };
/** Frames of features for the encoder, of encoder output for the joint network. */
const TIME: SizeRange = { min: 16, opt: 64, max: 256 };
const TOKENS: SizeRange = { min: 1, opt: 1, max: 8 };

type RangeName = keyof Omit<ProfileOptions, 'file'>;

/** By component and role: the range when nobody says otherwise, and the option that overrules it. */
const usual: Readonly<Record<string, Partial<Record<AxisRole, readonly [SizeRange, RangeName]>>>> = {
  encoder: { batch: [ONE, 'batch'], time: [TIME, 'encoderTime'] },
  predictor: { batch: [ONE, 'batch'], tokens: [TOKENS, 'predictorTokens'] },
  joint: { batch: [ONE, 'batch'], time: [TIME, 'jointTime'], tokens: [TOKENS, 'jointTokens'] },
};

/** What the axes of well-known inputs run along. */
const axesOfInputs: Readonly<Record<string, readonly (AxisRole | null)[]>> = {
  audio_signal: ['batch', null, 'time'],
  length: ['batch'],
  y: ['batch', 'tokens'],
  targets: ['batch', 'tokens'],
  h: [null, 'batch', null],
  c: [null, 'batch', null],
  encoder_output: ['batch', null, 'time'],
  encoder_outputs: ['batch', null, 'time'],
  predictor_output: ['batch', null, 'tokens'],
  decoder_outputs: ['batch', null, 'tokens'],
};

/**
 * The optimization profile of a component, for every input with open dimensions. A range is, first of these: an input's in the profiles file, a flag's, a
 * symbol's in the profiles file, the usual one for what the axis runs along (by the meta file's contract, the input's name, the symbol).
 * Throws TF_PROFILE_MISSING for dimensions that nothing is known of, and what `resolveProfiles` throws: inputs that share a symbol must agree.
 */
export function profileOf(component: Component, meta: BundleMeta, requested: ProfileOptions): ProfileRequest {
  const profile = new Map<string, ProfileRange>();
  const unknown: string[] = [];
  const said = requested.file?.components?.get(component.name);
  for (const input of component.inputs) {
    const whole = said?.inputs.get(input.name);
    if (whole !== undefined) {
      profile.set(input.name, whole);
      continue;
    }
    const { shape } = input;
    if (shape === null) {
      unknown.push(`«${input.name}» (any rank)`);
      continue;
    }
    if (shape.every((size) => typeof size === 'number')) continue;
    const ranges = shape.map((size, axis) =>
      typeof size === 'number'
        ? fixed(size)
        : rangeOfAxis({ component, meta, requested, input, axis, symbol: size }),
    );
    for (const [axis, range] of ranges.entries())
      if (range === undefined)
        unknown.push(`«${input.name}» axis ${axis} (${shape[axis] ?? 'without a name'})`);
    profile.set(input.name, profileRange(ranges.map((range) => range ?? ONE)));
  }
  const strangers = [...(said?.inputs.keys() ?? [])].filter(
    (name) => !profile.has(name) || !component.inputs.some((input) => input.name === name),
  );
  for (const name of strangers) profile.set(name, said!.inputs.get(name)!);
  if (unknown.length > 0) throw missing(component, unknown);
  if (profile.size > 0) named(component, () => resolveProfiles(component.inputs, [profile]));
  return profile;
}

/** A symbol in the profiles file that no dimension has was misspelt, and its range would be passed over. Throws TF_PROFILE_INVALID. */
export function checkSymbols(components: readonly Component[], file: ProfilesFile | undefined): void {
  if (file === undefined) return;
  checkAmong(components, file.symbols, 'bundle');
  for (const component of components)
    checkAmong([component], file.components?.get(component.name)?.symbols ?? new Map(), component.name);
}

function checkAmong(
  components: readonly Component[],
  said: ReadonlyMap<string, SizeRange>,
  what: string,
): void {
  const sizes = components.flatMap(({ inputs }) => inputs.flatMap(({ shape }) => shape ?? []));
  const known = new Set(sizes.filter((size) => typeof size === 'string'));
  const wrong = [...said.keys()].find((symbol) => !known.has(symbol));
  if (wrong === undefined) return;
  throw new TrtforgeError('TF_PROFILE_INVALID', `No dimension of the ${what} is called «${wrong}».`, {
    remedy:
      known.size === 0
        ? 'None has a name; give whole shapes under inputs.'
        : `Those with a name are ${[...known].join(', ')}.`,
  });
}

interface OpenAxis {
  readonly component: Component;
  readonly meta: BundleMeta;
  readonly requested: ProfileOptions;
  readonly input: ValueFacts;
  readonly axis: number;
  readonly symbol: string | null;
}

function rangeOfAxis(open: OpenAxis): SizeRange | undefined {
  const { component, requested, symbol } = open;
  const role = roleOfAxis(open);
  const [base, wish] = (role === undefined ? undefined : usual[component.name]?.[role]) ?? otherwise(role);
  const said = symbol === null ? undefined : fromFile(component.name, symbol, requested.file);
  const range = said ?? base;
  if (range === undefined) return undefined;
  const flags = wish === undefined ? undefined : requested[wish];
  const merged = {
    min: flags?.min ?? range.min,
    opt: flags?.opt ?? range.opt,
    max: flags?.max ?? range.max,
  };
  if (merged.min <= merged.opt && merged.opt <= merged.max) return merged;
  throw new TrtforgeError(
    'TF_PROFILE_INVALID',
    `The ${role ?? symbol} range of the ${component.name} would be ${merged.min}/${merged.opt}/${merged.max}; minimum, optimum and maximum must ascend.`,
    { remedy: 'Give all three ends together where one passes another.' },
  );
}

/** In components of other names only the batch has a usual range. */
const otherwise = (role: AxisRole | undefined): readonly [SizeRange | undefined, RangeName | undefined] =>
  role === 'batch' ? [ONE, 'batch'] : [undefined, undefined];

const fromFile = (component: string, symbol: string, file: ProfilesFile | undefined): SizeRange | undefined =>
  file?.components?.get(component)?.symbols.get(symbol) ?? file?.symbols.get(symbol);

/** What an open axis runs along: the contract says it, or the well-known name of the input, or the symbol. */
export function roleOfAxis({
  component,
  meta,
  input,
  axis,
  symbol,
}: Omit<OpenAxis, 'requested'>): AxisRole | undefined {
  const layout = meta.layouts
    .get(`${component.name}_input`)
    ?.find(({ name, dims }) => name === input.name && dims.length === input.shape?.length);
  const word = layout?.dims[axis];
  return (
    (word === undefined ? undefined : roleOfWord(word)) ??
    axesOfInputs[input.name]?.[axis] ??
    (symbol === null ? undefined : roleOfWord(symbol))
  );
}

const fixed = (size: number): SizeRange => ({ min: size, opt: size, max: size });

const profileRange = (ranges: readonly SizeRange[]): ProfileRange => ({
  min: ranges.map(({ min }) => min),
  opt: ranges.map(({ opt }) => opt),
  max: ranges.map(({ max }) => max),
  values: false,
});

function missing({ name }: Component, unknown: readonly string[]): TrtforgeError {
  return new TrtforgeError(
    'TF_PROFILE_MISSING',
    `Nothing says how large these dimensions of the ${name} are: ${unknown.join(', ')}.`,
    {
      remedy: `Give ranges in a --profiles file, by the dimension's name or by input: components: { ${name}: { symbols: { NAME: MIN/OPT/MAX } } }.`,
      details: { component: name, dimensions: unknown },
    },
  );
}

/** The component's name in front of what the profile check says. */
function named<T>({ name }: Component, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    throw new TrtforgeError(error.code, `${name}: ${error.message}`, { remedy: error.remedy, cause: error });
  }
}
