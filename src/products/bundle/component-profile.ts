import type { ProfileRange } from '../../engines/identity/recipe.js';
import { type ProfileRequest, resolveProfiles } from '../../engines/profiles/profile.js';
import { profileRange, type SizeRange } from '../../engines/profiles/sizes.js';
import { suggestProfile } from '../../engines/profiles/suggest.js';
import { TrtforgeError } from '../../errors.js';
import { type AxisRole, type BundleMeta, roleOfAxisName } from '../../formats/contract/model-meta.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import type { Component } from './component.js';
import type { ProfilesFile } from './profiles-file.js';

/** Where ranges come from besides the defaults. */
export interface ProfileSources {
  /** One for the whole bundle. */
  readonly batch?: SizeRange | undefined;
  /** By the name of an open dimension, for every component. */
  readonly dims?: ReadonlyMap<string, SizeRange>;
  readonly file?: ProfilesFile;
}

const ONE: SizeRange = { min: 1, opt: 1, max: 1 };

/** Inputs whose axes are known by their names, and the exporter that names them so. */
interface KnownInput {
  readonly input: string;
  /** The role of each axis; null for a width. */
  readonly axes: readonly (AxisRole | null)[];
  readonly source: string;
}

const PARAKEET =
  "Parakeet TDT as three models with a model_meta.json, built by their exporter's trtexec tool";
const NEMO = 'NeMo, EncDecRNNTModel.export()';

const knownInputs: readonly KnownInput[] = [
  { input: 'audio_signal', axes: ['batch', null, 'time'], source: `${NEMO}; ${PARAKEET}` },
  { input: 'length', axes: ['batch'], source: `${NEMO}; ${PARAKEET}` },
  { input: 'y', axes: ['batch', 'tokens'], source: PARAKEET },
  { input: 'h', axes: [null, 'batch', null], source: PARAKEET },
  { input: 'c', axes: [null, 'batch', null], source: PARAKEET },
  { input: 'encoder_output', axes: ['batch', null, 'time'], source: PARAKEET },
  { input: 'predictor_output', axes: ['batch', null, 'tokens'], source: PARAKEET },
  { input: 'targets', axes: ['batch', 'tokens'], source: NEMO },
  { input: 'encoder_outputs', axes: ['batch', null, 'time'], source: NEMO },
  { input: 'decoder_outputs', axes: ['batch', null, 'tokens'], source: NEMO },
];

/** The roles of the axes of an input, by its name alone; undefined for other names. */
const axesOfInput = (name: string): readonly (AxisRole | null)[] | undefined =>
  knownInputs.find(({ input }) => input === name)?.axes;

/** Frames: features for the encoder, encoder output for the joint network. */
const TIME: SizeRange = { min: 16, opt: 64, max: 256 };
const TOKENS: SizeRange = { min: 1, opt: 1, max: 8 };

/** Ranges where neither the options nor the profiles file set one: the defaults of the same build tool. */
const defaultRanges: Readonly<Record<string, Partial<Record<AxisRole, SizeRange>>>> = {
  encoder: { time: TIME },
  predictor: { tokens: TOKENS },
  joint: { time: TIME, tokens: TOKENS },
};

/** The default range of an axis; in components of other names only the batch has one. */
export const defaultRange = (component: string, role: AxisRole): SizeRange | undefined =>
  role === 'batch' ? ONE : defaultRanges[component]?.[role];

/**
 * The optimization profile of a component, for every input with open dimensions. A range is, first of these: an input's in the profiles file, `dims`, `batch`,
 * a symbol's in the profiles file, the default for what the axis runs along (by the meta file's contract, the input's name, the symbol).
 * Throws TF_PROFILE_MISSING for dimensions without a range, and what `resolveProfiles` throws: inputs that share a symbol must agree.
 */
export function profileOf(component: Component, meta: BundleMeta, sources: ProfileSources): ProfileRequest {
  const profile = new Map<string, ProfileRange>();
  const unknown: string[] = [];
  const own = sources.file?.components?.get(component.name);
  for (const input of component.inputs) {
    const whole = own?.inputs.get(input.name);
    if (whole !== undefined) {
      profile.set(input.name, whole);
      continue;
    }
    const { shape } = input;
    if (shape === null) {
      unknown.push(`"${input.name}" (any rank)`);
      continue;
    }
    if (shape.every((size) => typeof size === 'number')) continue;
    const ranges = shape.map((size, axis) =>
      typeof size === 'number'
        ? fixed(size)
        : rangeOfAxis({ component, meta, sources, input, axis, symbol: size }),
    );
    for (const [axis, range] of ranges.entries())
      if (range === undefined)
        unknown.push(`"${input.name}" axis ${axis} (${shape[axis] ?? 'without a name'})`);
    profile.set(input.name, profileRange(ranges.map((range) => range ?? ONE)));
  }
  const unknownInputs = [...(own?.inputs.keys() ?? [])].filter(
    (name) => !profile.has(name) || !component.inputs.some((input) => input.name === name),
  );
  for (const name of unknownInputs) profile.set(name, own!.inputs.get(name)!);
  if (unknown.length > 0) throw missing(component, unknown);
  const suggest = () => ({ profile: suggestProfile(component.inputs), dims: null });
  if (profile.size > 0) named(component, () => resolveProfiles(component.inputs, [profile], suggest));
  return profile;
}

