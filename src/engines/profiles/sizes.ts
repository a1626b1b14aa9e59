import { didYouMean } from '../../base/text/suggest-name.js';
import { TrtforgeError } from '../../errors.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import { isPlaceholder } from '../../formats/onnx/open-dimensions.js';
import type { ProfileRange } from '../identity/recipe.js';

/** Minimum, optimum and maximum of one open dimension. */
export interface SizeRange {
  readonly min: number;
  readonly opt: number;
  readonly max: number;
}

/** A range as a user writes it: `8`, `'1/8/64'` or its three ends. */
export type Sizes = number | string | SizeRange;

/** Sizes of one profile, for every input that has the dimension. */
export interface ProfileSizes {
  /** Of the first axis where it is open. */
  readonly batch?: SizeRange | undefined;
  /** By the name that the model gives the dimension. */
  readonly dims: ReadonlyMap<string, SizeRange>;
}

/** Throws TF_USAGE for what is no size, and no minimum, optimum and maximum in ascending order. */
export function sizeRange(sizes: Sizes, least = 1): SizeRange {
  const ends =
    typeof sizes === 'object' && sizes !== null
      ? [sizes.min, sizes.opt, sizes.max]
      : String(sizes)
          .split('/')
          .map((end) => (/^\s*\d+\s*$/.test(end) ? Number(end) : Number.NaN));
  const [min = 0, opt = min, max = opt] = ends;
  const isRange = (ends.length === 1 || ends.length === 3) && min <= opt && opt <= max;
  if (isRange && min >= least && ends.every((end) => Number.isSafeInteger(end) && end < 2 ** 31))
    return { min, opt, max };
  throw new TrtforgeError('TF_USAGE', `${JSON.stringify(sizes)} is not a size or a range of sizes.`, {
    remedy: `Write one size from ${least} on, 8, or minimum, optimum and maximum in ascending order, 1/8/64.`,
  });
}

/** The sizes that a request sets; undefined where it sets none. Throws what `sizeRange` throws. */
export function requestedSizes(requested: {
  readonly batch?: Sizes | undefined;
  readonly dims?: Readonly<Record<string, Sizes>> | undefined;
}): ProfileSizes | undefined {
  const { batch, dims = {} } = requested;
  const named = Object.entries(dims);
  if (batch === undefined && named.length === 0) return undefined;
  return {
    batch: batch === undefined ? undefined : sizeRange(batch),
    dims: new Map(named.map(([name, sizes]) => [name, sizeRange(sizes, 0)])),
  };
}

/** The range of an input, dimension by dimension. */
export const profileRange = (dims: readonly SizeRange[]): ProfileRange => ({
  min: dims.map(({ min }) => min),
  opt: dims.map(({ opt }) => opt),
  max: dims.map(({ max }) => max),
  values: false,
});

/** The size that is set for an axis of an input. */
export function sizeOfAxis({ batch, dims }: ProfileSizes, { shape }: ValueFacts, axis: number) {
  const dimension = shape?.[axis];
  if (typeof dimension === 'number') return { min: dimension, opt: dimension, max: dimension };
  return dims.get(dimension ?? '') ?? (axis === 0 ? batch : undefined);
}

/** One profile with these sizes, for the inputs all of whose dimensions they set. Throws TF_PROFILE_INVALID for a size that no dimension has. */
export function sizedProfile(
  inputs: readonly ValueFacts[],
  sizes: ProfileSizes,
): ReadonlyMap<string, ProfileRange> {
  const open = inputs
    .flatMap(({ shape }) => shape ?? [])
    .filter((dimension) => typeof dimension !== 'number');
  const named = [...new Set(open.filter((dimension) => dimension !== null))];
  const unknown = [...sizes.dims.keys()].find((name) => !named.includes(name));
  if (unknown !== undefined)
    throw new TrtforgeError('TF_PROFILE_INVALID', `No open dimension of the model is called "${unknown}".`, {
      remedy:
        named.length === 0
          ? 'None has a name: pass whole shapes, --profile NAME:MIN/OPT/MAX.'
          : `${didYouMean(unknown, named)} Those with a name are ${named.join(', ')}.`.trim(),
    });
  const dims = new Map(sizes.dims);
  let isBatchUsed = false;
  for (const input of inputs) {
    const first = input.shape?.[0];
    if (sizes.batch === undefined || first === undefined || typeof first === 'number') continue;
    isBatchUsed ||= first === null || !sizes.dims.has(first);
    const isOnlyBatch = input.shape?.every((_, axis) => sizeOfAxis(sizes, input, axis) !== undefined);
    if (isOnlyBatch && first !== null && !isPlaceholder(first) && !dims.has(first))
      dims.set(first, sizes.batch);
  }
  if (sizes.batch !== undefined && !isBatchUsed)
    throw new TrtforgeError(
      'TF_PROFILE_INVALID',
      'No input of the model leaves its first axis open for a batch.',
      {
        remedy:
          named.length === 0
            ? 'Remove --batch.'
            : `Set the open dimensions by their names instead: ${named.map((name) => `--dim '${name}=…'`).join(' ')}.`,
      },
    );
  return new Map(
    inputs.flatMap((input) => {
      const ranges = (input.shape ?? []).map((_, axis) => sizeOfAxis({ ...sizes, dims }, input, axis));
      const isComplete =
        input.shape?.some((size) => typeof size !== 'number') && ranges.every((one) => one !== undefined);
      return isComplete ? [[input.name, profileRange(ranges)] as const] : [];
    }),
  );
}
