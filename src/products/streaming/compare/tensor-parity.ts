import { type Comparison, compareExactly, comparePairs } from '../../../formats/tensor/compare/comparison.js';
import type { Tolerance } from '../../../formats/tensor/compare/pair-sums.js';
import { dtypes, elementCount } from '../../../formats/tensor/dtype.js';
import type { Tensor } from '../../../formats/tensor/tensor.js';
import {
  eachPiece,
  type FloatPairs,
  type FloatReader,
  tensorReader,
} from '../../../formats/tensor/tensor-reader.js';
import type { JustifiedTolerance } from '../../../quality/verify/tolerance.js';
import { placeInTensor, type Region, regionElements, regionFloats } from './region.js';

/**
 * Which rule decides about a tensor. `tensor`: its largest error is within the absolute, or its largest relative error within the relative tolerance.
 * `allclose`: every element is within absolute + relative * |reference|, as in numpy.allclose.
 */
export const passRules = ['tensor', 'allclose'] as const;
export type PassRule = (typeof passRules)[number];

export type ChunkFailureKind =
  | 'missing'
  | 'dtype'
  | 'shape'
  | 'non-finite'
  | 'outside-tolerance'
  | 'outside-rms'
  | 'differs'
  | 'run';

/** One output of one chunk, compared with the reference. Numbers are over `region`; NaN where nothing was compared. */
export interface TensorParity {
  readonly tensor: string;
  readonly kind: 'float' | 'exact';
  /** The part that was compared; null: all of it. */
  readonly region: Region | null;
  readonly compared: number;
  /** The tolerance of the rule; null where the result follows from a size and nothing was compared. */
  readonly tolerance: JustifiedTolerance | null;
  readonly maxAbs: number;
  readonly meanAbs: number;
  /** Largest |difference| / max(|reference|, 1e-12). */
  readonly maxRel: number;
  readonly cosine: number;
  /** Root mean square of the error over that of the reference; NaN where the reference is all zeros. */
  readonly relativeRms: number;
  readonly tensorRule: boolean;
  readonly allclose: boolean;
  /** Elements beyond numpy's bound, or integers that differ. */
  readonly outside: number;
  readonly nonFinite: { readonly candidate: number; readonly reference: number };
  /** Whether a candidate of zeros would pass the same rule. */
  readonly zerosPass: boolean;
  readonly pass: boolean;
  readonly failure: ChunkFailureKind | null;
  /** Where the largest error is; null where nothing was compared. */
  readonly worstAt: readonly number[] | null;
  /** The fault, without the tensor's name; null where there is none. */
  readonly reason: string | null;
}

interface TensorRequest {
  readonly tensor: string;
  readonly candidate: Tensor | undefined;
  readonly reference: Tensor;
  readonly region: Region | null;
  readonly limits: OutputLimits;
  readonly rule: PassRule;
}

/** The allowed error of an output of a chunk. */
export interface ChunkLimits {
  readonly tolerance: JustifiedTolerance;
  /** Judges the root mean square of its errors besides; null: whatever the rule allows. */
  readonly rms: ((error: number) => { readonly measured: number; readonly limit: number }) | null;
}

/** The same for every chunk, or by the size of its reference. */
export type OutputLimits =
  | JustifiedTolerance
  | ((reference: FloatReader, candidate: Pick<Tensor, 'dtype' | 'shape'>) => ChunkLimits);

/** The value of a zero reference in relative errors. */
const RELATIVE_FLOOR = 1e-12;

/** Compares one output of one chunk with the reference; integers and booleans exactly. */
export function compareTensor(request: TensorRequest): TensorParity {
  const { candidate, reference, tensor } = request;
  const isFloat = dtypes[reference.dtype].kind === 'float';
  if (candidate === undefined) return notCompared(request, 'missing', 'the output is missing');
  if (isFloat !== (dtypes[candidate.dtype].kind === 'float')) {
    return notCompared(request, 'dtype', `${candidate.dtype} where the reference has ${reference.dtype}`);
  }
  if (!sameShape(candidate.shape, reference.shape)) {
    const shapes = `[${candidate.shape.join(', ')}] where the reference has [${reference.shape.join(', ')}]`;
    return notCompared(request, 'shape', `${shapes}${layoutHint(candidate.shape, reference.shape)}`);
  }
  return isFloat ? compareFloating(request, candidate) : compareIntegers(request, candidate, tensor);
}

