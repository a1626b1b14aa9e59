import { optionalExport } from '../../../addon/addon.js';
import { dtypes, elementCount } from '../dtype.js';
import { elementsOf, numbersOf, type Tensor } from '../tensor.js';
import {
  type FloatArray,
  type FloatFormat,
  type FloatPairs,
  type FloatReader,
  float64Format,
  PIECE,
  pairFormat,
  type TensorReader,
} from '../tensor-reader.js';
import {
  type Comparison,
  comparisonOf,
  fractionsOf,
  type Gathered,
  type NonFiniteCounts,
  namedQuantiles,
  type QuantileChoice,
} from './comparison-statistics.js';
import { keyCount, quantilesOf, sortedQuantiles } from './error-keys.js';
import {
  ABSOLUTE_MAX,
  addSums,
  type ErrorHistogram,
  emptySums,
  type FarPair,
  type MeasureChunk,
  measureChunk,
  SUM_SLOTS,
  type Tolerance,
  WorstPairs,
} from './pair-sums.js';

export type { Comparison } from './comparison-statistics.js';

/** Pairs that are measured at a time: five arrays of this many numbers stay in the processor's second-level cache. */
const CHUNK_PAIRS = 8192;

/**
 * Compares element by element in one pass over numbers that are read piece by piece: memory does not grow with them. A histogram is filled on the way.
 * Throws RangeError when lengths differ.
 *
 * `measure` is the addon's pass where the addon is compiled, else the same in TypeScript. They give the same numbers, but for means, deviations and what else
 * comes of sums, which differ by the order of additions. Quantiles of up to 8,192 pairs are exact, those of more up to 0.4 % too large (`quantilesOf`).
 */
export function comparePairs(
  pairs: FloatPairs,
  tolerance: Tolerance,
  quantiles: QuantileChoice = 'median-p99',
  histogram?: ErrorHistogram,
  measure: MeasureChunk = fastestMeasure(),
): Comparison {
  const { candidate, reference } = pairs;
  if (candidate.length !== reference.length) {
    throw new RangeError(`${candidate.length} elements cannot be compared with ${reference.length}.`);
  }
  const gathered = gather(pairs, tolerance, fractionsOf(quantiles), histogram, measure);
  const comparison = comparisonOf(gathered, tolerance);
  const { candidateSquares, referenceSquares } = gathered.sums;
  // Those of the errors are four times as large at most.
  if (Number.isFinite(4 * (candidateSquares + referenceSquares))) return comparison;
  const shrunk = { candidate: shrunkFloats(candidate), reference: shrunkFloats(reference) };
  return withSquaresOf(comparison, comparePairs(shrunk, tolerance, 'none', undefined, measure));
}

let fastest: MeasureChunk | undefined;

/** The addon's pass where there is an addon that has one; nothing is compiled for it. */
export function fastestMeasure(): MeasureChunk {
  fastest ??= optionalExport<MeasureChunk>('measureChunk') ?? measureChunk;
  return fastest;
}

