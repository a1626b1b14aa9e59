import { z } from 'zod';
import { TrtforgeError } from '../../errors.js';
import { packedBytes } from '../../formats/tensor/dtype.js';
import { type NamedTensors, numbersOf, type Tensor } from '../../formats/tensor/tensor.js';
import {
  type Decision,
  type DecisionDetails,
  DecisionTally,
  decisionDetailsSchema,
  metricsOfDecisions,
  minAgreementSchema,
  outcomeOfDecisions,
} from '../../quality/tasks/agreement.js';
import {
  type Sample,
  SampleDigest,
  type Task,
  type TaskKind,
  type TaskResult,
} from '../../quality/tasks/task.js';
import { openDecoder } from './open-decoder.js';
import type { Encoded, TransducerFacts } from './transducer.js';
import { GreedyDecoder, type TokenDecoder } from './transducer-decoder.js';

const settingsSchema = z.object({
  /** The encoder output that is decoded. */
  output: z.string(),
  /** The output with the valid steps of each row; null: all are. */
  lengths: z.string().nullable(),
  /** The `model_meta.json` of a bundle whose predictor and joint network decode the outputs of both. */
  decoder: z.string(),
  /** The share of tokens and of durations that must be the same. */
  minAgreement: minAgreementSchema,
});

/** Encoder outputs, decoded by the predictor and the joint network of a bundle. */
export const taskKind: TaskKind<z.infer<typeof settingsSchema>, DecisionDetails> = {
  id: 'tokens',
  revision: 3,
  summary: 'encoder outputs decode to the tokens and durations of the reference',
  settings: settingsSchema,
  details: decisionDetailsSchema,
  module: new URL('../../../dist/products/bundle/token-task.js', import.meta.url),
  open: async ({ output, lengths, decoder: path, minAgreement }, context) =>
    new TokenTask(taskKind, {
      ...{ output, lengths, minAgreement },
      decoder: await openDecoder(path, context),
    }),
};

/** The parts that a `TokenTask` decodes with. */
export interface TokenTaskParts {
  /** The encoder output that is decoded. */
  readonly output: string;
  /** The output with the valid steps of each row; null: all are. */
  readonly lengths: string | null;
  readonly decoder: TokenDecoder;
  /** The share of tokens and of durations that must be the same. */
  readonly minAgreement: number;
}

/**
 * Decodes the encoder outputs of reference and candidate with the same predictor and joint network, each row of a batch by itself and over the borders of
 * samples, and compares the candidate's decisions with the reference's: tokens and durations must be the same.
 */
export class TokenTask implements Task<DecisionDetails> {
  readonly #kind: Pick<TaskKind, 'id' | 'revision'>;
  readonly #parts: TokenTaskParts;
  readonly #tally: DecisionTally;
  readonly #rows: RowDecoders[] = [];
  readonly #data = new SampleDigest();

  constructor(kind: Pick<TaskKind, 'id' | 'revision'>, parts: TokenTaskParts) {
    this.#kind = kind;
    this.#parts = parts;
    this.#tally = new DecisionTally(parts.minAgreement);
  }

  async take(sample: Sample, candidate: NamedTensors | null): Promise<void> {
    const { index: chunk, reference } = sample;
    const { output, lengths } = this.#parts;
    this.#data.take(sample, lengths === null ? [output] : [output, lengths]);
    const expected = this.#encoded(reference);
    const actual = candidate === null ? [] : this.#encoded(candidate);
    if (expected.length === 0 || actual.length !== expected.length) this.#tally.unjudged(chunk);
    for (const [row, encoded] of expected.entries()) {
      this.#rows[row] ??= await this.#begin(row);
      await this.#rows[row].take(chunk, encoded, actual.length === expected.length ? actual[row] : undefined);
    }
  }

  async #begin(row: number): Promise<RowDecoders> {
    const { models, facts } = this.#parts.decoder;
    return new RowDecoders(row, this.#tally, await GreedyDecoder.begin(models, facts), facts);
  }

  result(): TaskResult<DecisionDetails> {
    const { output, lengths, decoder } = this.#parts;
    const emitted = this.#rows.map((row) => row.emitted);
    const counts = this.#tally.counts();
    const details: DecisionDetails = {
      kind: 'transducer',
      output,
      decoder: decoder.path,
      ...counts,
      durationsAgreed: decoder.facts.durations.length === 0 ? null : counts.durationsAgreed,
      emitted: {
        reference: emitted.flatMap(({ reference }) => reference).length,
        candidate: emitted.flatMap(({ candidate }) => candidate).length,
        equal: emitted.every(({ reference, candidate }) => reference.join() === candidate.join()),
      },
    };
    return {
      ...this.#data.identity(this.#kind, { output, lengths, decoder: decoder.digest }),
      outcome: outcomeOfDecisions(details),
      metrics: metricsOfDecisions(details),
      details,
    };
  }