function compareFloating(request: TensorRequest, candidate: Tensor): TensorParity {
  const { reference, region, limits, tensor, rule } = request;
  const compared = regionElements(reference.shape, region);
  if (compared === 0) return nothingToCompare(request);
  const pairs = { candidate: regionFloats(candidate, region), reference: regionFloats(reference, region) };
  const { tolerance, rms } =
    typeof limits === 'function' ? limits(pairs.reference, candidate) : { tolerance: limits, rms: null };
  const comparison = comparePairs(pairs, tolerance, 'none');
  const { absolute, nonFinite } = comparison;
  const maxRel = largestRelative(comparison, pairs);
  const unequal = nonFinite.mismatching > 0;
  const anyNaN = nonFinite.nanInCandidate + nonFinite.nanInReference > 0;
  const anyOdd = nonFinite.mismatching + nonFinite.matching > 0;
  const tensorRule = !anyOdd && (absolute.max <= tolerance.absolute || maxRel <= tolerance.relative);
  const allclose = !anyNaN && comparison.outside === 0;
  const errorRms = comparison.l2 / Math.sqrt(comparison.finite);
  const typical = anyOdd ? null : (rms?.(errorRms) ?? null);
  const isTypical = typical === null || typical.measured <= typical.limit;
  const pass = (rule === 'tensor' ? tensorRule : allclose) && isTypical;
  const isOdd = unequal || anyNaN || anyOdd;
  const outside = isTypical ? 'outside-tolerance' : 'outside-rms';
  const failure = pass ? null : isOdd ? 'non-finite' : outside;
  // As in numpy: one NaN makes every figure over all elements NaN.
  const figure = (value: number): number =>
    anyNaN ? Number.NaN : unequal ? Number.POSITIVE_INFINITY : value;
  const { candidate: ours } = comparison;
  const worstAt = absolute.maxIndex < 0 ? null : placeInTensor(reference.shape, region, absolute.maxIndex);
  return {
    tensor,
    kind: 'float',
    region,
    compared,
    tolerance,
    maxAbs: figure(absolute.max),
    meanAbs: figure(absolute.mean),
    maxRel: figure(maxRel),
    cosine: unequal || anyNaN ? Number.NaN : comparison.cosineSimilarity,
    relativeRms: figure(errorRms / rmsOf(comparison)),
    tensorRule,
    allclose,
    outside: comparison.outside,
    nonFinite: {
      candidate: nonFinite.nanInCandidate + nonFinite.infiniteInCandidate,
      reference: nonFinite.nanInReference + nonFinite.infiniteInReference,
    },
    zerosPass:
      zerosWouldPass(comparison, tolerance, rule) && (typical === null || rmsOf(comparison) <= typical.limit),
    pass,
    failure,
    worstAt,
    reason:
      failure === null
        ? null
        : failure === 'non-finite'
          ? `the candidate has ${nonFinite.nanInCandidate} NaN and ${nonFinite.infiniteInCandidate} infinite elements, the reference ${nonFinite.nanInReference} and ${nonFinite.infiniteInReference}`
          : `max_abs=${python(absolute.max)} mean_abs=${python(absolute.mean)} max_rel=${python(maxRel)}, worst at [${worstAt?.join(', ')}]${isTypical ? '' : `, rms=${python(typical.measured)} where ${python(typical.limit)} is allowed`}${ours.max === ours.min ? `; the candidate is ${python(ours.max)} everywhere` : ''}`,
  };
}

const rmsOf = ({ reference: { deviation, mean } }: Comparison): number =>
  Math.sqrt(deviation ** 2 + mean ** 2);

/** The kernel divides by the reference itself; only where its maximum stands over a reference below the floor is there something to look at again. */
function largestRelative(comparison: Comparison, pairs: FloatPairs): number {
  const { max, maxIndex } = comparison.relative;
  if (maxIndex < 0 || max === 0) return max;
  if (Math.abs(at(pairs.reference, maxIndex)) >= RELATIVE_FLOOR) return max;
  const small = largestOver(pairs, SMALL_REFERENCE);
  // Above it an element would need a larger error than there is to be relatively worse.
  return comparison.absolute.max / SMALL_REFERENCE <= small
    ? small
    : largestOver(pairs, Number.POSITIVE_INFINITY);
}

