import { dtypes, elementCount } from '../../../formats/tensor/dtype.js';
import { float32Values, type NamedTensors, type Tensor } from '../../../formats/tensor/tensor.js';
import type { Region } from './region.js';

/** The spread of an error along one axis, index by index. */
export interface AxisProfile {
  readonly axis: number;
  readonly maxAbs: Float64Array;
  /** Sum of the squared errors. */
  readonly energy: Float64Array;
  /** Cosine similarity of candidate and reference; 1 where both are zeros. */
  readonly cosine: Float64Array;
  /** Indices where either side is anything but zeros. Elsewhere nothing was written yet, and equal zeros prove nothing. */
  readonly written: readonly number[];
}

/** The error of one tensor of one chunk, looked at from several sides. */
export interface TensorDiagnosis {
  readonly tensor: string;
  readonly chunk: number;
  /** Whether one end of the axis is far worse than the rest. */
  readonly slices: {
    readonly axis: number;
    readonly maxAbs: readonly number[];
    /** Worst slice over best slice. */
    readonly ratio: number;
    readonly kind: 'padding-side' | 'uniform' | 'mixed';
  } | null;
  /** Whether the error is where the reference is significant. */
  readonly masked: {
    readonly significantShare: number;
    readonly maxFull: number;
    readonly maxMasked: number;
    readonly ratio: number;
    readonly kind: 'padding-junk' | 'real-error' | 'mixed';
  };
  /** The axis along which the error is most concentrated; null where it is everywhere. */
  readonly place: {
    readonly axis: number;
    readonly size: number;
    /** The least count of indices with 90 % of the squared error, and the first of them, worst first. */
    readonly count: number;
    readonly indices: readonly number[];
  } | null;
  /** Along the axis of positions, or the last one where that is not known: indices whose direction is lost. */
  readonly frames: {
    readonly axis: number;
    readonly isPosition: boolean;
    readonly total: number;
    readonly diverged: readonly number[];
  };
}

/** Reference values at least so large are significant. */
const SIGNIFICANT = 1e-3;

/** A frame whose cosine similarity is lower is another frame. */
const DIVERGED_COSINE = 0.99;

/** Number of entries named of long lists. */
const MOST_NAMED = 16;

/** Longer axes have no side: they are channels, not positions. */
const LONGEST_SLICED = 4096;

/** Looks at a failed tensor. Candidate and reference have the same shape; `axis` is that of positions, whose ends may be padding, null where it is not known. */
export function inspectFailure({
  tensor,
  chunk,
  candidate,
  reference,
  axis,
  region,
}: {
  readonly tensor: string;
  readonly chunk: number;
  readonly candidate: Tensor;
  readonly reference: Tensor;
  readonly axis: number | null;
  /** The part along `axis` that means something; null for all of it. */
  readonly region: Region | null;
}): TensorDiagnosis {
  const { shape } = reference;
  const [ours, theirs] = [float32Values(candidate), float32Values(reference)];
  const profiles = shape.map((_, axis) => axisProfile(ours, theirs, shape, axis));
  const positions = axis === null ? undefined : profiles[axis];
  return {
    tensor,
    chunk,
    slices: positions === undefined ? null : judgeSlices(positions, region),
    masked: judgeMask(ours, theirs),
    place: concentrated(profiles),
    frames: divergedFrames(positions ?? profiles.at(-1), positions !== undefined, region),
  };
}

/** One pass over all pairs. */
function axisProfile(
  candidate: Float32Array,
  reference: Float32Array,
  shape: readonly number[],
  axis: number,
): AxisProfile {
  const size = shape[axis] ?? 1;
  const inner = elementCount(shape.slice(axis + 1));
  const maxAbs = new Float64Array(size);
  const energy = new Float64Array(size);
  const [dot, ours, theirs] = [new Float64Array(size), new Float64Array(size), new Float64Array(size)];
  for (let at = 0, index = 0, left = inner; at < reference.length; at++) {
    const [c, r] = [candidate[at]!, reference[at]!];
    const error = Math.abs(c - r);
    if (error > maxAbs[index]!) maxAbs[index] = error;
    energy[index]! += error * error;
    dot[index]! += c * r;
    ours[index]! += c * c;
    theirs[index]! += r * r;
    if (--left > 0) continue;
    left = inner;
    index = index + 1 === size ? 0 : index + 1;
  }
  const cosine = dot.map((product, index) => {
    const [a, b] = [ours[index]!, theirs[index]!];
    return a === 0 || b === 0 ? Number(a === b) : product / Math.sqrt(a * b);
  });
  const written = [...ours.keys()].filter((index) => ours[index]! !== 0 || theirs[index]! !== 0);
  return { axis, maxAbs, energy, cosine, written };
}

