import { parseDims } from '../../base/options/readers.js';
import { shellQuote } from '../../base/text/shell-line.js';
import { didYouMean } from '../../base/text/suggest-name.js';
import { type ErrorDetails, TrtforgeError } from '../../errors.js';
import type { Named } from '../../formats/contract/state.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import { isOtherThanBatch, isPlaceholder, openDimensions } from '../../formats/onnx/open-dimensions.js';
import { decidesShape, type ValueUses } from '../../formats/onnx/value-uses.js';
import type { Passport } from '../identity/passport.js';
import type { ProfileRange } from '../identity/recipe.js';
import type { Binding } from '../runtime/session.js';

/** One profile as it was asked for: input name to range, not yet compared with a model. */
export type ProfileRequest = ReadonlyMap<string, ProfileRange>;
export type Profile = Readonly<Record<string, ProfileRange>>;

export const ends = ['min', 'opt', 'max'] as const;
/** Of a tensor in TensorRT. */
const MOST_DIMENSIONS = 8;

/**
 * Reads one `--profile`: `x:1x3x224x224/8x3x224x224/32x3x224x224`, several inputs by comma. One shape instead of three stands for all;
 * `sizes=1x1/4x4/8x8` gives the values of a shape tensor instead of dimensions. Throws TF_SHAPE_INVALID.
 */
export function parseProfile(text: string): ProfileRequest {
  const profile = new Map<string, ProfileRange>();
  for (const part of text.match(/(?:'[^']*'|\[[^\]]*\]|[^,])+/g) ?? []) {
    const [, quoted, bare, sign, ranges] =
      /^\s*(?:'([^']+)'|(.*[^\s]))\s*([:=])\s*([^:=]+)$/.exec(part) ?? [];
    const name = quoted ?? bare;
    const shapes = (ranges ?? '').split('/').map(parseDims);
    const [min, opt = min, max = min] = shapes;
    if (name === undefined || !min || !opt || !max || (shapes.length !== 1 && shapes.length !== 3)) {
      throw new TrtforgeError('TF_SHAPE_INVALID', `"${part.trim()}" is not a profile range.`, {
        remedy: 'Write NAME:MIN/OPT/MAX, for example x:1x3x224x224/8x3x224x224/32x3x224x224.',
      });
    }
    if (profile.has(name))
      throw new TrtforgeError('TF_PROFILE_INVALID', `Input "${name}" occurs twice in one profile.`);
    profile.set(name, { min, opt, max, values: sign === '=' });
  }
  return profile;
}

/** The sizes at one end of one profile. */
export interface ProfileEnd {
  readonly profile: number;
  readonly end: (typeof ends)[number];
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  /** Of shape tensors. */
  readonly values: ReadonlyMap<string, readonly number[]>;
}

/** Every end of every profile, the optimum first; none twice. Inputs that declare no shape are scalars, as TensorRT takes them. */
export const profileEnds = (
  profiles: readonly Profile[],
  inputs: readonly Pick<ValueFacts, 'name' | 'shape'>[] = [],
): readonly ProfileEnd[] =>
  profiles.flatMap((profile, index) => {
    const ranges = Object.entries(profile);
    const seen = new Set<string>();
    return (['opt', 'min', 'max'] as const).flatMap((end): ProfileEnd[] => {
      const key = JSON.stringify(ranges.map(([, range]) => range[end]));
      if (seen.has(key)) return [];
      seen.add(key);
      const some = (values: boolean) =>
        new Map(ranges.flatMap(([name, range]) => (range.values === values ? [[name, range[end]]] : [])));
      const shapes = some(false);
      for (const { name, shape } of inputs) if (shape === null) shapes.set(name, []);
      return [{ profile: index, end, shapes, values: some(true) }];
    });
  });