function gather(
  pairs: FloatPairs,
  tolerance: Tolerance,
  fractions: readonly number[],
  histogram: ErrorHistogram | undefined,
  measure: MeasureChunk,
): Gathered {
  const { length } = pairs.reference;
  const format = pairFormat(pairs);
  const isOneChunk = length <= CHUNK_PAIRS;
  const room = () => format.make(Math.min(CHUNK_PAIRS, length));
  const [candidates, references, absolute, relative] = [room(), room(), room(), room()];
  const chunkSums = new Float64Array(SUM_SLOTS);
  const keys = new Float64Array(isOneChunk || fractions.length === 0 ? 0 : 2 * keyCount(format));
  const sums = emptySums();
  const nonFinite = noneCounted();
  let [absoluteIndex, relativeIndex] = [-1, -1];
  const { absolute: allowed, relative: slope } = tolerance;
  /** Writes a chunk's errors into `absolute` and `relative`; false where a number is not finite. */
  const measured = (candidate: FloatArray, reference: FloatArray): boolean =>
    measure(candidate, reference, absolute, relative, chunkSums, allowed, slope, keys);
  for (let start = 0; start < length; start += CHUNK_PAIRS) {
    const candidate = candidates.subarray(0, length - start);
    const reference = references.subarray(0, length - start);
    pairs.candidate.read(start, candidate);
    pairs.reference.read(start, reference);
    const isMeasured = measured(candidate, reference);
    const left = isMeasured ? undefined : finitePairs(format, candidate, reference, nonFinite);
    if (left !== undefined) measured(left.candidate, left.reference);
    const { absoluteMax, relativeMax } = sums;
    addSums(sums, chunkSums);
    const placeOf = (errors: FloatArray, max: number) => {
      const at = errors.indexOf(max);
      return start + (left?.indices[at] ?? at);
    };
    if (sums.absoluteMax > absoluteMax) absoluteIndex = placeOf(absolute, sums.absoluteMax);
    if (sums.relativeMax > relativeMax) relativeIndex = placeOf(relative, sums.relativeMax);
    const errors = absolute.subarray(0, (left ?? { candidate }).candidate.length);
    histogram?.add(candidate, reference, start, errors, chunkSums[ABSOLUTE_MAX]!);
  }
  histogram?.finish(sums.zeros, nonFinite);
  const { count } = sums;
  const quantiles = (errors: FloatArray, offset: number, max: number) =>
    namedQuantiles(
      isOneChunk
        ? sortedQuantiles(errors.subarray(0, count), fractions)
        : quantilesOf(keys.subarray(offset, offset + keys.length / 2), format, count, max, fractions),
    );
  return {
    elements: length,
    sums,
    nonFinite,
    absoluteIndex,
    relativeIndex,
    absoluteQuantiles: quantiles(absolute, 0, sums.absoluteMax),
    relativeQuantiles: quantiles(relative, keys.length / 2, sums.relativeMax),
  };
}

type Counters = { -readonly [K in keyof NonFiniteCounts]: number };

const noneCounted = (): Counters => ({
  nanInCandidate: 0,
  nanInReference: 0,
  infiniteInCandidate: 0,
  infiniteInReference: 0,
  matching: 0,
  mismatching: 0,
  onlyInCandidate: 0,
});

interface FinitePairs {
  readonly candidate: FloatArray;
  readonly reference: FloatArray;
  /** Where each pair was. */
  readonly indices: Uint32Array;
}

/** The pairs that are finite on both sides; the others are counted. */
function finitePairs(
  { make }: FloatFormat,
  candidate: FloatArray,
  reference: FloatArray,
  counts: Counters,
): FinitePairs {
  const [ours, theirs] = [make(candidate.length), make(candidate.length)];
  const indices = new Uint32Array(candidate.length);
  let finite = 0;
  for (let i = 0; i < candidate.length; i++) {
    const c = candidate[i]!;
    const r = reference[i]!;
    if (c - c === 0 && r - r === 0) {
      ours[finite] = c;
      theirs[finite] = r;
      indices[finite++] = i;
      continue;
    }
    if (Number.isNaN(c)) counts.nanInCandidate++;
    else if (!Number.isFinite(c)) counts.infiniteInCandidate++;
    if (Number.isNaN(r)) counts.nanInReference++;
    else if (!Number.isFinite(r)) counts.infiniteInReference++;
    if (Object.is(c, r)) counts.matching++;
    else counts.mismatching++;
    if (!Number.isFinite(c) && !Number.isNaN(r) && !Object.is(c, r)) counts.onlyInCandidate++;
  }
  return { candidate: ours.subarray(0, finite), reference: theirs.subarray(0, finite), indices };
}

/** Numbers times this have squares that a double holds, as those beyond 1e154 do not. */
const SHRUNK = 2 ** -600;

const shrunkFloats = (reader: FloatReader): FloatReader => ({
  length: reader.length,
  format: float64Format,
  read: (start, target) => {
    reader.read(start, target);
    for (let i = 0; i < target.length; i++) target[i]! *= SHRUNK;
  },
});

/** A comparison with the statistics that sums and squares make taken from that of the shrunk numbers. */
function withSquaresOf(comparison: Comparison, shrunk: Comparison): Comparison {
  const enlarged = <S extends Comparison['candidate' | 'absolute']>(whole: S, small: S): S => ({
    ...whole,
    mean: small.mean / SHRUNK,
    deviation: small.deviation / SHRUNK,
  });
  return {
    ...comparison,
    absolute: enlarged(comparison.absolute, shrunk.absolute),
    candidate: enlarged(comparison.candidate, shrunk.candidate),
    reference: enlarged(comparison.reference, shrunk.reference),
    l2: shrunk.l2 / SHRUNK,
    cosineSimilarity: shrunk.cosineSimilarity,
    signalToNoise: shrunk.signalToNoise,
    // A signal without a positive maximum counts as 1, which does not shrink.
    peakSignalToNoise: comparison.reference.max > 0 ? shrunk.peakSignalToNoise : comparison.peakSignalToNoise,
  };
}

