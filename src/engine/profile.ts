import { TrtforgeError } from '../errors.js';
import type { ValueFacts } from '../onnx/model-facts.js';
import type { ProfileRange } from './recipe.js';

/** One profile as it was asked for: input name to range, not yet held against a model. */
export type ProfileRequest = ReadonlyMap<string, ProfileRange>;
export type Profile = Readonly<Record<string, ProfileRange>>;

const ends = ['min', 'opt', 'max'] as const;

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
      throw new TrtforgeError('TF_SHAPE_INVALID', `«${part.trim()}» is not a profile range.`, {
        remedy: 'Write NAME:MIN/OPT/MAX, for example x:1x3x224x224/8x3x224x224/32x3x224x224.',
      });
    }
    if (profile.has(name))
      throw new TrtforgeError('TF_PROFILE_INVALID', `Input «${name}» is given twice in one profile.`);
    profile.set(name, { min, opt, max, values: sign === '=' });
  }
  return profile;
}

function parseDims(text: string): number[] | undefined {
  const trimmed = text.trim();
  if (trimmed === 'scalar' || trimmed === '[]') return [];
  const parts = /^\[(.*)\]$/.exec(trimmed)?.[1]?.split(',') ?? trimmed.split(/x/i);
  const dims = parts.map((part) => (/^\s*\d+\s*$/.test(part) ? Number(part) : Number.NaN));
  return dims.every(Number.isSafeInteger) ? dims : undefined;
}

/**
 * Holds profiles against the inputs of a model and gives them as the recipe keeps them: only inputs with open dimensions, since static
 * ones decide nothing. Throws TF_PROFILE_INVALID for wrong names, ranks, orders and symbols that disagree, and TF_PROFILE_MISSING, with a
 * ready-made suggestion, when an open dimension has no range: an engine for batch 1 that nobody asked for helps nobody.
 */
export function resolveProfiles(
  inputs: readonly ValueFacts[],
  requests: readonly ProfileRequest[],
): readonly Profile[] {
  const open = inputs.filter(isOpen);
  const profiles = requests.map((request, index) => checkProfile(inputs, request, index));
  const missing = open.filter(
    ({ name }) => profiles.length === 0 || profiles.some((one) => !Object.hasOwn(one, name)),
  );
  if (missing.length > 0) throw missingRanges(missing, open);
  return open.length === 0 && profiles.every((one) => Object.keys(one).length === 0) ? [] : profiles;
}

const isOpen = ({ shape }: ValueFacts): boolean =>
  shape === null || shape.some((dimension) => typeof dimension !== 'number');

function checkProfile(inputs: readonly ValueFacts[], request: ProfileRequest, index: number): Profile {
  const symbols = new Map<string, { readonly sizes: readonly number[]; readonly where: string }>();
  const profile: Record<string, ProfileRange> = {};
  for (const [name, range] of request) {
    const input = inputs.find((candidate) => candidate.name === name);
    if (input === undefined) throw unknownInput(name, inputs);
    checkOrder(name, range);
    if (!range.values) checkShape(input, range, symbols);
    if (range.values || isOpen(input)) profile[name] = range;
  }
  if (request.size === 0) throw invalid(`Profile ${index} names no input.`);
  return profile;
}

function checkOrder(name: string, { min, opt, max }: ProfileRange): void {
  if (min.length !== opt.length || opt.length !== max.length) {
    throw invalid(
      `Minimum, optimum and maximum of input «${name}» have ${min.length}, ${opt.length} and ${max.length} dimensions.`,
    );
  }
  for (const [axis, low] of min.entries()) {
    const [middle, high] = [opt[axis]!, max[axis]!];
    if (low > middle || middle > high) {
      throw invalid(
        `Input «${name}» has minimum ${low}, optimum ${middle} and maximum ${high} on axis ${axis}; they must ascend.`,
      );
    }
  }
}

type Symbols = Map<string, { readonly sizes: readonly number[]; readonly where: string }>;

