import { z } from 'zod';
import * as is from '../../base/options/kinds.js';
import { optional } from '../../base/options/option.js';
import { type VerifyOutcome, worst } from '../verify/outcome.js';
import { measure, measureSchema } from '../verify/result.js';
import type { Metric } from './task.js';

/** The share of decisions that must be the same, where no other is requested. */
export const MIN_AGREEMENT = 0.99;

/** A lower share fails; from here to what must be the same nothing is decided. */
const FAILS_BELOW = 0.95;

export const minAgreementSchema = z.number().min(0).max(1).default(MIN_AGREEMENT);

const differenceSchema = z.object({
  /** Index of the sample: the number of a chunk. */
  chunk: z.number(),
  /** Indices in the output: row and encoder step of a decision; of a class score all axes but the last. */
  at: z.array(z.number()),
  /** `steps`: the two have another number of valid steps in this chunk. */
  what: z.enum(['token', 'duration', 'class', 'steps']),
  reference: z.number(),
  candidate: z.number(),
  /** By how much each prefers its own choice to the other's: how nearly it would have decided otherwise. null for `steps`. */
  referenceMargin: measureSchema.nullable(),
  candidateMargin: measureSchema.nullable(),
  /** The largest distance of the row's other scores from the reference's. null for `steps`. */
  movement: measureSchema.nullable(),
  /** The reference's margin is within twice the movement, so that this explains the difference. */
  lowMargin: z.boolean(),
});
export type DecisionDifference = z.infer<typeof differenceSchema>;

/** Whether a candidate leads to the same decisions as the reference: details of the tasks `tokens` and `argmax`. */
export const decisionDetailsSchema = z.object({
  /** `transducer`: greedy decoding of both by the same predictor and joint network. `argmax`: the largest score along the last axis. */
  kind: z.enum(['transducer', 'argmax']),
  /** The output that is decided about. */
  output: z.string(),
  /** The bundle's meta file; null for `argmax`. */
  decoder: z.string().nullable(),
  /** Decisions of the reference; the candidate is led along them, so one difference does not cause the next. */
  decisions: z.number(),
  /** Decisions with the same token or class, and with the same duration (null where there are none). */
  agreed: z.number(),
  durationsAgreed: z.number().nullable(),
  /** Free decoding: tokens that came out, and whether they are the same one by one. null for `argmax`. */
  emitted: z.object({ reference: z.number(), candidate: z.number(), equal: z.boolean() }).nullable(),
  /** All differences, of which the first are listed. */
  different: z.number(),
  /** Number of low-margin decisions among them: they fail the task only by their number. */
  lowMargin: z.number(),
  /** The share of the compared decisions that are the same, of tokens or of durations, whichever is lower; null where none was compared. */
  agreement: z.number().nullable(),
  /** The share that must be the same. */
  minAgreement: z.number(),
  differences: z.array(differenceSchema),
  smallestMargin: measureSchema.nullable(),
  /** Chunks in which the candidate gave nothing that could be decided about. */
  unjudged: z.array(z.number()),
});
export type DecisionDetails = z.infer<typeof decisionDetailsSchema>;

/** The outcome of the counts, by low-margin decisions and free decoding. */
export function outcomeOfDecisions(details: DecisionDetails): VerifyOutcome {
  const { different, lowMargin, emitted, decisions, unjudged } = details;
  // After a low-margin decision free decoding may go another way.
  if (different > lowMargin || (different === 0 && emitted?.equal === false)) return 'fail';
  return worst([agreementOutcome(details), decisions === 0 || unjudged.length > 0 ? 'inconclusive' : 'pass']);
}

/** The outcome of the share of equal decisions: a broken model moves its scores so far that its own movement explains every difference. */
export function agreementOutcome({
  agreement,
  minAgreement,
  decisions,
  different,
}: Pick<DecisionDetails, 'agreement' | 'minAgreement' | 'decisions' | 'different'>): VerifyOutcome {
  if (agreement === null) return 'inconclusive';
  const fails = Math.min(FAILS_BELOW, minAgreement);
  // Whole decisions: of 95, 94 are as near to 99 % as they can be.
  if (agreement >= Math.max(fails, Math.floor(minAgreement * decisions) / decisions)) return 'pass';
  // One low-margin decision among few is no evidence of a fault.
  return agreement < fails && different > 1 ? 'fail' : 'inconclusive';
}

