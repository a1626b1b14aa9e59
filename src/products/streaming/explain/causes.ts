import { meanOf } from '../../../base/statistics.js';
import type { TensorDiagnosis } from '../compare/diagnosis.js';
import type { Drift } from '../compare/drift.js';
import { explainNonFinite } from '../compare/non-finite.js';
import { stepsOf } from '../contract/cache-length.js';
import type { LengthLaw } from '../contract/contract.js';
import type { ChunkOutcome, StreamOutcome } from '../verify/outcome.js';
import type { ParityMode } from '../verify/plan.js';
import type { Explanation } from '../verify/result.js';

/** What the reasons are looked for in. */
export interface Evidence {
  readonly mode: ParityMode;
  readonly stream: StreamOutcome;
  /** The main output. */
  readonly main: string | null;
  /** Of every floating-point output. */
  readonly drifts: readonly Drift[];
  /** null: none, or the reference itself does not keep to it. */
  readonly law: LengthLaw | null;
  /** Whether the candidate computes float32 products in full: on a CPU, or with TF32 off. */
  readonly isFullFloat32: boolean;
}

/** Everything that can be said about why, worst first. */
export function explain(evidence: Evidence): readonly Explanation[] {
  const found = [
    ...explainNonFinite(evidence.stream.nonFinite),
    ...unrecordedOutputs(evidence.stream.chunks, evidence.main),
    ...stateLengths(evidence),
    ...evidence.stream.diagnoses.flatMap(explainTensor),
    ...evidence.drifts.flatMap((drift) =>
      explainDrift(drift, evidence.mode, relativeSizes(evidence.stream.chunks, drift.tensor)),
    ),
    ...looseTolerances(evidence.stream.chunks),
    ...referenceInTf32(evidence),
  ];
  const order = ['error', 'warning', 'note'];
  return found.toSorted((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}

/** Tolerances under which a candidate of zeros passes in every chunk tell nothing. */
export function looseTolerances(chunks: readonly Pick<ChunkOutcome, 'tensors'>[]): readonly Explanation[] {
  const names = new Set(chunks.flatMap(({ tensors }) => tensors.map(({ tensor }) => tensor)));
  return [...names].flatMap((name): Explanation[] => {
    const compared = chunks
      .flatMap(({ tensors }) => tensors.filter(({ tensor }) => tensor === name))
      .filter((each) => each.kind === 'float' && each.compared > 0);
    if (compared.length === 0 || !compared.every(({ zerosPass }) => zerosPass)) return [];
    return [
      {
        id: 'tolerance-cannot-fail',
        severity: 'warning',
        sentence: `The tolerance of ${name} cannot fail: a candidate that gives only zeros would pass in all ${compared.length} chunks.`,
        remedy: `Give a tighter one: --atol ${name}:1e-3 --rtol ${name}:1e-3. An output of zeros has a largest relative error of exactly 1, so a relative tolerance of 1 or more accepts it.`,
        evidence: { tensor: name, chunks: compared.length },
      },
    ];
  });
}

/** A relative error that grows less than this from the first to the last third of the stream does not grow. */
const SAME_SIZE = 1.5;

/** Errors below this, relative to the reference, are float32's own rounding: a sum in another order makes them, and none stands out. */
const ROUNDING = 1e-6;

/**
 * One bad chunk is not a drift, although it tilts a least-squares line; and an error that grows as the output itself does is none either. `relative` are
 * the errors' sizes relative to the reference's, chunk by chunk.
 */
export function explainDrift(
  drift: Drift,
  mode: ParityMode = 'closed-loop',
  relative: readonly number[] = [],
): readonly Explanation[] {
  const { tensor, slope, outliers, shape, thirds } = drift;
  if (shape === 'growing') {
    const growth = `it grows by ${short(slope.robust.perChunk)} a chunk (95 % sure: ${short(slope.robust.low)} to ${short(slope.robust.high)}), from ${short(thirds.first)} in the first third to ${short(thirds.last)} in the last`;
    const evidence = { tensor, robustSlope: slope.robust.perChunk, ratioOfThirds: thirds.ratio };
    if (relative.length > 0 && growthOf(relative) < SAME_SIZE) {
      return [
        {
          id: 'error-grows-with-output',
          severity: 'note',
          sentence: `The error of ${tensor} grows because ${tensor} itself does: ${growth}, but relative to the reference it stays the same.`,
          remedy: `Judge ${tensor} by a relative tolerance: --rtol ${tensor}:1e-3.`,
          evidence: { ...evidence, relativeGrowth: growthOf(relative) },
        },
      ];
    }
    return [
      mode === 'closed-loop'
        ? {
            id: 'error-accumulates',
            severity: 'error',
            sentence: `The error of ${tensor} accumulates: ${growth}.`,
            remedy:
              'Run the same reference with --mode functional: if the growth is gone, the candidate adds to it through its own state; compare the state tensors first.',
            evidence,
          }
        : {
            id: 'error-grows-with-data',
            severity: 'warning',
            sentence: `The error of ${tensor} grows although every chunk is given the recorded state: ${growth}.`,
            remedy:
              'It is the data of later chunks, or state that fills up, that makes it: look at the state and the length.',
            evidence,
          },
    ];
  }
  if (shape !== 'outliers') return [];
  if (relative.length > 0 && Math.max(...relative) < ROUNDING) return [];
  const tilted = Math.abs(slope.leastSquares.perChunk) > 1e-6 && Math.abs(slope.robust.perChunk) <= 1e-6;
  const tilt = tilted
    ? ` ${outliers.length === 1 ? 'That chunk alone gives' : 'They alone give'} a least-squares slope of ${short(slope.leastSquares.perChunk)}; the robust slope is ${short(slope.robust.perChunk)}.`
    : '';
  return [
    {
      id: 'outlier-not-drift',
      severity: 'warning',
      sentence: `The error of ${tensor} stands out in ${outliers.length === 1 ? 'chunk' : 'chunks'} ${named(outliers)} and does not grow.${tilt}`,
      remedy: `Look at what those chunks hold: --dump FOLDER writes failing ones with their inputs.`,
      evidence: { tensor, chunks: outliers, leastSquaresSlope: slope.leastSquares.perChunk },
    },
  ];
}

/** What the close look at the first failure of a tensor says. */
export function explainTensor(diagnosis: TensorDiagnosis): readonly Explanation[] {
  const { tensor, chunk, slices, masked, place, frames } = diagnosis;
  // Where no direction is left the error is as large as the tensor: nothing that rounding does.
  const isOther = frames.total > 1 && frames.diverged.length === frames.total;
  const said: Explanation[] = [];
  const say = (
    id: string,
    severity: Explanation['severity'],
    sentence: string,
    remedy: string,
    evidence: object,
  ) => said.push({ id, severity, sentence, remedy, evidence: { tensor, chunk, ...evidence } });
  if (masked.says === 'padding-junk') {
    say(
      'padding-junk',
      'warning',
      `In chunk ${chunk} the error of ${tensor} is ${short(masked.ratio)} times larger where the reference is below 1e-3 than where it is not: what differs is padding.`,
      'Name the valid length of this tensor in the contract, so that only the valid part is compared; then see whether the model masks the rest before it reads it.',
      { maxFull: masked.maxFull, maxMasked: masked.maxMasked },
    );
  } else if (slices?.says === 'padding-side') {
    say(
      'padding-side',
      'error',
      `In chunk ${chunk} the error of ${tensor} ${Number.isFinite(slices.ratio) ? `is ${short(slices.ratio)} times larger at some positions of axis ${slices.axis} than at others` : `lies at some positions of axis ${slices.axis} and not at others`}, as when one side fills up on the right and the other on the left, or by a position more.`,
      "Check the contract's pad side and capacity of this tensor against how the reference was made.",
      { axis: slices.axis, maxAbs: slices.maxAbs },
    );
  } else if (slices?.says === 'uniform' && !isOther) {
    say(
      'uniform-error',
      'note',
      `In chunk ${chunk} the error of ${tensor} is about the same at every position of axis ${slices.axis} (${short(slices.ratio)} times between best and worst): precision or other weights, not padding.`,
      'An FP32 engine: build it with no-tf32 and run again; if the error falls a hundredfold it was TF32. FP16 or BF16: this is what the precision costs, and limits for it are yours to set.',
      { axis: slices.axis, ratio: slices.ratio },
    );
  }
  if (frames.diverged.length > 0 && frames.total > 1) {
    say(
      'frames-diverge',
      'error',
      `In chunk ${chunk}, ${frames.diverged.length} of ${frames.total} ${frames.isPosition ? 'positions' : 'indices'} of axis ${frames.axis} of ${tensor} point another way than the reference (cosine below 0.99): ${named(frames.diverged)}.`,
      isOther
        ? 'All of them do: other weights, or other inputs or another state than this chunk was given when it was recorded.'
        : frames.isPosition
          ? 'Compare what those positions read: padding that leaks in, a state of the wrong length, or a kernel that is wrong on this GPU.'
          : 'What is special about them is where to look; a contract that names the axis of positions tells more.',
      { diverged: frames.diverged.length, total: frames.total },
    );
  } else if (place !== null) {
    say(
      'error-is-local',
      'note',
      `In chunk ${chunk}, 90 % of the squared error of ${tensor} lies in ${place.count} of ${place.size} indices of axis ${place.axis}: ${named(place.indices)}.`,
      'What is special about them, a layer, a head, a channel, is where to look.',
      place,
    );
  }
  return said;
}

/** Lengths tell of wrong shapes before any error does. */
export function stateLengths({ stream, law }: Pick<Evidence, 'stream' | 'law'>): readonly Explanation[] {
  const stuck = law === null ? null : stuckLength(stream.chunks, law);
  return stuck === null ? [] : [stuck];
}

/** A state that advances by the same wrong amount in every chunk was computed for another chunk length. */
function stuckLength(
  chunks: readonly Pick<ChunkOutcome, 'lengths' | 'chunk'>[],
  law: LengthLaw,
): Explanation | null {
  const got = chunks.map(({ lengths }) => lengths.got);
  const recorded = chunks.map(({ lengths }) => lengths.recorded);
  const advances = advancesOf(got, law.capacity);
  const wanted = advancesOf(recorded, law.capacity);
  const advance = advances[0];
  if (advance === undefined || advances.length < 2 || !advances.every((each) => each === advance))
    return null;
  if (advances.every((each, at) => each === wanted[at])) return null;
  const frames = framesThatAdvance(advance, law);
  return {
    id: 'shape-not-taken',
    severity: 'error',
    sentence: `The state grows by ${advance} in every chunk where the reference grows by ${named([...new Set(wanted)])}${frames === null ? '' : `, as it would if every chunk were ${frames[0] === frames[1] ? frames[0] : `${frames[0]} to ${frames[1]}`} frames long`}: the candidate computes with another shape than it is given.`,
    remedy:
      'The shape of these chunks lies outside the optimization profile and was ignored by whoever ran the engine; build with a profile that includes every chunk length.',
    evidence: { advance, wanted: [...new Set(wanted)], frames },
  };
}

/** How much the length grows from chunk to chunk, until the capacity is reached. */
function advancesOf(lengths: readonly (number | null)[], capacity: number): readonly number[] {
  const advances: number[] = [];
  for (let at = 1; at < lengths.length; at++) {
    const [before, now] = [lengths[at - 1], lengths[at]];
    if (before == null || now == null || now >= capacity) break;
    advances.push(now - before);
  }
  return advances;
}

/** The chunk lengths that the law gives this advance for; null for none. */
function framesThatAdvance(
  advance: number,
  { dropExtra, drop }: LengthLaw,
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

/** TF32 keeps 10 bits of each factor: the error of a product is about 2^-11 of it, and sums of many keep some part of that. */
const TF32_ERROR: readonly [number, number] = [2e-5, 5e-3];

/**
 * A candidate in full float32 that is off by as much as TF32 rounds, from the first chunk on and no more in the last: then it is the reference that was
 * computed in TF32 (PyTorch's convolutions on a GPU are, unless told otherwise).
 */
function referenceInTf32({
  stream,
  drifts,
  isFullFloat32,
}: Pick<Evidence, 'stream' | 'drifts' | 'isFullFloat32'>): readonly Explanation[] {
  if (!isFullFloat32) return [];
  const suspects = drifts.flatMap(({ tensor }) => {
    const sizes = relativeSizes(stream.chunks, tensor);
    const within = sizes.every((size) => size >= TF32_ERROR[0] && size <= TF32_ERROR[1]);
    const isSteady = sizes.length > 0 && growthOf(sizes) < 2 && growthOf(sizes) > 0.5;
    return isSteady && within ? [{ tensor, relativeRms: Math.max(...sizes) }] : [];
  });
  const [first] = suspects;
  if (first === undefined) return [];
  return [
    {
      id: 'reference-in-tf32',
      severity: 'warning',
      sentence: `The candidate computes in full float32, and ${suspects.map(({ tensor }) => tensor).join(', ')} ${suspects.length === 1 ? 'is' : 'are'} off by ${short(first.relativeRms)} of their size in every chunk, as much as TF32 rounds: the reference looks computed in TF32.`,
      remedy:
        'Record the reference on a CPU, or with torch.backends.cudnn.allow_tf32 = False and torch.backends.cuda.matmul.allow_tf32 = False.',
      evidence: { suspects },
    },
  ];
}

/** Root mean square of the error over that of the reference, chunk by chunk. */
function relativeSizes(chunks: readonly Pick<ChunkOutcome, 'tensors'>[], tensor: string): readonly number[] {
  return chunks
    .flatMap(({ tensors }) => tensors.filter((each) => each.tensor === tensor && each.compared > 0))
    .map(({ relativeRms }) => relativeRms)
    .filter(Number.isFinite);
}

/** Mean of the last third over that of the first. */
function growthOf(values: readonly number[]): number {
  const third = Math.max(1, Math.floor(values.length / 3));
  const [first, last] = [meanOf(values.slice(0, third)), meanOf(values.slice(-third))];
  return first === 0 ? Number.POSITIVE_INFINITY : last / first;
}

const MOST_NAMED = 8;

const named = (indices: readonly number[]): string =>
  `${indices.slice(0, MOST_NAMED).join(', ')}${indices.length > MOST_NAMED ? `, … ${indices.length} in all` : ''}`;

export const short = (value: number): string => String(Number(value.toPrecision(3)));

/**
 * Outputs that were not held against anything because the reference lacks them: the main one in any chunk, others in some chunks though not in all. What
 * was never recorded but for that is the recorder's choice.
 */
function unrecordedOutputs(
  chunks: readonly Pick<ChunkOutcome, 'chunk' | 'tensors' | 'refused'>[],
  main: string | null,
): readonly Explanation[] {
  const run = chunks.filter(({ refused }) => refused === null);
  const names = new Set(run.flatMap(({ tensors }) => tensors.map(({ tensor }) => tensor)));
  if (main !== null) names.add(main);
  return [...names].flatMap((name): Explanation[] => {
    const lacking = run.filter(({ tensors }) => !tensors.some(({ tensor }) => tensor === name));
    const [first, ...more] = lacking;
    if (first === undefined) return [];
    const sentence =
      lacking.length === run.length
        ? `The reference records ${name} in no chunk: nothing was held against it.`
        : `The reference does not record ${name} in chunk ${first.chunk}${more.length === 0 ? '' : ` and ${more.length} more`}: there nothing was held against it.`;
    return [
      {
        id: 'output-not-recorded',
        severity: 'warning',
        sentence,
        remedy: 'Record the reference again with every output, or see what wrote those lines.',
        evidence: { tensor: name, chunks: lacking.length },
      },
    ];
  });
}