/**
 * Checks profiles against the inputs of a model and returns them as the recipe keeps them: only inputs with open dimensions, since static
 * ones decide nothing, and of those that a request leaves out the ones whose symbols have their ranges elsewhere. Throws TF_PROFILE_INVALID for wrong names,
 * ranks, orders and symbols that disagree, and TF_PROFILE_MISSING, with what `suggest` gives, when an open dimension has no range: an engine for batch 1
 * that nobody asked for helps nobody. An input without a shape needs no range: TensorRT takes it for a scalar.
 */
export function resolveProfiles(
  inputs: readonly ValueFacts[],
  requests: readonly ProfileRequest[],
  suggest: () => Suggestion,
): readonly Profile[] {
  const open = inputs.filter(isOpen);
  const profiles = requests.map((request, index) => checkProfile(inputs, request, index));
  const missing = open.filter(
    ({ name }) => profiles.length === 0 || profiles.some((one) => !Object.hasOwn(one, name)),
  );
  if (missing.length > 0) throw missingRanges(missing, suggest());
  return open.length === 0 && profiles.every((one) => Object.keys(one).length === 0) ? [] : profiles;
}

/** Whether an input needs a range. */
export const isOpen = ({ shape }: Pick<Binding, 'shape'>): boolean =>
  shape?.some((dimension) => typeof dimension !== 'number') ?? false;

function checkProfile(inputs: readonly ValueFacts[], request: ProfileRequest, index: number): Profile {
  const symbols: Symbols = new Map();
  const profile: Record<string, ProfileRange> = {};
  for (const [name, range] of request) {
    const input = inputs.find((candidate) => candidate.name === name);
    if (input === undefined) throw unknownInput(name, inputs);
    checkOrder(name, range);
    if (!range.values) checkShape(input, range, symbols);
    if (range.values || isOpen(input)) profile[name] = range;
  }
  if (request.size === 0) throw invalid(`Profile ${index} names no input.`);
  for (const input of inputs.filter((each) => isOpen(each) && !request.has(each.name))) {
    const range = rangeBySymbols(input, symbols);
    if (range !== undefined) profile[input.name] = range;
  }
  return profile;
}

/** The range of an input that nobody gave one, where each of its open dimensions has its range at another input. */
function rangeBySymbols({ shape }: ValueFacts, symbols: Symbols): ProfileRange | undefined {
  const sizes = (shape ?? []).map((dimension) => {
    if (typeof dimension === 'number') return ends.map(() => dimension);
    return dimension === null || isPlaceholder(dimension) ? undefined : symbols.get(dimension)?.sizes;
  });
  if (!sizes.every((size) => size !== undefined)) return undefined;
  const [min, opt, max] = ends.map((_, end) => sizes.map((size) => size[end]!));
  return { min: min!, opt: opt!, max: max!, values: false };
}

function checkOrder(name: string, { min, opt, max }: ProfileRange): void {
  if (min.length !== opt.length || opt.length !== max.length) {
    throw invalid(
      `Minimum, optimum and maximum of input "${name}" have ${min.length}, ${opt.length} and ${max.length} dimensions.`,
    );
  }
  for (const [axis, low] of min.entries()) {
    const [middle, high] = [opt[axis]!, max[axis]!];
    if (low > middle || middle > high) {
      throw invalid(
        `Input "${name}" has minimum ${low}, optimum ${middle} and maximum ${high} on axis ${axis}; they must ascend.`,
      );
    }
  }
}

type Symbols = Map<string, { readonly sizes: readonly number[]; readonly where: string }>;

function checkShape({ name, shape }: ValueFacts, range: ProfileRange, symbols: Symbols): void {
  if (shape === null) {
    if (range.max.length === 0) return;
    throw invalid(`Input "${name}" has no declared shape, and TensorRT takes such an input for a scalar.`, {
      remedy: `Declare the shape of the input in the model, or remove ${name} from the profile.`,
    });
  }
  if (shape.length !== range.min.length) {
    throw invalid(
      `Input "${name}" has rank ${shape.length} (${shapeText(shape)}), the profile has ${range.min.length} dimensions.`,
    );
  }
  for (const [axis, dimension] of shape.entries()) {
    const sizes = ends.map((end) => range[end][axis]!);
    if (typeof dimension === 'number' && sizes.some((size) => size !== dimension)) {
      throw invalid(
        `Input "${name}" has the fixed size ${dimension} on axis ${axis}, the profile has ${sizes.join('/')}.`,
      );
    }
    if (typeof dimension === 'string' && !isPlaceholder(dimension))
      checkSymbol(dimension, sizes, `"${name}" axis ${axis}`, symbols);
  }
}

