import { measure } from '../verify/result.js';
import type { Exchange } from './decisions.js';
import type { TokenDecoder } from './token-decoder.js';
import type { Encoded } from './transducer.js';
import type { Decision, GreedyDecoder } from './transducer-decoder.js';

/** Whose encoder, then whose decoder gave the logits. */
type Way = Exclude<keyof Exchange, 'decoder' | 'logits'>;

/** How far the logits of each combination of encoder and decoder move from the reference's own, over all decisions of the reference. */
export class ExchangeTally {
  readonly #largest: Record<Way, number> = {
    referenceReference: 0,
    referenceCandidate: 0,
    candidateReference: 0,
    candidateCandidate: 0,
  };

  get errors(): Readonly<Record<Way, number>> {
    return this.#largest;
  }

  add(way: Way, expected: Decision, actual: Decision): void {
    for (const [index, value] of expected.logits.entries()) {
      const error = Math.abs(actual.logits[index]! - value);
      // What is not finite is as far off as can be.
      const size = Number.isNaN(error) ? Number.POSITIVE_INFINITY : error;
      if (size > this.#largest[way]) this.#largest[way] = size;
    }
  }
}

/** The candidate's own decoder beside the reference's, led the same way. */
export class ExchangedDecoder {
  readonly #tally: ExchangeTally;
  readonly #decoder: GreedyDecoder;

  constructor(tally: ExchangeTally, decoder: GreedyDecoder) {
    this.#tally = tally;
    this.#decoder = decoder;
  }

  /** One decision of `led`, the reference's decoder, which has not been taken yet. */
  async compare(
    led: GreedyDecoder,
    expected: Decision,
    { reference, candidate }: { readonly reference: Encoded; readonly candidate: Encoded },
  ): Promise<void> {
    const { step } = expected;
    this.#tally.add('referenceReference', expected, await led.decide(reference, step));
    this.#tally.add('candidateReference', expected, await led.decide(candidate, step));
    this.#tally.add('referenceCandidate', expected, await this.#decoder.decide(reference, step));
    this.#tally.add('candidateCandidate', expected, await this.#decoder.decide(candidate, step));
  }

  take(expected: Decision): Promise<void> {
    return this.#decoder.take(expected);
  }
}

export const exchangeResult = ({ path, logits }: TokenDecoder, { errors }: ExchangeTally): Exchange => ({
  decoder: path,
  logits,
  referenceReference: measure(errors.referenceReference),
  referenceCandidate: measure(errors.referenceCandidate),
  candidateReference: measure(errors.candidateReference),
  candidateCandidate: measure(errors.candidateCandidate),
});
