import { z } from 'zod';
import { measure, measureSchema, type VerifyOutcome } from '../verify/result.js';
import { isLowMargin } from './low-margin.js';
import type { Metric } from './task.js';
import type { Decision } from './transducer-decoder.js';

const differenceSchema = z.object({
  /** Index of the sample: the number of a chunk. */
  chunk: z.number(),
  /** Indices in the output: row and encoder step of a decision; of a class score all axes but the last. */
  at: z.array(z.number()),
  /** `steps`: the two have another number of valid steps in this chunk. */
  what: z.enum(['token', 'duration', 'class', 'steps']),
  reference: z.number(),
  candidate: z.number(),
  /** Best score less the second best: how nearly each would have decided otherwise. null for `steps`. */
  referenceMargin: measureSchema.nullable(),
  candidateMargin: measureSchema.nullable(),
  /** The reference's margin is so small that the candidate's rounding explains the difference. */
  lowMargin: z.boolean(),
});
export type DecisionDifference = z.infer<typeof differenceSchema>;

const exchangeSchema = z.object({
  /** The candidate's own decoder. */
  decoder: z.string(),
  /** The output whose values are compared. */
  logits: z.string(),
  /** Largest difference of a logit from the reference's, by whose encoder and whose decoder gave it. */
  referenceReference: measureSchema,
  referenceCandidate: measureSchema,
  candidateReference: measureSchema,
  candidateCandidate: measureSchema,
});
export type Exchange = z.infer<typeof exchangeSchema>;

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
  /** Encoder and decoder put together in all four ways; null where that was not requested. */
  swap: exchangeSchema.nullable(),
  /** All differences, of which the first are listed. */
  different: z.number(),
  /** How many of them are low-margin decisions: they do not fail the task. */
  lowMargin: z.number(),
  /** A margin up to this share of the scores' root mean square is low. */
  lowMarginShare: z.number(),
  differences: z.array(differenceSchema),
  smallestMargin: measureSchema.nullable(),
  /** Chunks in which the candidate gave nothing that could be decided about. */
  unjudged: z.array(z.number()),
});
export type DecisionDetails = z.infer<typeof decisionDetailsSchema>;

/** What low-margin decisions and free decoding make of the counts. */
export function outcomeOfDecisions(details: DecisionDetails): VerifyOutcome {
  const { different, lowMargin, emitted, decisions, unjudged } = details;
  // After a low-margin decision free decoding may go another way.
  if (different > lowMargin || (different === 0 && emitted?.equal === false)) return 'fail';
  return decisions === 0 || unjudged.length > 0 ? 'inconclusive' : 'pass';
}

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

/** What one side chose, and its best score less the second best. */
interface Choice {
  readonly index: number;
  readonly margin: number;
}

/** Counts decisions and lists those that differ. */
export class DecisionTally {
  readonly #agreed = { token: 0, duration: 0, class: 0 };
  readonly #differences: DecisionDifference[] = [];
  readonly #unjudged: number[] = [];
  readonly #share: number;
  #decisions = 0;
  #different = 0;
  #lowMargin = 0;
  #smallestMargin = Number.POSITIVE_INFINITY;

  /** `share` of the scores' root mean square is as much as a low margin may be. */
  constructor(share: number) {
    this.#share = share;
  }

  /** One more decision of the reference. */
  decision(): void {
    this.#decisions++;
  }

  /** What both chose in one place, the reference among `scores`; returns whether it is the same. */
  choice(
    where: Pick<DecisionDifference, 'chunk' | 'at'> & { readonly what: 'token' | 'duration' | 'class' },
    reference: Choice,
    candidate: Choice,
    scores: Float32Array,
  ): boolean {
    if (reference.margin < this.#smallestMargin) this.#smallestMargin = reference.margin;
    if (reference.index === candidate.index && !Number.isNaN(candidate.margin)) {
      this.#agreed[where.what]++;
      return true;
    }
    const lowMargin = !Number.isNaN(candidate.margin) && isLowMargin(reference.margin, scores, this.#share);
    this.#lowMargin += Number(lowMargin);
    this.#add({
      ...where,
      reference: reference.index,
      candidate: candidate.index,
      referenceMargin: measure(reference.margin),
      candidateMargin: measure(candidate.margin),
      lowMargin,
    });
    return false;
  }

  /** Token and duration that both decoders chose in one place; returns whether both are the same. */
  decided(where: Pick<DecisionDifference, 'chunk' | 'at'>, expected: Decision, actual: Decision): boolean {
    const sameToken = this.choice(
      { ...where, what: 'token' },
      { index: expected.token, margin: expected.tokenMargin },
      { index: actual.token, margin: actual.tokenMargin },
      expected.logits,
    );
    const sameDuration = this.choice(
      { ...where, what: 'duration' },
      { index: expected.duration, margin: expected.durationMargin },
      { index: actual.duration, margin: actual.durationMargin },
      expected.logits,
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
      lowMargin: false,
    });
  }

  unjudged(chunk: number): void {
    if (this.#unjudged.at(-1) !== chunk) this.#unjudged.push(chunk);
  }

  counts(): Omit<DecisionDetails, 'kind' | 'output' | 'decoder' | 'emitted' | 'swap'> {
    return {
      decisions: this.#decisions,
      agreed: this.#agreed.token + this.#agreed.class,
      durationsAgreed: this.#agreed.duration,
      different: this.#different,
      lowMargin: this.#lowMargin,
      lowMarginShare: this.#share,
      differences: [...this.#differences],
      smallestMargin:
        this.#smallestMargin === Number.POSITIVE_INFINITY ? null : measure(this.#smallestMargin),
      unjudged: [...this.#unjudged],
    };
  }

  #add(difference: DecisionDifference): void {
    this.#different++;
    if (this.#differences.length < LISTED) this.#differences.push(difference);
  }
}
