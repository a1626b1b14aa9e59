import { measure } from '../verify/result.js';
import type { Exchange } from './decisions.js';
import type { Encoded } from './transducer.js';
import type { Decision, GreedyDecoder, TokenDecoder } from './transducer-decoder.js';

/** The distance of logits and decisions, led along a reference, from it. */
export class Drift {
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

/** Of each combination of encoder and decoder: whose encoder, then whose decoder gave the logits. */
export type ExchangeDrifts = Readonly<Record<Exclude<keyof Exchange, 'decoder' | 'logits'>, Drift>>;

export const exchangeDrifts = (): ExchangeDrifts => ({
  referenceReference: new Drift(),
  referenceCandidate: new Drift(),
  candidateReference: new Drift(),
  candidateCandidate: new Drift(),
});

/** The candidate's own decoder beside the reference's, led the same way. */
export class ExchangedDecoder {
  readonly #drifts: ExchangeDrifts;
  readonly #decoder: GreedyDecoder;

  constructor(drifts: ExchangeDrifts, decoder: GreedyDecoder) {
    this.#drifts = drifts;
    this.#decoder = decoder;
  }

  /** One decision of `led`, the reference's decoder, which has not been taken yet. */
  async compare(
    led: GreedyDecoder,
    expected: Decision,
    { reference, candidate }: { readonly reference: Encoded; readonly candidate: Encoded },
  ): Promise<void> {
    const { step } = expected;
    this.#drifts.referenceReference.add(expected, await led.decide(reference, step));
    this.#drifts.candidateReference.add(expected, await led.decide(candidate, step));
    this.#drifts.referenceCandidate.add(expected, await this.#decoder.decide(reference, step));
    this.#drifts.candidateCandidate.add(expected, await this.#decoder.decide(candidate, step));
  }

  take(expected: Decision): Promise<void> {
    return this.#decoder.take(expected);
  }
}

export const exchangeResult = ({ path, logits }: TokenDecoder, drifts: ExchangeDrifts): Exchange => ({
  decoder: path,
  logits,
  referenceReference: measure(drifts.referenceReference.largest),
  referenceCandidate: measure(drifts.referenceCandidate.largest),
  candidateReference: measure(drifts.candidateReference.largest),
  candidateCandidate: measure(drifts.candidateCandidate.largest),
});