/** References below this are so few that looking at them alone is a third of the work. */
const SMALL_REFERENCE = 1e-6;

/** The largest relative error of elements whose reference is smaller than `limit`. */
function largestOver(pairs: FloatPairs, limit: number): number {
  let largest = 0;
  eachPiece(pairs, (candidate, reference) => {
    for (let i = 0; i < reference.length; i++) {
      const size = Math.abs(reference[i]!);
      if (size >= limit) continue;
      const error = Math.abs(candidate[i]! - reference[i]!) / Math.max(size, RELATIVE_FLOOR);
      if (error > largest && error < Number.POSITIVE_INFINITY) largest = error;
    }
  });
  return largest;
}

function at(reader: FloatReader, index: number): number {
  const value = reader.format.make(1);
  reader.read(index, value);
  return value[0]!;
}

/** Zeros are |reference| off everywhere: their largest relative error is exactly 1, and none only where the reference is zeros too. */
function zerosWouldPass({ reference, finite }: Comparison, tolerance: Tolerance, rule: PassRule): boolean {
  if (finite === 0) return false;
  const peak = Math.max(Math.abs(reference.min), Math.abs(reference.max));
  if (peak <= tolerance.absolute) return true;
  return rule === 'tensor' ? tolerance.relative >= 1 : peak * (1 - tolerance.relative) <= tolerance.absolute;
}

function compareIntegers(request: TensorRequest, candidate: Tensor, tensor: string): TensorParity {
  const { reference } = request;
  const found = compareExactly(tensorReader(candidate), tensorReader(reference), tensor, 4);
  const pass = found.different === 0;
  const [worst] = found.worst;
  const values = found.worst.map((pair) => `${pair.candidate} where the reference has ${pair.reference}`);
  return {
    ...notCompared(request, 'differs', ''),
    kind: 'exact',
    compared: found.elements,
    maxAbs: found.largest,
    meanAbs: found.different === 0 ? 0 : Number.NaN,
    maxRel: found.different === 0 ? 0 : Number.NaN,
    cosine: found.different === 0 ? 1 : Number.NaN,
    tensorRule: pass,
    allclose: pass,
    outside: found.different,
    pass,
    failure: pass ? null : 'differs',
    worstAt: worst === undefined ? null : placeInTensor(reference.shape, null, worst.index),
    reason: pass ? null : `${found.different} of ${found.elements} elements differ: ${values.join('; ')}`,
  };
}

const nothingToCompare = (request: TensorRequest): TensorParity => ({
  ...notCompared(request, 'shape', ''),
  tensorRule: true,
  allclose: true,
  outside: 0,
  pass: true,
  failure: null,
  reason: null,
});

function notCompared(request: TensorRequest, failure: ChunkFailureKind, reason: string): TensorParity {
  const { reference, tensor, region, limits } = request;
  const unknown = Number.NaN;
  return {
    tensor,
    kind: dtypes[reference.dtype].kind === 'float' ? 'float' : 'exact',
    region,
    compared: 0,
    tolerance: typeof limits === 'function' ? null : limits,
    maxAbs: unknown,
    meanAbs: unknown,
    maxRel: unknown,
    cosine: unknown,
    relativeRms: unknown,
    tensorRule: false,
    allclose: false,
    outside: elementCount(reference.shape),
    nonFinite: { candidate: 0, reference: 0 },
    zerosPass: false,
    pass: false,
    failure,
    worstAt: null,
    reason,
  };
}

/** The same sizes in another order are a state of another layout: layer first against batch first. */
function layoutHint(candidate: readonly number[], reference: readonly number[]): string {
  const sorted = (shape: readonly number[]) => shape.toSorted((a, b) => a - b).join();
  if (candidate.length < 3 || sorted(candidate) !== sorted(reference)) return '';
  return ': the same sizes in another order, as of a state that is layer-first on one side and batch-first on the other';
}

const sameShape = (one: readonly number[], other: readonly number[]): boolean =>
  one.length === other.length && one.every((size, axis) => size === other[axis]);

/** A number as Python's `%.3e` prints it. */
export function python(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const [digits, exponent = '+0'] = value.toExponential(3).split('e');
  return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, '0')}`;
}