export const agreementSentence = ({
  agreement,
  minAgreement,
}: Pick<DecisionDetails, 'agreement' | 'minAgreement'>): string =>
  `${((agreement ?? 0) * 100).toPrecision(3)} % of the decisions agree; it passes from ${minAgreement * 100} % on (--min-agreement).`;

/** Shares of equal decisions, and how many differ by more than a low margin. */
export function metricsOfDecisions(details: DecisionDetails): Metric[] {
  const { kind, decisions, agreed, durationsAgreed, different, lowMargin } = details;
  const share = (name: string, count: number): Metric => ({
    name,
    value: decisions === 0 ? null : count / decisions,
    unit: 'share',
    higherIsBetter: true,
  });
  return [
    share(kind === 'argmax' ? 'class-agreement' : 'token-agreement', agreed),
    ...(durationsAgreed === null ? [] : [share('duration-agreement', durationsAgreed)]),
    {
      name: 'unexplained-differences',
      value: different - lowMargin,
      unit: 'decisions',
      higherIsBetter: false,
    },
  ];
}

/** Differences that are listed one by one. */
const LISTED = 20;

/** The decision of a greedy decoder at one step, and its margin. */
export interface Decision {
  /** Encoder step it looked at. */
  readonly step: number;
  /** The blank's id where nothing was emitted. */
  readonly token: number;
  /** Index among the durations; 0 without durations. */
  readonly duration: number;
  /** Best logit less the second best. */
  readonly tokenMargin: number;
  /** Infinity without durations. */
  readonly durationMargin: number;
  readonly logits: Float32Array;
}

/** The choice of one side, and its best score less the second best. */
interface Choice {
  readonly index: number;
  readonly margin: number;
}

/** Largest of a range and its lead over the next; the first of equals. NaN is never the best. */
export function largestOf(values: Float32Array, start: number, end: number): Choice {
  let index = 0;
  let first = Number.NEGATIVE_INFINITY;
  let second = Number.NEGATIVE_INFINITY;
  for (let at = start; at < end; at++) {
    const value = values[at]!;
    if (value > first) {
      second = first;
      first = value;
      index = at - start;
    } else if (value > second) second = value;
  }
  return { index, margin: end <= start ? Number.POSITIVE_INFINITY : first - second };
}

/** Counts decisions and lists those that differ. */
export class DecisionTally {
  readonly #agreed = { token: 0, duration: 0, class: 0 };
  readonly #compared = { token: 0, duration: 0, class: 0 };
  readonly #differences: DecisionDifference[] = [];
  readonly #unjudged: number[] = [];
  readonly #minAgreement: number;
  #decisions = 0;
  #different = 0;
  #lowMargin = 0;
  #smallestMargin = Number.POSITIVE_INFINITY;

  constructor(minAgreement: number) {
    this.#minAgreement = minAgreement;
  }

  /** One more decision of the reference. */
  decision(): void {
    this.#decisions++;
  }

