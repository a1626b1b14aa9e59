import { CERTAIN } from '../../../base/statistics.js';
import { formatStatistic as short } from '../../../base/text/quantity.js';
import type { Drift } from '../compare/drift.js';
import type { Explanation } from './result.js';
import {
  concentrated,
  diverged,
  type Evidence,
  growing,
  looseTolerances,
  nonFinite,
  outlying,
  paddingJunk,
  paddingSide,
  referenceInTf32,
  stuckLength,
  uniform,
  unrecorded,
} from './signs.js';

/** A cause of a difference: its code, where it holds (one entry a place, with what the sentence names), and what is reported there. */
interface Cause<Sign> {
  readonly id: string;
  readonly severity: Explanation['severity'];
  readonly holds: (evidence: Evidence) => readonly Sign[];
  readonly sentence: (sign: Sign) => string;
  readonly remedy: string | ((sign: Sign) => string);
  readonly evidence: (sign: Sign) => Explanation['evidence'];
}

const cause =
  <Sign>({ id, severity, holds, sentence, remedy, evidence: numbers }: Cause<Sign>) =>
  (evidence: Evidence): readonly Explanation[] =>
    holds(evidence).map((sign) => ({
      id,
      severity,
      sentence: sentence(sign),
      remedy: typeof remedy === 'string' ? remedy : remedy(sign),
      evidence: numbers(sign),
    }));