/** One symbol is one number at a time, so its ranges must be the same wherever it stands. */
function checkSymbol(symbol: string, sizes: readonly number[], where: string, symbols: Symbols): void {
  const before = symbols.get(symbol);
  if (before === undefined) symbols.set(symbol, { sizes, where });
  else if (before.sizes.some((size, index) => size !== sizes[index])) {
    throw invalid(
      `Dimension "${symbol}" is ${before.sizes.join('/')} at ${before.where} but ${sizes.join('/')} at ${where}; the model declares them the same.`,
    );
  }
}

function unknownInput(name: string, inputs: readonly ValueFacts[]): TrtforgeError {
  const names = inputs.map((input) => input.name);
  return new TrtforgeError('TF_PROFILE_INVALID', `The model has no input "${name}".`, {
    remedy: `${didYouMean(name, names)} Its inputs are ${names.map((one) => `"${one}"`).join(', ')}.`.trim(),
    details: { input: name, inputs: names },
  });
}

function missingRanges(missing: readonly ValueFacts[], { profile, dims }: Suggestion): TrtforgeError {
  const places = missing.map(({ name, shape }) => `"${name}" (${shapeText(shape ?? [])})`);
  return new TrtforgeError(
    'TF_PROFILE_MISSING',
    `The model leaves dimensions open and no range is passed for ${places.join(', ')}.`,
    {
      remedy:
        dims === null
          ? `For example: --profile ${shellQuote(profile ?? '')}`
          : `For example, add ${dims.join(' ')}`,
      details: { inputs: missing.map(({ name, shape }) => ({ name, shape })), suggestion: profile },
    },
  );
}

/** Number of values of an input that decide shapes: TensorRT requires their range, not that of dimensions. */
export function shapeValues({ name, dtype, shape }: ValueFacts, uses: ValueUses): number {
  if (shape === null || shape.length > 1 || !/^int(?:32|64)$/.test(dtype ?? '')) return 0;
  const count = Number(shape[0] ?? 1);
  return count <= MOST_DIMENSIONS && uses.reached(name).some(decidesShape) ? count : 0;
}

const shapeText = (shape: NonNullable<ValueFacts['shape']>): string =>
  shape.length === 0 ? 'scalar' : shape.map((dimension) => dimension ?? '?').join('x');

const invalid = (message: string, more: ErrorDetails = {}) =>
  new TrtforgeError('TF_PROFILE_INVALID', message, more);

/** The facts that state the meaning of the open axes of a model or an engine. */
export interface NamedAxes {
  readonly inputs: readonly Named[];
  readonly outputs: readonly Named[];
  readonly profiles?: readonly Profile[];
  readonly knownAnswer?: Passport['knownAnswer'];
}

/** The same of an engine, with the symbols of its model where the passport has them, else those that are `stated` of its inputs. */
export function axesOf(
  { plan, identity, knownAnswer }: Passport,
  stated: readonly Pick<Named, 'name' | 'shape'>[] = [],
): NamedAxes {
  const named = ({ name, dtype, shape, symbols }: Passport['plan']['inputs'][number]): Named => {
    const others = stated.find((each) => each.name === name)?.shape;
    const symbolOf = (axis: number) => symbols?.[axis] ?? others?.[axis] ?? null;
    return { name, dtype, shape: shape?.map((size, axis) => size ?? symbolOf(axis)) ?? null };
  };
  const { profiles } = identity.document.recipe;
  return { inputs: plan.inputs.map(named), outputs: plan.outputs.map(named), profiles, knownAnswer };
}

