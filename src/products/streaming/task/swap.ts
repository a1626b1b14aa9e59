import type { Encoded } from '../../../quality/tasks/transducer.js';
import type { Decision, GreedyDecoder } from '../../../quality/tasks/transducer-decoder.js';
import { measure } from '../../../quality/verify/result.js';
import type { Explanation } from '../compare/result-schema.js';
import type { SwapResult } from '../compare/task-schema.js';
import { explainSwap, type SwapErrors } from '../explain/runs.js';

/** How far the logits of each combination of encoder and decoder move from the reference's own, over all decisions of the reference. */
export class SwapTally {
  readonly #largest: { -readonly [Way in keyof SwapErrors]: number } = {
    referenceReference: 0,
    referenceCandidate: 0,
    candidateReference: 0,
    candidateCandidate: 0,
  };

  get errors(): SwapErrors {
    return this.#largest;
  }

  add(way: keyof SwapErrors, expected: Decision, actual: Decision): void {
    for (const [index, value] of expected.logits.entries()) {
      const error = Math.abs(actual.logits[index]! - value);
      // What is not finite is as far off as can be.
      const size = Number.isNaN(error) ? Number.POSITIVE_INFINITY : error;
      if (size > this.#largest[way]) this.#largest[way] = size;
    }
  }
}

/** The candidate's own decoder beside the reference's, led the same way. */
export class SwappedDecoder {
  readonly #tally: SwapTally;
  readonly #decoder: GreedyDecoder;

  constructor(tally: SwapTally, decoder: GreedyDecoder) {
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

export const swapResult = (decoder: string, { errors }: SwapTally, limit: number): SwapResult => ({
  decoder,
  limit,
  referenceReference: measure(errors.referenceReference),
  referenceCandidate: measure(errors.referenceCandidate),
  candidateReference: measure(errors.candidateReference),
  candidateCandidate: measure(errors.candidateCandidate),
});

/** Which of encoder and decoder the error comes from. */
export const explainSwapped = ({ limit, ...found }: SwapResult): Explanation =>
  explainSwap(
    {
      referenceReference: Number(found.referenceReference),
      referenceCandidate: Number(found.referenceCandidate),
      candidateReference: Number(found.candidateReference),
      candidateCandidate: Number(found.candidateCandidate),
    },
    ['encoder', 'decoder'],
    limit,
  );
