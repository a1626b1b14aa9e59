import { z } from 'zod';
import { float32Values, isSameShape, type NamedTensors } from '../../../formats/tensor/tensor.js';
import {
  type DecisionDetails,
  DecisionTally,
  decisionDetailsSchema,
  largestOf,
  metricsOfDecisions,
  minAgreementSchema,
  outcomeOfDecisions,
} from '../../../quality/tasks/agreement.js';
import {
  type Sample,
  SampleDigest,
  type Task,
  type TaskKind,
  type TaskResult,
} from '../../../quality/tasks/task.js';

const settingsSchema = z.object({
  /** The output with the scores, classes along its last axis. */
  output: z.string(),
  /** The share of places whose class must be the same. */
  minAgreement: minAgreementSchema,
});

/** Class scores: the largest must be that of the same class. */
export const argmax: TaskKind<z.infer<typeof settingsSchema>, DecisionDetails> = {
  id: 'argmax',
  revision: 2,
  summary: 'the class of the largest score along the last axis is that of the reference',
  settings: settingsSchema,
  details: decisionDetailsSchema,
  module: null,
  open: async ({ output, minAgreement }) => new ArgmaxTask(output, minAgreement),
};

/**
 * The rule for outputs that are class scores: at every place the largest score along the last axis must be that of the same class. Nothing is masked:
 * what is padding in the reference counts too.
 */
class ArgmaxTask implements Task<DecisionDetails> {
  readonly #output: string;
  readonly #tally: DecisionTally;
  readonly #data = new SampleDigest();

  constructor(output: string, minAgreement: number) {
    this.#output = output;
    this.#tally = new DecisionTally(minAgreement);
  }

  async take(sample: Sample, candidate: NamedTensors | null): Promise<void> {
    const { index: chunk, reference } = sample;
    this.#data.take(sample, [this.#output]);
    const theirs = reference.get(this.#output);
    const ours = candidate?.get(this.#output);
    if (theirs === undefined || ours === undefined || !isSameShape(ours, theirs)) {
      this.#tally.unjudged(chunk);
      return;
    }
    const classes = theirs.shape.at(-1) ?? 1;
    const places = theirs.shape.slice(0, -1);
    const [expected, actual] = [float32Values(theirs), float32Values(ours)];
    for (let start = 0; start < expected.length; start += classes) {
      const where = { chunk, at: placeOf(start / classes, places), what: 'class' } as const;
      this.#tally.decision();
      const end = start + classes;
      const [theirs, ours] = [largestOf(expected, start, end), largestOf(actual, start, end)];
      this.#tally.choice(where, theirs, ours, [expected.subarray(start, end), actual.subarray(start, end)]);
    }
  }

  result(): TaskResult<DecisionDetails> {
    const details: DecisionDetails = {
      kind: 'argmax',
      output: this.#output,
      decoder: null,
      ...this.#tally.counts(),
      durationsAgreed: null,
      emitted: null,
    };
    return {
      ...this.#data.identity(argmax, { output: this.#output }),
      outcome: outcomeOfDecisions(details),
      metrics: metricsOfDecisions(details),
      details,
    };
  }

  async close(): Promise<void> {}
}

/** The indices of a place in C order. */
function placeOf(place: number, sizes: readonly number[]): number[] {
  const at: number[] = [];
  let rest = place;
  for (const size of sizes.toReversed()) {
    at.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return at;
}
