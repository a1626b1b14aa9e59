import type { z } from 'zod';
import { sha256 } from '../../base/files/digest.js';
import type { sketchSchema } from '../../engines/identity/passport.js';
import { positionsOf } from '../../formats/tensor/compare/slices.js';
import { dtypes, elementCount } from '../../formats/tensor/dtype.js';
import { numbersOf, type Tensor } from '../../formats/tensor/tensor.js';
import type { AnsweredOutput } from './answer.js';

export type Sketch = z.infer<typeof sketchSchema>;

/** Of a tensor at most; a power of two, so that fewer are a part of them. */
export const MOST_PLACES = 64;

/**
 * The sketch of a tensor: its elements at `places` of it, and sums with random signs in as many groups, a count sketch. The square of the distance of
 * two tensors is that of their sums, give or take `sqrt(2/places)` (Charikar, Chen and Farach-Colton, 2002): no element is left out of it.
 * `axis`: whose positions are kept each by its own size; negative where none are.
 */
export function sketchOf(
  name: string,
  tensor: Tensor,
  as: Sketch['as'],
  places = MOST_PLACES,
  axis = -1,
): Sketch {
  const numbers = numbersOf(tensor, name);
  const values = as === 'set' ? Float64Array.from(numbers).sort() : numbers;
  const sums = new Float64Array(places);
  let [squares, max, nan, infinite] = [0, 0, 0, 0];
  for (let at = 0; at < values.length; at++) {
    const value = values[at]!;
    if (value - value === 0) {
      squares += value * value;
      if (value > max) max = value;
      else if (-value > max) max = -value;
      const hash = hashOf(at);
      const group = (hash >>> 16) & (places - 1);
      sums[group]! += hash < 0 ? -value : value;
    } else if (Number.isNaN(value)) nan++;
    else infinite++;
  }
  return {
    name,
    shape: [...tensor.shape],
    as,
    nan,
    infinite,
    l2: kept(Math.sqrt(squares)),
    max: kept(max),
    values: placesOf(values.length, places).map((at) => {
      const value = values[at]!;
      return Number.isFinite(value) ? kept(value) : null;
    }),
    sums: Array.from(sums, kept),
    slices: axis < 0 ? null : slicesOf(numbers, tensor.shape, axis, as),
    sha256: sha256(tensor.bytes),
  };
}

/** Two rounds of a multiplicative hash: the upper bits are the sign, the lower ones the group. */
function hashOf(at: number): number {
  const hash = Math.imul(at + 1, 0x9e3779b1);
  return Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
}

/** Of each position. */
export const SLICE_SUMS = 4;

/** Of an axis at most. */
const MOST_POSITIONS = 128;

/** Positions of an axis of so many that are kept. */
const keptPositions = (size: number): readonly number[] => {
  const kept = Math.min(size, MOST_POSITIONS);
  return Array.from({ length: kept }, (_, index) => Math.floor((index * size) / kept));
};

/** Root mean square and sums by position. Elements of a set are ordered by value over the whole tensor: sums of a position mean nothing. */
function slicesOf(values: ArrayLike<number>, shape: readonly number[], axis: number, as: Sketch['as']) {
  const { size, stride } = positionsOf(shape, axis);
  const slices = { axis, rms: [] as number[], sums: [] as number[] };
  for (const position of keptPositions(size)) {
    const sums = new Float64Array(SLICE_SUMS);
    let [count, squares] = [0, 0];
    for (let start = position * stride; start < values.length; start += size * stride)
      for (let at = start; at < start + stride; at++) {
        const value = values[at]!;
        if (value - value !== 0) continue;
        const hash = hashOf(at);
        count++;
        squares += value * value;
        sums[(hash >>> 16) & (SLICE_SUMS - 1)]! += hash < 0 ? -value : value;
      }
    slices.rms.push(short(Math.sqrt(squares / Math.max(1, count))));
    if (as !== 'set') slices.sums.push(...Array.from(sums, short));
  }
  return slices;
}

/** Digits enough for FP32; integers are kept whole. */
const kept = (value: number): number => (Number.isInteger(value) ? value : Number(value.toPrecision(8)));

/** Digits enough for the limits of slices, of which there are many. */
const short = (value: number): number => Number(value.toPrecision(6));