function checkShape({ name, shape }: ValueFacts, range: ProfileRange, symbols: Symbols): void {
  if (shape === null) return;
  if (shape.length !== range.min.length) {
    throw invalid(
      `Input «${name}» has rank ${shape.length} (${shapeText(shape)}), the profile gives it ${range.min.length} dimensions.`,
    );
  }
  for (const [axis, dimension] of shape.entries()) {
    const sizes = ends.map((end) => range[end][axis]!);
    if (typeof dimension === 'number' && sizes.some((size) => size !== dimension)) {
      throw invalid(
        `Input «${name}» has the fixed size ${dimension} on axis ${axis}, the profile gives ${sizes.join('/')}.`,
      );
    }
    if (typeof dimension === 'string') checkSymbol(dimension, sizes, `«${name}» axis ${axis}`, symbols);
  }
}

/** One symbol is one number at a time, so its ranges must be the same wherever it stands. */
function checkSymbol(symbol: string, sizes: readonly number[], where: string, symbols: Symbols): void {
  const before = symbols.get(symbol);
  if (before === undefined) symbols.set(symbol, { sizes, where });
  else if (before.sizes.some((size, index) => size !== sizes[index])) {
    throw invalid(
      `Dimension «${symbol}» is ${before.sizes.join('/')} at ${before.where} but ${sizes.join('/')} at ${where}; the model says they are the same.`,
    );
  }
}

function unknownInput(name: string, inputs: readonly ValueFacts[]): TrtforgeError {
  const names = inputs.map((input) => input.name);
  const close = names.find((candidate) => isClose(candidate, name));
  return new TrtforgeError('TF_PROFILE_INVALID', `The model has no input «${name}».`, {
    remedy:
      close === undefined
        ? `Its inputs are ${names.map((one) => `«${one}»`).join(', ')}.`
        : `Did you mean «${close}»? Its inputs are ${names.map((one) => `«${one}»`).join(', ')}.`,
    details: { input: name, inputs: names },
  });
}

/** Two edits at most (Levenshtein), fewer for short names. */
function isClose(a: string, b: string): boolean {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...a].entries()) {
    const next = [index + 1];
    for (let column = 1; column <= b.length; column++) {
      const same = letter.toLowerCase() === b[column - 1]?.toLowerCase();
      next.push(Math.min(row[column]! + 1, next[column - 1]! + 1, row[column - 1]! + (same ? 0 : 1)));
    }
    row = next;
  }
  return (row.at(-1) ?? 0) <= Math.min(2, Math.ceil(Math.min(a.length, b.length) / 3));
}

function missingRanges(missing: readonly ValueFacts[], open: readonly ValueFacts[]): TrtforgeError {
  const places = missing.map(
    ({ name, shape }) => `«${name}» (${shape === null ? 'any rank' : shapeText(shape)})`,
  );
  const suggestion = suggestProfile(open);
  return new TrtforgeError(
    'TF_PROFILE_MISSING',
    `The model leaves dimensions open and no range was given for ${places.join(', ')}.`,
    {
      remedy:
        suggestion === null
          ? 'Give --profile NAME:MIN/OPT/MAX for each; the rank is open too, so only you know it.'
          : `For example: --profile '${suggestion}'`,
      details: { inputs: missing.map(({ name, shape }) => ({ name, shape })), suggestion },
    },
  );
}

/** First open axis (the batch, by custom) 1/8/32, others 1/128/512; equal symbols equal. null when a rank is open. */
export function suggestProfile(open: readonly ValueFacts[]): string | null {
  const sizes = new Map<string, readonly [number, number, number]>();
  const parts: string[] = [];
  for (const { name, shape } of open) {
    if (shape === null) return null;
    const ranges = shape.map((dimension, axis): readonly [number, number, number] => {
      if (typeof dimension === 'number') return [dimension, dimension, dimension];
      const usual = axis === 0 ? ([1, 8, 32] as const) : ([1, 128, 512] as const);
      if (dimension === null) return usual;
      const chosen = sizes.get(dimension) ?? usual;
      sizes.set(dimension, chosen);
      return chosen;
    });
    const text = ends.map((_, end) => ranges.map((range) => range[end]).join('x')).join('/');
    parts.push(`${/[,:=']/.test(name) ? `'${name}'` : name}:${text}`);
  }
  return parts.join(',');
}

const shapeText = (shape: NonNullable<ValueFacts['shape']>): string =>
  shape.length === 0 ? 'scalar' : shape.map((dimension) => dimension ?? '?').join('x');

const invalid = (message: string) => new TrtforgeError('TF_PROFILE_INVALID', message);