  async close(): Promise<void> {
    await this.#parts.decoder.close();
  }

  /** The rows of an encoder output, each as a batch of one. Throws TF_BUNDLE_MISMATCH when it is not what the joint network takes. */
  #encoded(outputs: NamedTensors): readonly Encoded[] {
    const { output: name, lengths: lengthsName, decoder } = this.#parts;
    const tensor = outputs.get(name);
    if (tensor === undefined) return [];
    this.#assertFits(tensor);
    const { timeAxis } = decoder.facts;
    const lengths = lengthsName === null ? undefined : outputs.get(lengthsName);
    const valid = lengths === undefined ? [] : numbersOf(lengths);
    const steps = tensor.shape[timeAxis] ?? 0;
    return rowsOf(tensor).map((output, row) => ({
      output,
      steps: Math.max(0, Math.min(valid[row] ?? steps, steps)),
    }));
  }

  #assertFits({ shape }: Tensor): void {
    const { encoderInput, facts, path } = this.#parts.decoder;
    const declared = encoderInput.shape ?? shape;
    // Rows go one at a time, and steps as many at a time as the joint network takes.
    const taken = shape.with(0, 1);
    const fits =
      declared.length === shape.length &&
      declared.every(
        (size, axis) => axis === facts.timeAxis || typeof size !== 'number' || size === taken[axis],
      );
    if (fits) return;
    throw new TrtforgeError(
      'TF_BUNDLE_MISMATCH',
      `${this.#parts.output} is [${shape.join(', ')}]; the joint network of ${path} takes ${encoderInput.name} as [${declared.map((size) => size ?? '?').join(', ')}], a row at a time.`,
      {
        remedy:
          'Pass the meta file of the bundle that this encoder belongs to, or name its output with --task-output.',
      },
    );
  }
}

/** The decoders of one row: one that goes the reference's way, and from the first difference on one that goes the candidate's own. */
class RowDecoders {
  readonly #row: number;
  readonly #tally: DecisionTally;
  readonly #led: GreedyDecoder;
  readonly #facts: TransducerFacts;
  readonly #emitted: number[] = [];
  #free: { readonly decoder: GreedyDecoder; readonly emitted: number[] } | undefined;

  constructor(row: number, tally: DecisionTally, led: GreedyDecoder, facts: TransducerFacts) {
    this.#row = row;
    this.#tally = tally;
    this.#led = led;
    this.#facts = facts;
  }

  /** The tokens that came out of each. */
  get emitted(): { readonly reference: readonly number[]; readonly candidate: readonly number[] } {
    return { reference: this.#emitted, candidate: this.#free?.emitted ?? this.#emitted };
  }

  async take(chunk: number, reference: Encoded, candidate: Encoded | undefined): Promise<void> {
    if (candidate === undefined || candidate.steps !== reference.steps) this.#part();
    if (candidate !== undefined && candidate.steps !== reference.steps)
      this.#tally.steps(chunk, this.#row, reference.steps, candidate.steps);
    while (this.#led.step < reference.steps) {
      const { step } = this.#led;
      const expected = await this.#led.decide(reference);
      this.#tally.decision();
      if (candidate !== undefined && step < candidate.steps) {
        const where = { chunk, at: [this.#row, step] };
        const actual = await this.#led.decide(candidate);
        if (!this.#tally.decided(where, expected, actual, this.#facts.tokenLogits)) this.#part();
      }
      this.#emit(this.#emitted, expected);
      await this.#led.take(expected);
    }
    this.#led.leave(reference.steps);
    await this.#goOn(candidate, reference.steps);
  }

  /** From now on the candidate is decoded by its own decisions too. */
  #part(): void {
    this.#free ??= { decoder: this.#led.fork(), emitted: [...this.#emitted] };
  }

  async #goOn(candidate: Encoded | undefined, referenceSteps: number): Promise<void> {
    if (this.#free === undefined) return;
    const { decoder, emitted } = this.#free;
    if (candidate !== undefined)
      for (const decision of await decoder.through(candidate)) this.#emit(emitted, decision);
    decoder.leave(candidate?.steps ?? referenceSteps);
  }

  #emit(emitted: number[], { token }: Decision): void {
    if (token !== this.#facts.blankId) emitted.push(token);
  }
}

function rowsOf({ dtype, shape, bytes }: Tensor): readonly Tensor[] {
  const [rows = 1, ...rest] = shape;
  const width = packedBytes(
    dtype,
    rest.reduce((product, size) => product * size, 1),
  );
  return Array.from({ length: rows }, (_, row) => ({
    dtype,
    shape: [1, ...rest],
    bytes: bytes.subarray(row * width, (row + 1) * width),
  }));
}
