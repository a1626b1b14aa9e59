import { meanOf } from '../../../base/statistics.js';
import type { CacheLengthRule } from '../../../formats/contract/contract.js';
import type { NonFiniteChunk, TensorDiagnosis } from '../compare/diagnosis.js';
import type { Drift } from '../compare/drift.js';
import { stepsOf } from '../fastconformer.js';
import type { ParityMode } from './options.js';
import type { ChunkOutcome, StreamOutcome } from './outcome.js';

/** The facts in which causes are looked for. */
export interface Evidence {
  readonly mode: ParityMode;
  readonly stream: Pick<StreamOutcome, 'chunks' | 'diagnoses' | 'nonFinite'>;
  /** The main output. */
  readonly main: string | null;
  /** Of every floating-point output. */
  readonly drifts: readonly Drift[];
  /** null: none, or the reference itself does not follow it. */
  readonly cacheLengthRule: CacheLengthRule | null;
  /** Whether the candidate computes float32 products in full: on a CPU, or with TF32 off. */
  readonly isFullFloat32: boolean;
  /** Whether the reference was recorded with TF32, by its provenance; null where that does not state it. */
  readonly referenceTf32: boolean | null;
}

export const nonFinite = ({ stream }: Evidence): readonly NonFiniteChunk[] =>
  stream.nonFinite === null ? [] : [stream.nonFinite];

/**
 * Outputs that were not compared because the reference lacks them: the main one in any chunk, others in some chunks though not in all. What was never
 * recorded but for that is the recorder's choice.
 */
export function unrecorded({ stream, main }: Evidence) {
  const run = stream.chunks.filter(({ error }) => error === null);
  const names = new Set(run.flatMap(({ tensors }) => tensors.map(({ tensor }) => tensor)));
  if (main !== null) names.add(main);
  return [...names].flatMap((name) => {
    const lacking = run.filter(({ tensors }) => !tensors.some(({ tensor }) => tensor === name));
    const [first] = lacking;
    if (first === undefined) return [];
    const isNever = lacking.length === run.length;
    return [{ tensor: name, first: first.chunk, chunks: lacking.length, isNever }];
  });
}

/** A state that advances by the same wrong amount in every chunk was computed for another chunk length. */
export function stuckLength({ stream: { chunks }, cacheLengthRule: rule }: Evidence) {
  if (rule === null) return [];
  const advances = advancesOf(
    chunks.map(({ lengths }) => lengths.got),
    rule.capacity,
  );
  const wanted = advancesOf(
    chunks.map(({ lengths }) => lengths.recorded),
    rule.capacity,
  );
  const advance = advances[0];
  if (advance === undefined || advances.length < 2 || !advances.every((each) => each === advance)) return [];
  if (advances.every((each, at) => each === wanted[at])) return [];
  return [{ advance, wanted: [...new Set(wanted)], frames: framesThatAdvance(advance, rule) }];
}

/** The growth of the length from chunk to chunk, until the capacity is reached. */
function advancesOf(lengths: readonly (number | null)[], capacity: number): readonly number[] {
  const advances: number[] = [];
  for (let at = 1; at < lengths.length; at++) {
    const [before, now] = [lengths[at - 1], lengths[at]];
    if (before == null || now == null || now >= capacity) break;
    advances.push(now - before);
  }
  return advances;
}

/** The shortest and longest chunk that the rule has this advance for; null for none. */
function framesThatAdvance(
  advance: number,
  { dropExtra, drop }: CacheLengthRule,
): readonly [number, number] | null {
  const most = 10_000;
  let least: number | null = null;
  for (let frames = 1; frames <= most; frames++) {
    const found = stepsOf(frames) - dropExtra - drop;
    if (found === advance) least ??= frames;
    if (found > advance) return least === null ? null : [least, frames - 1];
  }
  return null;
}

type Slices = NonNullable<TensorDiagnosis['slices']>;

const isJunk = ({ masked }: TensorDiagnosis): boolean => masked.kind === 'padding-junk';
/** Where no direction is left the error is as large as the tensor: nothing that rounding does. */
const isOther = ({ frames }: TensorDiagnosis): boolean =>
  frames.total > 1 && frames.diverged.length === frames.total;
const isDiverged = ({ frames }: TensorDiagnosis): boolean => frames.diverged.length > 0 && frames.total > 1;

export const paddingJunk = ({ stream }: Evidence): readonly TensorDiagnosis[] =>
  stream.diagnoses.filter(isJunk);

const slicesOf = ({ stream }: Evidence, kind: Slices['kind']) =>
  stream.diagnoses.flatMap((each) => {
    const { slices } = each;
    return !isJunk(each) && slices?.kind === kind ? [{ ...each, slices }] : [];
  });

