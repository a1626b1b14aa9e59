import { type FormatId, formatNamed } from '../../formats/precision/formats/index.js';
import { type DecisionDifference, DecisionTally, type Sided } from '../../quality/tasks/decisions.js';
import { lowMarginShare } from '../../quality/tasks/low-margin.js';
import type { Decision } from '../../quality/tasks/transducer-decoder.js';
import type { ChainCheck, ChainDifference, ComponentDrift } from './chain-schema.js';

export type ChainPrecision = 'as-is' | FormatId;

/** One sample: what the reference decided, what the candidate decides led along it, and what it decides alone. */
export interface DecodedSample {
  readonly reference: readonly Decision[];
  readonly led: readonly Decision[];
  readonly free: readonly Decision[];
}

type Judged = Pick<
  ChainCheck,
  | 'decisions'
  | 'token_agreement'
  | 'duration_agreement'
  | 'equal_sequences'
  | 'first_difference'
  | 'low_margin_share'
  | 'differences'
  | 'smallest_margin'
  | 'outcome'
  | 'reasons'
>;

/** Counts and lists where a candidate decided otherwise. It fails where a difference is more than a low margin, where the logits as a whole have
 * moved by more than a rounding does, and where one is not finite. */
export function judgeDecisions(samples: readonly DecodedSample[], precision: ChainPrecision): Judged {
  // Engines of FP32 models may use TF32.
  const share = lowMarginShare(formatNamed(precision)?.id ?? 'tf32');
  const tally = new DecisionTally(share);
  const agreed = { token: 0, duration: 0 };
  let notFinite = 0;
  for (const [chunk, { reference, led }] of samples.entries())
    for (const [index, expected] of reference.entries()) {
      const actual = led[index]!;
      tally.decision();
      if (!actual.logits.every(Number.isFinite)) notFinite++;
      for (const what of ['token', 'duration'] as const) {
        const [ours, theirs] = [sided(expected, what), sided(actual, what)];
        if (tally.choice({ chunk, at: [index, expected.step], what }, ours, theirs, expected.logits))
          agreed[what]++;
      }
    }
  const { decisions, different, lowMargin, differences, smallestMargin } = tally.counts();
  const moved = driftOf('all', samples).relative_rms ?? 0;
  const wrong = different - lowMargin;
  const reasons = [
    ...(decisions === 0 ? ['The reference decided nothing: there are no encoder steps.'] : []),
    ...(notFinite > 0 ? [`${notFinite} of ${decisions} rows of logits are not finite.`] : []),
    ...(moved > share
      ? [
          `The logits have moved by ${(moved * 100).toPrecision(3)} % of their size; rounding explains ${share * 100} %.`,
        ]
      : []),
    ...(wrong > 0
      ? [
          `${wrong} of ${2 * decisions} decisions differ by more than a low margin (${share * 100} % of the logits' root mean square).`,
        ]
      : []),
  ];
  return {
    decisions,
    token_agreement: agreed.token,
    duration_agreement: agreed.duration,
    equal_sequences: samples.filter((sample) => firstDifference(sample) === undefined).length,
    first_difference: firstOf(samples),
    low_margin_share: share,
    differences: differences.map(chainDifference),
    smallest_margin: finite(smallestMargin),
    outcome: reasons.length === 0 ? 'pass' : 'fail',
    reasons,
  };
}

const sided = (decision: Decision, what: 'token' | 'duration'): Sided => ({
  index: decision[what],
  margin: what === 'token' ? decision.tokenMargin : decision.durationMargin,
});

const chainDifference = ({
  chunk,
  at: [index = 0, step = 0],
  what,
  reference,
  candidate,
  ...margins
}: DecisionDifference): ChainDifference => ({
  sample: chunk,
  index,
  step,
  what: what === 'duration' ? 'duration' : 'token',
  reference,
  candidate,
  reference_margin: finite(margins.referenceMargin),
  candidate_margin: finite(margins.candidateMargin),
  low_margin: margins.lowMargin,
});

/** Index of the first decision at which free decoding went another way. */
function firstDifference({ reference, free }: DecodedSample): number | undefined {
  const length = Math.max(reference.length, free.length);
  for (let index = 0; index < length; index++) {
    const [a, b] = [reference[index], free[index]];
    if (a?.step !== b?.step || a?.token !== b?.token || a?.duration !== b?.duration) return index;
  }
  return undefined;
}

function firstOf(samples: readonly DecodedSample[]): ChainCheck['first_difference'] {
  for (const [sample, decoded] of samples.entries()) {
    const index = firstDifference(decoded);
    if (index !== undefined) return { sample, index };
  }
  return null;
}

/** How far the logits of led decisions are from the reference's. */
export function driftOf(
  component: string,
  samples: readonly Pick<DecodedSample, 'reference' | 'led'>[],
): ComponentDrift {
  let largest = 0;
  let squares = 0;
  let referenceSquares = 0;
  let tokens = 0;
  let durations = 0;
  for (const { reference, led } of samples) {
    for (const [index, expected] of reference.entries()) {
      const actual = led[index]!;
      if (actual.token !== expected.token) tokens++;
      if (actual.duration !== expected.duration) durations++;
      for (const [at, value] of expected.logits.entries()) {
        const difference = Math.abs(actual.logits[at]! - value);
        if (difference > largest || Number.isNaN(difference)) largest = difference;
        squares += difference * difference;
        referenceSquares += value * value;
      }
    }
  }
  return {
    component,
    token_changes: tokens,
    duration_changes: durations,
    max_abs: finite(largest),
    relative_rms: referenceSquares === 0 ? null : finite(Math.sqrt(squares / referenceSquares)),
  };
}

/** The component that moves the logits most: one that makes them not finite, else the largest relative difference. */
export function mostDrifting(components: readonly ComponentDrift[]): string | null {
  const weight = ({ relative_rms }: ComponentDrift) => relative_rms ?? Number.POSITIVE_INFINITY;
  const worst = components.reduce<ComponentDrift | undefined>(
    (so, one) => (so === undefined || weight(one) > weight(so) ? one : so),
    undefined,
  );
  return worst === undefined || weight(worst) === 0 ? null : worst.component;
}

const finite = (value: number | string | null): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;