/** Whether an axis of an input is the batch: its first, or the one that is named like it or left open in a state. */
export const isBatchAxis = (inputs: NamedAxes['inputs'], name: string, axis: number): boolean =>
  openDimensions(inputs).some(
    ({ isBatch, places }) => isBatch && places.some((place) => place.input === name && place.axis === axis),
  );

/**
 * The first input or output whose open first axis is not the batch, and what states that: sizes of the known answer, names of axes, ranges of profiles. undefined where
 * each is the batch as far as anything states it.
 */
export function otherThanBatch(
  axes: NamedAxes,
): { readonly tensor: string; readonly why: string } | undefined {
  const { profiles = [], knownAnswer } = axes;
  const isValued = ({ name }: Named) => profiles.some((profile) => profile[name]?.values === true);
  const isOpen = ({ shape }: Named) => shape?.length !== 0 && typeof shape?.[0] !== 'number';
  const inputs = axes.inputs.filter((input) => !isValued(input));
  const isBatch = ({ name }: Named) => isBatchAxis(inputs, name, 0);
  const leader = inputs.find((input) => isOpen(input) && isBatch(input));
  const batch = openDimensions(inputs).find(({ isBatch, symbol }) => isBatch && symbol !== null);
  const symbol = batch?.symbol ?? null;
  const differs = ({ name, shape }: Named, why: string) => ({
    tensor: name,
    why: `the first axis of "${name}" [${shape!.map((size) => size ?? '?').join(', ')}] is not the batch: ${why}`,
  });
  for (const input of inputs.filter(isOpen)) {
    if (input.shape === null) continue;
    if (leader === undefined || !isBatch(input))
      return differs(input, symbol === null ? 'no axis is' : `the model calls the batch "${symbol}"`);
    const isNamed = input.shape[0] !== null && input.shape[0] === leader.shape![0];
    const at = profiles.findIndex((profile) => {
      const [own, other] = [profile[input.name], profile[leader.name]];
      return own && other && (['min', 'opt', 'max'] as const).some((end) => own[end][0] !== other[end][0]);
    });
    if (at >= 0 && !isNamed)
      return differs(input, `profile ${at} has other sizes of it than of "${leader.name}"`);
  }
  for (const output of axes.outputs.filter(isOpen)) {
    if (leader === undefined || output.shape === null) continue;
    const rows = knownRows(knownAnswer, leader.name, output.name);
    const other = rows.find(([batch, count]) => batch !== count);
    if (other !== undefined)
      return differs(output, `it is ${other[1]} where "${leader.name}" has ${other[0]}`);
    const [first = null] = output.shape;
    const isKnown = new Set(rows.map(([batch]) => batch)).size > 1 || first === symbol;
    if (!isKnown && typeof first === 'string' && isOtherThanBatch(first))
      return differs(
        output,
        symbol === null ? 'its name states so' : `the model calls the batch "${symbol}"`,
      );
  }
  return undefined;
}

/** First axes of an input and an output in each case of a known answer. */
const knownRows = (
  answer: NamedAxes['knownAnswer'],
  input: string,
  output: string,
): readonly (readonly [batch: number, count: number])[] =>
  (answer?.cases ?? []).flatMap(({ inputs, outputs }) => {
    const batch = inputs.find(({ name }) => name === input)?.shape[0];
    const count = outputs.find(({ name }) => name === output)?.shape[0];
    return batch === undefined || count === undefined ? [] : [[batch, count] as const];
  });

/** Ranges that would do where some are missing. */
export interface Suggestion {
  /** A whole profile, as `parseProfile` reads it. */
  readonly profile: string | null;
  /** Options that add what is missing to the sizes that are set; null where they have no names, or where none is set and more than the batch is missing. */
  readonly dims: readonly string[] | null;
}