/** A symbol in the profiles file or among `dims` that no dimension has is misspelt, and its range would have no effect. Throws TF_PROFILE_INVALID. */
export function checkSymbols(
  components: readonly Component[],
  file: ProfilesFile | undefined,
  dims: ReadonlyMap<string, SizeRange> = new Map(),
): void {
  checkAmong(components, dims, 'bundle');
  if (file === undefined) return;
  checkAmong(components, file.symbols, 'bundle');
  for (const component of components)
    checkAmong([component], file.components?.get(component.name)?.symbols ?? new Map(), component.name);
}

function checkAmong(
  components: readonly Component[],
  ranges: ReadonlyMap<string, SizeRange>,
  what: string,
): void {
  const sizes = components.flatMap(({ inputs }) => inputs.flatMap(({ shape }) => shape ?? []));
  const known = new Set(sizes.filter((size) => typeof size === 'string'));
  const wrong = [...ranges.keys()].find((symbol) => !known.has(symbol));
  if (wrong === undefined) return;
  throw new TrtforgeError('TF_PROFILE_INVALID', `No dimension of the ${what} is called "${wrong}".`, {
    remedy:
      known.size === 0
        ? 'None has a name: write whole shapes under inputs.'
        : `Those with a name are ${[...known].join(', ')}.`,
  });
}

interface OpenAxis {
  readonly component: Component;
  readonly meta: BundleMeta;
  readonly sources: ProfileSources;
  readonly input: ValueFacts;
  readonly axis: number;
  readonly symbol: string | null;
}

function rangeOfAxis(open: OpenAxis): SizeRange | undefined {
  const { component, sources, symbol } = open;
  const role = roleOfAxis(open);
  const range =
    sources.dims?.get(symbol ?? '') ??
    (role === 'batch' ? sources.batch : undefined) ??
    (symbol === null ? undefined : fromFile(component.name, symbol, sources.file)) ??
    (role === undefined ? undefined : defaultRange(component.name, role));
  if (range === undefined || (range.min <= range.opt && range.opt <= range.max)) return range;
  throw new TrtforgeError(
    'TF_PROFILE_INVALID',
    `The ${role ?? symbol} range of the ${component.name} is ${range.min}/${range.opt}/${range.max}; minimum, optimum and maximum must ascend.`,
  );
}

const fromFile = (component: string, symbol: string, file: ProfilesFile | undefined): SizeRange | undefined =>
  file?.components?.get(component)?.symbols.get(symbol) ?? file?.symbols.get(symbol);

/** The role of an open axis: by the contract, the well-known name of the input, or the symbol. */
export function roleOfAxis({
  component,
  meta,
  input,
  axis,
  symbol,
}: Omit<OpenAxis, 'sources'>): AxisRole | undefined {
  const layout = meta.layouts
    .get(`${component.name}_input`)
    ?.find(({ name, dims }) => name === input.name && dims.length === input.shape?.length);
  const word = layout?.dims[axis];
  return (
    (word === undefined ? undefined : roleOfAxisName(word)) ??
    axesOfInput(input.name)?.[axis] ??
    (symbol === null ? undefined : roleOfAxisName(symbol))
  );
}

const fixed = (size: number): SizeRange => ({ min: size, opt: size, max: size });

function missing({ name }: Component, unknown: readonly string[]): TrtforgeError {
  return new TrtforgeError(
    'TF_PROFILE_MISSING',
    `These dimensions of the ${name} have no range: ${unknown.join(', ')}.`,
    {
      remedy: `Write ranges in a --profiles file, by the dimension's name or by input: components: { ${name}: { symbols: { NAME: MIN/OPT/MAX } } }.`,
      details: { component: name, dimensions: unknown },
    },
  );
}

/** Errors of the profile check begin with the component's name. */
function named<T>({ name }: Component, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    throw new TrtforgeError(error.code, `${name}: ${error.message}`, { remedy: error.remedy, cause: error });
  }
}