/**
 * Worst slice over best, of those in the region that were written: above 10 the sides differ, below 2 the error is everywhere alike. One slice alone that is
 * at neither end is an outlier, not a side.
 */
function judgeSlices(
  { axis, maxAbs: all, written }: AxisProfile,
  region: Region | null,
): TensorDiagnosis['slices'] {
  const { from, to } = region ?? { from: 0, to: all.length };
  const maxAbs = written.filter((index) => index >= from && index < to).map((index) => all[index]!);
  if (maxAbs.length < 2 || maxAbs.length > LONGEST_SLICED) return null;
  const worst = Math.max(...maxAbs);
  const best = Math.min(...maxAbs);
  const ratio = best === 0 ? (worst === 0 ? 1 : Number.POSITIVE_INFINITY) : worst / best;
  const isOutlier =
    maxAbs.filter((error) => error > 10 * best).length === 1 && ![maxAbs[0], maxAbs.at(-1)].includes(worst);
  const kind = ratio > 10 && !isOutlier ? 'padding-side' : ratio < 2 ? 'uniform' : 'mixed';
  return { axis, maxAbs: maxAbs.slice(0, MOST_NAMED), ratio, kind };
}

/** The largest error of all over the largest where the reference is significant: above 10 it is junk in padding, below 1.5 it is real. */
function judgeMask(candidate: Float32Array, reference: Float32Array): TensorDiagnosis['masked'] {
  let significant = 0;
  let maxFull = 0;
  let maxMasked = 0;
  for (let at = 0; at < reference.length; at++) {
    const error = Math.abs(candidate[at]! - reference[at]!);
    if (error > maxFull) maxFull = error;
    if (!(Math.abs(reference[at]!) > SIGNIFICANT)) continue;
    significant++;
    if (error > maxMasked) maxMasked = error;
  }
  const ratio = maxMasked === 0 ? (maxFull === 0 ? 1 : Number.POSITIVE_INFINITY) : maxFull / maxMasked;
  return {
    significantShare: reference.length === 0 ? 0 : significant / reference.length,
    maxFull,
    maxMasked,
    ratio,
    kind: ratio > 10 ? 'padding-junk' : ratio < 1.5 ? 'real-error' : 'mixed',
  };
}

/** The axis on which the smallest share of the written indices holds 90 % of the squared error, if that is at most a quarter of them. */
function concentrated(profiles: readonly AxisProfile[]): TensorDiagnosis['place'] {
  let found: TensorDiagnosis['place'] = null;
  let smallest = 0.25;
  for (const { axis, energy, written } of profiles) {
    const total = energy.reduce((sum, each) => sum + each, 0);
    if (written.length < 4 || !(total > 0)) continue;
    const order = written.map((index) => ({ each: energy[index]!, index })).sort((a, b) => b.each - a.each);
    let held = 0;
    let count = 0;
    while (count < order.length && held < 0.9 * total) held += order[count++]!.each;
    if (count / written.length > smallest) continue;
    smallest = count / written.length;
    const indices = order.slice(0, Math.min(count, MOST_NAMED)).map(({ index }) => index);
    found = { axis, size: energy.length, count, indices };
  }
  return found;
}

function divergedFrames(
  profile: AxisProfile | undefined,
  isPosition: boolean,
  region: Region | null,
): TensorDiagnosis['frames'] {
  if (profile === undefined) return { axis: 0, isPosition, total: 0, diverged: [] };
  const { axis, cosine } = profile;
  const { from, to } = isPosition && region !== null ? region : { from: 0, to: cosine.length };
  const indices = [...cosine.keys()].slice(from, to);
  const diverged = indices.filter((index) => !(cosine[index]! >= DIVERGED_COSINE));
  return { axis, isPosition, total: indices.length, diverged };
}

/** Where NaN or infinite values first made a chunk fail: names of tensors that have any. */
export interface NonFiniteChunk {
  readonly chunk: number;
  /** Inputs of the candidate, its state included. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly reference: readonly string[];
}

export const inspectNonFinite = (
  chunk: number,
  inputs: NamedTensors,
  outputs: NamedTensors,
  reference: NamedTensors,
): NonFiniteChunk => ({
  chunk,
  inputs: namesOf(inputs),
  outputs: namesOf(outputs),
  reference: namesOf(reference),
});

const namesOf = (tensors: NamedTensors): readonly string[] =>
  [...tensors].flatMap(([name, tensor]) =>
    dtypes[tensor.dtype].kind === 'float' && !float32Values(tensor).every(Number.isFinite) ? [name] : [],
  );