const causes = [
  cause({
    id: 'non-finite-input',
    severity: 'error',
    holds: (evidence) => nonFinite(evidence).filter(({ inputs }) => inputs.length > 0),
    sentence: ({ chunk, inputs }) =>
      `Chunk ${chunk} has NaN or infinite values in its inputs (${inputs.join(', ')}): its outputs prove nothing about the candidate.`,
    remedy: 'The values are in the recording: find what made them, and record it again.',
    evidence: (sign) => ({ ...sign }),
  }),
  cause({
    id: 'non-finite-reference',
    severity: 'error',
    holds: (evidence) =>
      nonFinite(evidence).filter(({ inputs, outputs }) => inputs.length === 0 && outputs.length === 0),
    sentence: ({ chunk, reference }) =>
      `In chunk ${chunk} the reference has NaN or infinite values (${reference.join(', ')}), the candidate has none.`,
    remedy: 'Find what recorded it: FP16 there, or a fault that the candidate does not have.',
    evidence: (sign) => ({ ...sign }),
  }),
  cause({
    id: 'non-finite-output',
    severity: 'error',
    holds: (evidence) =>
      nonFinite(evidence).filter(({ inputs, outputs }) => inputs.length === 0 && outputs.length > 0),
    sentence: ({ chunk, outputs }) =>
      `In chunk ${chunk} the candidate returns NaN or infinite values (${outputs.join(', ')}) for inputs without any.`,
    remedy:
      'FP16 ends at 65504: keep in FP32 what grows beyond it (`trtforge convert --calibration FILE` finds it), or take BF16. In FP32 look for a division by zero, or an exponential of something large.',
    evidence: (sign) => ({ ...sign }),
  }),
  cause({
    id: 'output-not-recorded',
    severity: 'warning',
    holds: unrecorded,
    sentence: ({ tensor, first, chunks, isNever }) =>
      isNever
        ? `The reference records ${tensor} in no chunk: it was not compared.`
        : `The reference does not record ${tensor} in chunk ${first}${chunks === 1 ? '' : ` and ${chunks - 1} more`}: it was not compared there.`,
    remedy: 'Record the reference again with every output, or find what wrote those lines.',
    evidence: ({ tensor, chunks }) => ({ tensor, chunks }),
  }),
  cause({
    id: 'shape-not-taken',
    severity: 'error',
    holds: stuckLength,
    sentence: ({ advance, wanted, frames }) =>
      `The state grows by ${advance} in every chunk where the reference grows by ${named(wanted)}${frames === null ? '' : `, as it would if every chunk were ${frames[0] === frames[1] ? frames[0] : `${frames[0]} to ${frames[1]}`} frames long`}: the candidate computes with another shape than that of the chunk.`,
    remedy:
      'The shape of these chunks lies outside the optimization profile, and the program that ran the engine ignored the error; build with a profile that includes every chunk length.',
    evidence: (sign) => ({ ...sign }),
  }),
  cause({
    id: 'padding-junk',
    severity: 'warning',
    holds: paddingJunk,
    sentence: ({ tensor, chunk, masked }) =>
      `In chunk ${chunk} the error of ${tensor} is ${short(masked.ratio)} times larger where the reference is below 1e-3 than where it is not: the padding differs.`,
    remedy:
      'Name the valid length of this tensor in the contract, so that only the valid part is compared; then check that the model masks the rest before it reads it.',
    evidence: ({ tensor, chunk, masked }) => ({
      ...{ tensor, chunk },
      ...{ maxFull: masked.maxFull, maxMasked: masked.maxMasked },
    }),
  }),
  cause({
    id: 'padding-side',
    severity: 'error',
    holds: paddingSide,
    sentence: ({ tensor, chunk, slices }) =>
      `In chunk ${chunk} the error of ${tensor} ${Number.isFinite(slices.ratio) ? `is ${short(slices.ratio)} times larger at some positions of axis ${slices.axis} than at others` : `lies at some positions of axis ${slices.axis} and not at others`}, as when one side is padded on the right and the other on the left, or by a position more.`,
    remedy: "Check the contract's pad side and capacity of this tensor against how the reference was made.",
    evidence: ({ tensor, chunk, slices: { axis, maxAbs } }) => ({ tensor, chunk, axis, maxAbs }),
  }),
  cause({
    id: 'uniform-error',
    severity: 'note',
    holds: uniform,
    sentence: ({ tensor, chunk, slices }) =>
      `In chunk ${chunk} the error of ${tensor} is about the same at every position of axis ${slices.axis} (${short(slices.ratio)} times between best and worst): precision or other weights, not padding.`,
    remedy:
      'FP32 engine: build it with no-tf32 and run again; if the error falls a hundredfold it was TF32. FP16 or BF16: without --atol, --rtol and tolerances of the contract the limits are those of the precision; beyond them `trtforge bisect` finds the nodes.',
    evidence: ({ tensor, chunk, slices: { axis, ratio } }) => ({ tensor, chunk, axis, ratio }),
  }),
  cause({
    id: 'frames-diverge',
    severity: 'error',
    holds: diverged,
    sentence: ({ tensor, chunk, frames }) =>
      `In chunk ${chunk}, ${frames.diverged.length} of ${frames.total} ${frames.isPosition ? 'positions' : 'indices'} of axis ${frames.axis} of ${tensor} have another direction than the reference (cosine below 0.99): ${named(frames.diverged)}.`,
    remedy: ({ frames }) =>
      frames.diverged.length === frames.total
        ? 'All of them diverge: look for other weights, or other inputs or another state than when this chunk was recorded.'
        : frames.isPosition
          ? 'Compare what those positions read: padding that leaks in, a state of the wrong length, or a kernel that is wrong on this GPU.'
          : 'Look for what is special about them; a contract that names the axis of positions narrows it down.',
    evidence: ({ tensor, chunk, frames }) => ({
      ...{ tensor, chunk },
      ...{ diverged: frames.diverged.length, total: frames.total },
    }),
  }),
  cause({
    id: 'error-is-local',
    severity: 'note',
    holds: concentrated,
    sentence: ({ tensor, chunk, place }) =>
      `In chunk ${chunk}, 90 % of the squared error of ${tensor} lies in ${place.count} of ${place.size} indices of axis ${place.axis}: ${named(place.indices)}.`,
    remedy: 'Look for what is special about them: a layer, a head, a channel.',
    evidence: ({ tensor, chunk, place }) => ({ tensor, chunk, ...place }),
  }),
  cause({
    id: 'error-grows-with-output',
    severity: 'note',
    holds: (evidence) => growing(evidence).filter(({ isRelative }) => !isRelative),
    sentence: ({ drift }) =>
      `The error of ${drift.tensor} grows because ${drift.tensor} itself does: ${growth(drift)}, but relative to the reference it stays the same.`,
    remedy: ({ drift: { tensor } }) => `Judge ${tensor} by a relative tolerance: --rtol ${tensor}:1e-3.`,
    evidence: ({ drift, relativeGrowth }) => ({ ...growthNumbers(drift), relativeGrowth }),
  }),
  cause({
    id: 'error-accumulates',
    severity: 'error',
    holds: (evidence) =>
      evidence.mode === 'closed-loop' ? growing(evidence).filter(({ isRelative }) => isRelative) : [],
    sentence: ({ drift }) => `The error of ${drift.tensor} accumulates: ${growth(drift)}.`,
    remedy:
      'Run the same reference with --mode functional. If the growth is gone, the candidate adds to it through its own state; compare the state tensors first.',
    evidence: ({ drift }) => growthNumbers(drift),
  }),
  cause({
    id: 'error-grows-with-data',
    severity: 'warning',
    holds: (evidence) =>
      evidence.mode === 'functional' ? growing(evidence).filter(({ isRelative }) => isRelative) : [],
    sentence: ({ drift }) =>
      `The error of ${drift.tensor} grows although every chunk begins with the recorded state: ${growth(drift)}.`,
    remedy: 'The data of later chunks makes it, or state that fills up: look at the state and the length.',
    evidence: ({ drift }) => growthNumbers(drift),
  }),
  cause({
    id: 'outlier-not-drift',
    severity: 'warning',
    holds: outlying,
    sentence: ({ drift: { tensor, outliers, slope }, isTilted }) =>
      `The error of ${tensor} stands out in ${outliers.length === 1 ? 'chunk' : 'chunks'} ${named(outliers)} and does not grow.${
        isTilted
          ? ` ${outliers.length === 1 ? 'That chunk alone makes' : 'They alone make'} a least-squares slope of ${short(slope.leastSquares.perChunk)}; the robust slope is ${short(slope.robust.perChunk)}.`
          : ''
      }`,
    remedy: 'Look at the data of those chunks: --dump FOLDER writes failing ones with their inputs.',
    evidence: ({ drift: { tensor, outliers, slope } }) => ({
      ...{ tensor, chunks: outliers },
      leastSquaresSlope: slope.leastSquares.perChunk,
    }),
  }),
  cause({
    id: 'tolerance-cannot-fail',
    severity: 'warning',
    holds: looseTolerances,
    sentence: ({ tensor, chunks }) =>
      `The tolerance of ${tensor} cannot fail: a candidate of zeros would pass in all ${chunks} chunks.`,
    remedy: ({ tensor }) =>
      `Pass a tighter one: --atol ${tensor}:1e-3 --rtol ${tensor}:1e-3. An output of zeros has a largest relative error of exactly 1, so a relative tolerance of 1 or more accepts it.`,
    evidence: (sign) => ({ ...sign }),
  }),
  cause({
    id: 'reference-in-tf32',
    severity: 'warning',
    holds: referenceInTf32,
    sentence: ({ suspects, isStated }) =>
      `The candidate computes in full float32, and ${suspects.map(({ tensor }) => tensor).join(', ')} ${suspects.length === 1 ? 'is' : 'are'} off by ${short(suspects[0]!.relativeRms)} of their size in every chunk, as much as TF32 rounds: the reference ${isStated ? 'was recorded with TF32 on' : 'may have been computed in TF32; its provenance does not state it'}.`,
    remedy:
      'Record the reference on a CPU, or with torch.backends.cudnn.allow_tf32 = False and torch.backends.cuda.matmul.allow_tf32 = False.',
    evidence: (sign) => ({ ...sign }),
  }),
] as const;

const order = ['error', 'warning', 'note'];

/** Every cause that the evidence shows, worst first. */
export const explain = (evidence: Evidence): readonly Explanation[] =>
  causes
    .flatMap((find) => find(evidence))
    .toSorted((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));

const growth = ({ slope: { robust }, thirds }: Drift): string =>
  `it grows by ${short(robust.perChunk)} a chunk (${CERTAIN} sure: ${short(robust.low)} to ${short(robust.high)}), from ${short(thirds.first)} in the first third to ${short(thirds.last)} in the last`;

const growthNumbers = ({ tensor, slope, thirds }: Drift) => ({
  ...{ tensor, robustSlope: slope.robust.perChunk },
  ratioOfThirds: thirds.ratio,
});

const MOST_NAMED = 8;

const named = (indices: readonly number[]): string =>
  `${indices.slice(0, MOST_NAMED).join(', ')}${indices.length > MOST_NAMED ? `, … ${indices.length} in all` : ''}`;
