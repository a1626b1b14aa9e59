import { quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import { positionsOf } from '../../formats/tensor/compare/slices.js';
import { eachPiece, type FloatPairs } from '../../formats/tensor/tensor-reader.js';
import { atMost, type CheckResult, OF_DECISIONS } from './checks.js';
import type { VerifiedOutput, VerifyPrecision } from './result.js';
import { toleranceOf } from './tolerance.js';

/** The decisions of an output, by the graph that makes it. */
export interface Decides {
  /** Whether probabilities reach it through nothing but what moves, chooses or multiplies them. */
  readonly areScores: boolean;
  /** The axis of which a Softmax or an ArgMax takes one position; null where none does. */
  readonly classAxis: number | null;
  /** Whether an ArgMax makes it. */
  readonly areLabels: boolean;
  /** Whether its rows are ordered or chosen by values: then decisions are counted by sample, whatever their places. */
  readonly isOrdered: boolean;
}

export type Decisions = NonNullable<VerifiedOutput['decisions']>[number];

interface DecidedSample extends FloatPairs {
  readonly shape: readonly number[];
}

const THRESHOLDS = [0.5, 0.25] as const;

/** With fewer decisions one that turns is a large share: they do not decide (measured on 34 models with real data). */
export const FEWEST = 20;

/** From here on shares hold as they are; of fewer, 2.5 times as many 8-bit decisions may turn (measured likewise: 1 of 58 in a healthy INT8 model). */
const MANY = 300;
const OF_FEW = 2.5;

/** The share of many decisions that may be lost or new: 1 % in 16 bits, 2 % in codes of 8 bits, 6 % in those of 4 (healthy models stay at 0.1 and 0.3 %). */
function shareOf(precision: VerifyPrecision): number {
  const { differing } = toleranceOf(precision);
  if (quantizedFormatNamed(precision) === undefined) return Math.max(differing, LEAST_SHARE);
  return differing > EIGHT_BIT ? differing / OF_FEW : 0.02;
}
const LEAST_SHARE = 0.001;
const EIGHT_BIT = 0.1;

/** Most of the decisions that may turn: at least one, a near tie that no width of ties has. */
function mostTurned(precision: VerifyPrecision, decisions: number): number {
  const share = shareOf(precision);
  const ofFew =
    quantizedFormatNamed(precision) === undefined ? 0 : Math.min(OF_FEW * decisions, MANY) * share;
  return Math.max(1, Math.floor(share * decisions), Math.floor(ofFew));
}

/** A decision this near to its threshold, or between classes that are this near to each other, is a tie that any rounding turns: 0.005 in FP16, 0.04 in BF16, 0.02 in INT8. */
function tieOf(precision: VerifyPrecision): number {
  const { bound } = toleranceOf(precision);
  return quantizedFormatNamed(precision) === undefined ? bound : bound / 5;
}

/**
 * The decisions of an output over its samples. Values from 0 to 1 are above a threshold or not: all of them, or those at the positions of an axis that
 * are scores. Along the axis of its classes an output takes the position with the highest value, of which `size` is the usual one.
 */
export function countDecisions(
  samples: readonly DecidedSample[],
  { areScores, classAxis, isOrdered }: Omit<Decides, 'areLabels'>,
  precision: VerifyPrecision,
  scores: { readonly axis: number | null; readonly at: (position: number) => boolean },
  size: number,
): readonly Decisions[] {
  const thresholds = areScores ? THRESHOLDS : [];
  const counted = thresholds.map((threshold) => ({
    rule: `above ${threshold}` as const,
    ...sumOf(samples, (sample) => aboveIn(sample, threshold, tieOf(precision), scores, isOrdered)),
  }));
  const axis = sharedAxis(samples, classAxis);
  const highest =
    axis !== null
      ? [
          {
            rule: 'argmax' as const,
            ...sumOf(samples, (sample) => highestIn(sample, axis, tieOf(precision) * size)),
          },
        ]
      : [];
  return [...counted, ...highest].flatMap(({ rule, turned, found, ...counts }): Decisions[] => {
    const all = Math.max(counts.reference, found);
    if (all === 0) return [];
    const limit = mostTurned(precision, all) / all;
    const pass = all < FEWEST ? null : turned / all <= limit;
    return [{ rule, ...counts, limit, pass }];
  });
}

/** Of the rules that decide. */
export const decisionChecks = (decisions: readonly Decisions[]): readonly CheckResult[] =>
  decisions.flatMap(({ rule, pass, limit, ...counts }) => {
    const all = Math.max(counts.reference, counts.kept + counts.new);
    const turned = Math.max(counts.lost, counts.new) / all;
    return pass === null ? [] : [{ ...atMost(`${OF_DECISIONS} (${rule})`, turned, limit), pass }];
  });

/** `43 of 44 decisions (above 0.5) kept, 2 new`. */
export const decisionText = ({ rule, reference, kept, new: added }: Decisions): string =>
  `${kept} of ${reference} decisions (${rule}) kept${rule === 'argmax' ? '' : `, ${added} new`}`;

/** The axis of the classes, counted from the front, where all samples have the same two or more; null where there is none. */
export function sharedAxis(
  [first, ...others]: readonly { readonly shape: readonly number[] }[],
  classAxis: number | null,
): number | null {
  if (first === undefined || classAxis === null) return null;
  const axis = classAxis < 0 ? first.shape.length + classAxis : classAxis;
  const classes = first.shape[axis] ?? 1;
  return classes > 1 && others.every(({ shape }) => shape[axis] === classes) ? axis : null;
}

interface Counts {
  readonly reference: number;
  readonly kept: number;
  readonly lost: number;
  readonly new: number;
  readonly ties: number;
}

/** `found`: decisions of the candidate; `turned`: lost or new, whichever is more. */
function sumOf(
  samples: readonly DecidedSample[],
  count: (sample: DecidedSample) => Counts,
): Counts & { readonly found: number; readonly turned: number } {
  const all = samples.map(count);
  const sum = (of: (counts: Counts) => number) => all.reduce((total, one) => total + of(one), 0);
  const [lost, added, kept] = [sum((one) => one.lost), sum((one) => one.new), sum((one) => one.kept)];
  return {
    ...{ reference: sum((one) => one.reference), kept, lost, new: added, ties: sum((one) => one.ties) },
    found: kept + added,
    turned: Math.max(lost, added),
  };
}

function aboveIn(
  sample: DecidedSample,
  threshold: number,
  tie: number,
  { axis, at }: Parameters<typeof countDecisions>[3],
  isOrdered: boolean,
): Counts {
  const counts = { reference: 0, kept: 0, lost: 0, new: 0, ties: 0 };
  const place = positionsOf(sample.shape, axis);
  let [found, near] = [0, 0];
  eachPiece(sample, (ours, theirs, start) => {
    for (let i = 0; i < theirs.length; i++) {
      const [own, reference] = [ours[i]! > threshold, theirs[i]! > threshold];
      if (isOrdered && [ours[i]!, theirs[i]!].some((one) => Math.abs(one - threshold) <= tie)) near++;
      if ((!own && !reference) || !at(place.at(start + i))) continue;
      if (own) found++;
      if (reference) counts.reference++;
      if (own && reference) counts.kept++;
      else if (Math.abs(theirs[i]! - threshold) <= tie) counts.ties++;
      else if (reference) counts.lost++;
      else counts.new++;
    }
  });
  if (!isOrdered) return counts;
  const { reference } = counts;
  const turned = Math.abs(found - reference);
  const ties = Math.min(near, turned);
  const [lost, added] = found < reference ? [turned - ties, 0] : [0, turned - ties];
  return { reference, kept: Math.min(found, reference), lost, new: added, ties };
}

function highestIn(sample: DecidedSample, axis: number, tie: number): Counts {
  const counts = { reference: 0, kept: 0, lost: 0, new: 0, ties: 0 };
  const { size, stride } = positionsOf(sample.shape, axis);
  const [ours, theirs] = [sample.candidate, sample.reference].map((side) => {
    const values = new Float64Array(side.length);
    side.read(0, values);
    return values;
  }) as [Float64Array, Float64Array];
  const highest = (values: Float64Array, first: number) => {
    let best = first;
    for (let at = 1; at < size; at++)
      if (values[first + at * stride]! > values[best]!) best = first + at * stride;
    return best;
  };
  for (let block = 0; block < theirs.length; block += size * stride)
    for (let first = block; first < block + stride; first++) {
      const [own, reference] = [highest(ours, first), highest(theirs, first)];
      counts.reference++;
      if (own === reference) counts.kept++;
      else if (theirs[reference]! - theirs[own]! <= tie) counts.ties++;
      else counts.lost++;
    }
  return counts;
}