/** Places spread over a tensor of so many elements, each anywhere in its part; all of a small one. Those of fewer places are among those of more. */
function placesOf(elements: number, places = MOST_PLACES): readonly number[] {
  if (elements <= places) return Array.from({ length: elements }, (_, at) => at);
  const step = MOST_PLACES / places;
  const all = Math.min(elements, MOST_PLACES);
  return Array.from({ length: places }, (_, index) => {
    const at = index * step;
    const jitter = (at * 0.618_033_988_75) % 1;
    return Math.min(elements - 1, Math.floor(((at + jitter) * elements) / all));
  });
}

/** A sketch with a quarter of the places. */
export const coarser = <S extends Sketch>(sketch: S): S => {
  const places = sketch.sums.length / 4;
  const sums = new Array<number>(places).fill(0);
  for (const [group, sum] of sketch.sums.entries()) sums[group & (places - 1)]! += sum;
  return {
    ...sketch,
    sums: sums.map(kept),
    values: sketch.values.length <= places ? sketch.values : sketch.values.filter((_, at) => at % 4 === 0),
  };
};

/** The way an output is compared, by its type and origin. */
export const comparedAs = (tensor: Tensor, isOrdered: boolean): Sketch['as'] =>
  isOrdered
    ? 'set'
    : dtypes[tensor.dtype].kind === 'float' || dtypes[tensor.dtype].kind === 'complex'
      ? 'values'
      : 'exact';

/** The distance of two tensors, as their sums have it. */
export const distanceOf = ({ sums }: Sketch, other: Sketch): number =>
  Math.sqrt(sums.reduce((sum, one, at) => sum + (one - other.sums[at]!) ** 2, 0));

/** The distance of an output from its answer. */
export interface SketchError {
  /** Root mean square of the errors of all elements, as the sums have it. */
  readonly rms: number;
  /** The largest error among the places; where that is. */
  readonly max: number;
  readonly place: number;
  readonly expected: number | null;
  readonly actual: number | null;
  /** Share of the places that are off by more than `limit.max`, of a set by a tenth of its root mean square as well. */
  readonly differing: number;
}

/** Rows of a set that are further apart than this, in units of its root mean square, are not the same (as in `verify/match-rows.ts`). */
const SAME = 0.1;

/** Both are of the same number of places. */
export function sketchError(answer: AnsweredOutput, found: Sketch): SketchError {
  const elements = elementCount(answer.shape);
  const root = Math.sqrt(Math.max(1, elements));
  const rms = answer.l2 / root;
  // Integers of a set are indices and classes: they are the same or not.
  const isFloat = answer.limit.max > 0;
  const most = answer.as === 'set' && isFloat ? Math.max(answer.limit.max, SAME * rms) : answer.limit.max;
  const places = placesOf(elements, answer.sums.length);
  let [worst, max, differing] = [-1, 0, 0];
  for (const [at, expected] of answer.values.entries()) {
    const actual = found.values[at] ?? null;
    const error = expected === actual ? 0 : Math.abs((expected ?? Number.NaN) - (actual ?? Number.NaN));
    if (!(error <= most)) differing++;
    if (worst < 0 || error > max || Number.isNaN(error)) [worst, max] = [at, error];
  }
  return {
    rms: distanceOf(answer, found) / root,
    max,
    place: places[worst] ?? 0,
    expected: answer.values[worst] ?? null,
    actual: found.values[worst] ?? null,
    differing: differing / Math.max(1, answer.values.length),
  };
}

/** A sketch by whose positions only sizes are compared. */
export const sizesOnly = <S extends Sketch>(sketch: S): S => ({
  ...sketch,
  slices: sketch.slices && { ...sketch.slices, sums: [] },
});

/** RMS distance of each kept position from its answer: at least, as the sizes have it; about, as the sums have it. Empty where none are compared. */
export function sliceErrors({ slices, shape }: AnsweredOutput, { slices: found }: Sketch) {
  if (slices == null || found == null || slices.rms.length !== found.rms.length) return [];
  const size = shape[slices.axis] ?? 1;
  const elements = elementCount(shape) / size;
  return keptPositions(size).map((position, at) => {
    const [expected, actual] = [slices.rms[at]!, found.rms[at]!];
    const sums = slices.sums.slice(SLICE_SUMS * at, SLICE_SUMS * (at + 1));
    const squares = sums.reduce((all, sum, i) => all + (sum - found.sums[SLICE_SUMS * at + i]!) ** 2, 0);
    const estimated = Math.sqrt(squares / elements);
    return { position, expected, actual, least: Math.abs(actual - expected), estimated };
  });
}