export interface ExactComparison {
  readonly elements: number;
  readonly different: number;
  /** Of these, elements with |candidate - reference| > absolute + relative * |reference|. */
  readonly outside: number;
  /** Largest |candidate - reference|; Infinity where one of them is not a number. */
  readonly largest: number;
  readonly worst: readonly FarPair[];
}

/** Compares element by element, 64-bit integers to their last bit. Shapes are the same. Throws TF_TENSOR_UNSUPPORTED for text and complex numbers. */
export function compareExactly(
  candidate: TensorReader,
  reference: TensorReader,
  name: string,
  most: number,
  { absolute, relative }: Tolerance = { absolute: 0, relative: 0 },
): ExactComparison {
  const elements = elementCount(reference.shape);
  const worst = new WorstPairs(most);
  let different = 0;
  let outside = 0;
  let largest = 0;
  for (let start = 0; start < elements; start += PIECE) {
    const count = Math.min(PIECE, elements - start);
    const [ours, theirs] = [piece(candidate, start, count), piece(reference, start, count)];
    if (candidate.dtype === reference.dtype && Buffer.compare(ours.bytes, theirs.bytes) === 0) continue;
    const [c, r] = [numbers(ours, name), numbers(theirs, name)];
    for (let i = 0; i < count; i++) {
      const [a, b] = [c[i]!, r[i]!];
      const error = difference(a, b);
      if (error === 0) continue;
      const size = Number.isNaN(error) ? Number.POSITIVE_INFINITY : error;
      different++;
      if (size > absolute + relative * Math.abs(Number(b))) outside++;
      largest = Math.max(largest, size);
      worst.add({ index: start + i, candidate: Number(a), reference: Number(b), error: size });
    }
  }
  return { elements, different, outside, largest, worst: worst.list() };
}

/** Number of elements of a tensor outside a tolerance when zeros replace the tensor that was to be compared with it. */
export function zerosOutside(
  reference: TensorReader,
  { absolute, relative }: Tolerance,
  name: string,
): number {
  const elements = elementCount(reference.shape);
  const { kind, bits } = dtypes[reference.dtype];
  let outside = 0;
  for (let start = 0; start < elements; start += PIECE) {
    const count = Math.min(PIECE, elements - start);
    const theirs = piece(reference, start, count);
    if (kind === 'complex') {
      outside += nonZero(theirs.bytes, bits / 8);
      continue;
    }
    const values = numbers(theirs, name);
    for (let i = 0; i < count; i++) {
      const size = Math.abs(Number(values[i]));
      if (size > absolute + relative * size) outside++;
    }
  }
  return outside;
}

/** Number of elements of `width` bytes that are not zero. */
function nonZero(bytes: Uint8Array, width: number): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at += width)
    if (bytes.subarray(at, at + width).some((byte) => byte !== 0)) count++;
  return count;
}

/** PIECE is a multiple of what shares a byte. */
function piece(reader: TensorReader, start: number, count: number): Tensor {
  const { bits } = dtypes[reader.dtype];
  const bytes = new Uint8Array(Math.ceil((count * bits) / 8));
  reader.readBytes((start * bits) / 8, bytes);
  return { dtype: reader.dtype, shape: [count], bytes };
}

const numbers = (tensor: Tensor, name: string): ArrayLike<number> | BigInt64Array | BigUint64Array =>
  tensor.dtype === 'int64' || tensor.dtype === 'uint64'
    ? elementsOf({ ...tensor, dtype: tensor.dtype })
    : numbersOf(tensor, name);

/** |a - b|, to the last bit of 64-bit integers whatever the other side is. */
function difference(a: number | bigint, b: number | bigint): number {
  if (typeof a === 'number' && typeof b === 'number') return Math.abs(a - b);
  const [one, other] = [whole(a), whole(b)];
  // A double with a fraction is small enough that nothing near it is rounded.
  if (one === undefined || other === undefined) return Math.abs(Number(a) - Number(b));
  return Number(one < other ? other - one : one - other);
}

const whole = (value: number | bigint): bigint | undefined =>
  typeof value === 'bigint' ? value : Number.isInteger(value) ? BigInt(value) : undefined;