  /** Compares both choices in one place, among the scores from `from` on in a row of each; returns whether they are the same. */
  choice(
    where: Pick<DecisionDifference, 'chunk' | 'at'> & { readonly what: 'token' | 'duration' | 'class' },
    reference: Choice,
    candidate: Choice,
    [theirs, ours]: readonly [reference: Float32Array, candidate: Float32Array],
    from = 0,
  ): boolean {
    this.#compared[where.what]++;
    if (reference.margin < this.#smallestMargin) this.#smallestMargin = reference.margin;
    if (reference.index === candidate.index && !Number.isNaN(candidate.margin)) {
      this.#agreed[where.what]++;
      return true;
    }
    const [expected, actual] = [from + reference.index, from + candidate.index];
    const movement = movementOf(theirs, ours, [expected, actual]);
    const margin = theirs[expected]! - theirs[actual]!;
    const lowMargin = !Number.isNaN(candidate.margin) && isLowMargin(margin, movement);
    this.#lowMargin += Number(lowMargin);
    this.#add({
      ...where,
      reference: reference.index,
      candidate: candidate.index,
      referenceMargin: measure(margin),
      candidateMargin: measure(ours[actual]! - ours[expected]!),
      movement: measure(movement),
      lowMargin,
    });
    return false;
  }

  /** Token and duration that both decoders chose in one place, the durations' logits behind `tokenLogits` others; returns whether both are the same. */
  decided(
    where: Pick<DecisionDifference, 'chunk' | 'at'>,
    expected: Decision,
    actual: Decision,
    tokenLogits: number,
  ): boolean {
    const row = [expected.logits, actual.logits] as const;
    const sameToken = this.choice(
      { ...where, what: 'token' },
      { index: expected.token, margin: expected.tokenMargin },
      { index: actual.token, margin: actual.tokenMargin },
      row,
    );
    const sameDuration = this.choice(
      { ...where, what: 'duration' },
      { index: expected.duration, margin: expected.durationMargin },
      { index: actual.duration, margin: actual.durationMargin },
      row,
      tokenLogits,
    );
    return sameToken && sameDuration;
  }

  steps(chunk: number, row: number, reference: number, candidate: number): void {
    this.#add({
      chunk,
      at: [row],
      what: 'steps',
      reference,
      candidate,
      referenceMargin: null,
      candidateMargin: null,
      movement: null,
      lowMargin: false,
    });
  }

  unjudged(chunk: number): void {
    if (this.#unjudged.at(-1) !== chunk) this.#unjudged.push(chunk);
  }

  counts(): Omit<DecisionDetails, 'kind' | 'output' | 'decoder' | 'emitted'> {
    return {
      decisions: this.#decisions,
      agreed: this.#agreed.token + this.#agreed.class,
      durationsAgreed: this.#agreed.duration,
      different: this.#different,
      lowMargin: this.#lowMargin,
      agreement: this.#agreement(),
      minAgreement: this.#minAgreement,
      differences: [...this.#differences],
      smallestMargin:
        this.#smallestMargin === Number.POSITIVE_INFINITY ? null : measure(this.#smallestMargin),
      unjudged: [...this.#unjudged],
    };
  }

  #agreement(): number | null {
    const shares = (['token', 'duration', 'class'] as const)
      .filter((what) => this.#compared[what] > 0)
      .map((what) => this.#agreed[what] / this.#compared[what]);
    return shares.length === 0 ? null : Math.min(...shares);
  }

  #add(difference: DecisionDifference): void {
    this.#different++;
    if (this.#differences.length < LISTED) this.#differences.push(difference);
  }
}

/** Two scores of a row that move by as much as the others do, towards each other. */
const MOVEMENTS = 2;

/**
 * The distance of the candidate's scores of one row from the reference's: the largest difference but for those of the two choices, which differ by as
 * much as they were moved whatever moved them. Scores that are equal did not move, also where they are infinite. NaN where one has no number.
 */
export function movementOf(
  reference: Float32Array,
  candidate: Float32Array,
  choices: readonly number[],
): number {
  const isOther = (at: number) => reference.length <= choices.length || !choices.includes(at);
  return reference.reduce(
    (most, score, at) =>
      isOther(at) && score !== candidate[at] ? Math.max(most, Math.abs(candidate[at]! - score)) : most,
    0,
  );
}

/** Whether the movement of a row explains that the candidate chose otherwise: `lead` is that of the reference's choice over the candidate's, in the reference. */
export const isLowMargin = (lead: number, movement: number): boolean =>
  Number.isFinite(movement) && lead <= MOVEMENTS * movement;

/** The share of what is decoded or classified that must be the same. */
export const minAgreementOption = optional(is.decimal(0, 1), {
  flags: '--min-agreement <share>',
  group: 'Tolerances',
  advanced: true,
  describe:
    'share of tokens, durations or classes that must be the same; below it nothing is decided, and below 0.95 it fails',
  default: MIN_AGREEMENT,
});