export const paddingSide = (evidence: Evidence) => slicesOf(evidence, 'padding-side');
export const uniform = (evidence: Evidence) =>
  slicesOf(evidence, 'uniform').filter((diagnosis) => !isOther(diagnosis));
export const diverged = ({ stream }: Evidence): readonly TensorDiagnosis[] =>
  stream.diagnoses.filter(isDiverged);
export const concentrated = ({ stream }: Evidence) =>
  stream.diagnoses.flatMap((each) => {
    const { place } = each;
    return !isDiverged(each) && place !== null ? [{ ...each, place }] : [];
  });

/** A relative error that grows less than this from the first to the last third of the stream does not grow. */
const SAME_SIZE = 1.5;

/** Errors that grow, each with whether it grows relative to the reference too: one that grows as the output itself does is not a drift. */
export const growing = ({ stream, drifts }: Evidence) =>
  drifts
    .filter(({ shape }) => shape === 'growing')
    .map((drift) => {
      const relative = relativeSizes(stream.chunks, drift.tensor);
      const relativeGrowth = relative.length === 0 ? null : growthOf(relative);
      return { drift, relativeGrowth, isRelative: relativeGrowth === null || relativeGrowth >= SAME_SIZE };
    });

/** Errors below this, relative to the reference, are float32's own rounding: a sum in another order makes them, and none stands out. */
const ROUNDING = 1e-6;

/** One bad chunk is not a drift, although it tilts a least-squares line. */
export const outlying = ({ stream, drifts }: Evidence) =>
  drifts
    .filter(({ tensor, shape }) => {
      const relative = relativeSizes(stream.chunks, tensor);
      return shape === 'outliers' && (relative.length === 0 || Math.max(...relative) >= ROUNDING);
    })
    .map((drift) => {
      const { leastSquares, robust } = drift.slope;
      return { drift, isTilted: Math.abs(leastSquares.perChunk) > 1e-6 && Math.abs(robust.perChunk) <= 1e-6 };
    });

/** Tolerances under which a candidate of zeros passes in every chunk prove nothing. */
export function looseTolerances({ stream: { chunks } }: Evidence) {
  const names = new Set(chunks.flatMap(({ tensors }) => tensors.map(({ tensor }) => tensor)));
  return [...names].flatMap((tensor) => {
    const compared = comparedIn(chunks, tensor).filter(({ kind }) => kind === 'float');
    const isLoose = compared.length > 0 && compared.every(({ zerosPass }) => zerosPass);
    return isLoose ? [{ tensor, chunks: compared.length }] : [];
  });
}

/** TF32 keeps 10 bits of each factor: the error of a product is about 2^-11 of it, and sums of many keep some part of that. */
const TF32_ERROR: readonly [number, number] = [2e-5, 5e-3];

/**
 * A candidate in full float32 that is off by as much as TF32 rounds, from the first chunk on and no more in the last: then the reference was computed in
 * TF32 (PyTorch's convolutions on a GPU are by default).
 */
export function referenceInTf32({ stream, drifts, isFullFloat32, referenceTf32 }: Evidence) {
  if (!isFullFloat32 || referenceTf32 === false) return [];
  const suspects = drifts.flatMap(({ tensor }) => {
    const sizes = relativeSizes(stream.chunks, tensor);
    const within = sizes.every((size) => size >= TF32_ERROR[0] && size <= TF32_ERROR[1]);
    const isSteady = sizes.length > 0 && growthOf(sizes) < 2 && growthOf(sizes) > 0.5;
    return isSteady && within ? [{ tensor, relativeRms: Math.max(...sizes) }] : [];
  });
  return suspects.length === 0 ? [] : [{ suspects, isStated: referenceTf32 === true }];
}

const comparedIn = (chunks: readonly ChunkOutcome[], tensor: string) =>
  chunks.flatMap(({ tensors }) => tensors.filter((each) => each.tensor === tensor && each.compared > 0));

/** Root mean square of the error over that of the reference, chunk by chunk. */
const relativeSizes = (chunks: readonly ChunkOutcome[], tensor: string): readonly number[] =>
  comparedIn(chunks, tensor)
    .map(({ relativeRms }) => relativeRms)
    .filter(Number.isFinite);

/** Mean of the last third over that of the first. */
function growthOf(values: readonly number[]): number {
  const third = Math.max(1, Math.floor(values.length / 3));
  const [first, last] = [meanOf(values.slice(0, third)), meanOf(values.slice(-third))];
  return first === 0 ? Number.POSITIVE_INFINITY : last / first;
}
