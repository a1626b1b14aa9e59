import { defaultFormat, type FormatId, formatNamed } from '../../formats/precision/formats/index.js';
import {
  agreementOutcome,
  agreementSentence,
  type Decision,
  DecisionTally,
} from '../../quality/tasks/agreement.js';
import type { ChainCheck, ComponentDrift } from './chain-schema.js';
import type { TransducerFacts } from './transducer.js';

export type ChainPrecision = 'as-is' | FormatId;

export const chainedComponents = ['encoder', 'predictor', 'joint'] as const;
export type ChainedComponent = (typeof chainedComponents)[number];

/** The distance of logits and decisions, led along a reference, from it. */
class Drift {
  /** Decisions that change. */
  tokens = 0;
  durations = 0;
  /** Largest difference of a logit; infinite where one is not finite. */
  largest = 0;
  #squares = 0;
  #referenceSquares = 0;

  /** Root mean square of the differences over that of the reference's logits; null where those are all 0. */
  get relativeRms(): number | null {
    return this.#referenceSquares === 0 ? null : Math.sqrt(this.#squares / this.#referenceSquares);
  }

  add(expected: Decision, actual: Decision): void {
    this.tokens += Number(actual.token !== expected.token);
    this.durations += Number(actual.duration !== expected.duration);
    for (const [index, value] of expected.logits.entries()) {
      const difference = Math.abs(actual.logits[index]! - value);
      this.largest = Math.max(this.largest, Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference);
      this.#squares += difference * difference;
      this.#referenceSquares += value * value;
    }
  }
}

/** One sample, decoded by the reference and by a candidate. */
export interface DecodedSample {
  readonly reference: readonly Decision[];
  /** The candidate, led along the reference's decisions. */
  readonly led: readonly Decision[];
  /** The candidate by itself. */
  readonly free: readonly Decision[];
  /** The reference with one component of the candidate, led along its own decisions. */
  readonly exchanged: Readonly<Record<ChainedComponent, readonly Decision[]>>;
}

type Judged = Omit<
  ChainCheck,
  'candidate' | 'reference_backend' | 'candidate_backend' | 'seed' | 'samples' | 'frames' | 'ms'
>;

/** Counts and lists where a candidate decides otherwise than the reference, and how far each component of it moves the logits. */
export class ChainJudge {
  readonly #driftLimit: number;
  readonly #facts: Pick<TransducerFacts, 'blankId' | 'tokenLogits'>;
  readonly #tally: DecisionTally;
  readonly #drift = new Drift();
  readonly #exchanged = { encoder: new Drift(), predictor: new Drift(), joint: new Drift() };
  #samples = 0;
  #equal = 0;
  #emitted = 0;
  #notFinite = 0;
  readonly #unequal: ChainCheck['unequal_sequences'] = [];

  constructor(
    precision: ChainPrecision,
    facts: Pick<TransducerFacts, 'blankId' | 'tokenLogits'>,
    minAgreement: number,
  ) {
    // The errors of the components add up. Engines of FP32 models may use TF32, which keeps as many digits as FP16.
    const { tolerance } = formatNamed(precision) ?? defaultFormat;
    this.#driftLimit = chainedComponents.length * tolerance.bound;
    this.#tally = new DecisionTally(minAgreement);
    this.#facts = facts;
  }

  take({ reference, led, free, exchanged }: DecodedSample): void {
    const chunk = this.#samples++;
    for (const [index, expected] of reference.entries()) {
      const actual = led[index]!;
      this.#tally.decision();
      this.#tally.decided({ chunk, at: [index, expected.step] }, expected, actual, this.#facts.tokenLogits);
      this.#drift.add(expected, actual);
      for (const component of chainedComponents)
        this.#exchanged[component].add(expected, exchanged[component][index]!);
      this.#emitted += Number(expected.token !== this.#facts.blankId);
      this.#notFinite += Number(!actual.logits.every(Number.isFinite));
    }
    const index = firstDifference(reference, free);
    if (index === undefined) this.#equal++;
    else this.#unequal.push({ sample: chunk, index });
  }

  /**
   * It fails where a difference is more than a low margin, where the logits as a whole have moved by more than the precision moves them, and where one is not
   * finite; where too few decisions agree it fails or is inconclusive.
   */
  result(): Judged {
    const counts = this.#tally.counts();
    const { decisions, agreed, durationsAgreed, different, lowMargin, differences, smallestMargin } = counts;
    const limit = this.#driftLimit;
    const agreement = decisions === 0 ? 'pass' : agreementOutcome(counts);
    const moved = finite(this.#drift.relativeRms) ?? 0;
    const components = chainedComponents.map((name) => componentDrift(name, this.#exchanged[name]));
    const reasons = [
      decisions === 0 && 'The reference decided nothing: there are no encoder steps.',
      this.#notFinite > 0 && `${this.#notFinite} of ${decisions} rows of logits are not finite.`,
      moved > limit &&
        `The logits have moved by ${(moved * 100).toPrecision(3)} % of their size; the precision explains ${Number((limit * 100).toPrecision(3))} %.`,
      different > lowMargin &&
        `${different - lowMargin} of ${2 * decisions} decisions differ by more than a low margin (twice as far as the logits of their row moved).`,
    ].filter((reason) => reason !== false);
    return {
      decisions,
      emitted_tokens: this.#emitted,
      token_agreement: agreed,
      duration_agreement: durationsAgreed ?? 0,
      equal_sequences: this.#equal,
      unequal_sequences: [...this.#unequal],
      min_agreement: counts.minAgreement,
      drift_limit: limit,
      differences: differences.map(({ chunk, at: [index = 0, step = 0], what, ...one }) => ({
        sample: chunk,
        index,
        step,
        what: what === 'duration' ? 'duration' : 'token',
        reference: one.reference,
        candidate: one.candidate,
        reference_margin: finite(one.referenceMargin),
        candidate_margin: finite(one.candidateMargin),
        movement: finite(one.movement),
        low_margin: one.lowMargin,
      })),
      smallest_margin: finite(smallestMargin),
      components,
      drifts: mostDrifting(components),
      outcome: reasons.length === 0 ? agreement : 'fail',
      reasons: agreement === 'pass' ? reasons : [...reasons, agreementSentence(counts)],
    };
  }
}

/** Index of the first decision at which free decoding went another way. */
function firstDifference(reference: readonly Decision[], free: readonly Decision[]): number | undefined {
  const length = Math.max(reference.length, free.length);
  for (let index = 0; index < length; index++) {
    const [a, b] = [reference[index], free[index]];
    if (a?.step !== b?.step || a?.token !== b?.token || a?.duration !== b?.duration) return index;
  }
  return undefined;
}

const componentDrift = (component: string, drift: Drift): ComponentDrift => ({
  component,
  token_changes: drift.tokens,
  duration_changes: drift.durations,
  max_abs: finite(drift.largest),
  relative_rms: finite(drift.relativeRms),
});

/** The component that moves the logits most: one that makes them not finite, else the largest relative difference. */
function mostDrifting(components: readonly ComponentDrift[]): string | null {
  const weight = ({ relative_rms }: ComponentDrift) => relative_rms ?? Number.POSITIVE_INFINITY;
  const [worst] = [...components].sort((a, b) => weight(b) - weight(a));
  return worst === undefined || weight(worst) === 0 ? null : worst.component;
}

const finite = (value: number | string | null): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;
