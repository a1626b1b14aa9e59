import { TrtforgeError } from '../../errors.js';
import { packedBytes } from '../../formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { numbersOf } from '../../formats/tensor/values.js';
import { type DecisionDetails, DecisionTally, metricsOfDecisions, outcomeOfDecisions } from './decisions.js';
import { ExchangedDecoder, ExchangeTally, exchangeResult } from './exchanged-decoder.js';
import { type Sample, SampleDigest, type Task, type TaskKind, type TaskResult } from './task.js';
import type { TokenDecoder } from './token-decoder.js';
import { type RowCounts, RowDecoders } from './token-row.js';
import type { Encoded } from './transducer.js';
import { GreedyDecoder } from './transducer-decoder.js';

/** What a `TokenTask` decodes with. */
export interface TokenTaskParts {
  /** The encoder output that is decoded. */
  readonly output: string;
  /** The output with the valid steps of each row; null: all are. */
  readonly lengths: string | null;
  readonly decoder: TokenDecoder;
  /** The candidate's own decoder, to exchange both; null: there is none. */
  readonly own: TokenDecoder | null;
  /** As `DecisionTally` takes it. */
  readonly share: number;
}

/**
 * Decodes the encoder outputs of reference and candidate with the same predictor and joint network, each row of a batch by itself and over the borders of
 * samples, and compares the candidate's decisions with the reference's: tokens and durations must be the same.
 */
export class TokenTask implements Task<DecisionDetails> {
  readonly #kind: Pick<TaskKind, 'id' | 'revision'>;
  readonly #parts: TokenTaskParts;
  readonly #tally: DecisionTally;
  readonly #exchange = new ExchangeTally();
  readonly #rows: RowDecoders[] = [];
  readonly #data = new SampleDigest();

  constructor(kind: Pick<TaskKind, 'id' | 'revision'>, parts: TokenTaskParts) {
    this.#kind = kind;
    this.#parts = parts;
    this.#tally = new DecisionTally(parts.share);
  }

  async take(sample: Sample, candidate: NamedTensors | null): Promise<void> {
    const { index: chunk, reference } = sample;
    const { output, lengths } = this.#parts;
    this.#data.take(sample, lengths === null ? [output] : [output, lengths]);
    const expected = this.#encoded(reference);
    const given = candidate === null ? [] : this.#encoded(candidate);
    if (expected.length === 0 || given.length !== expected.length) this.#tally.unjudged(chunk);
    for (const [row, encoded] of expected.entries()) {
      this.#rows[row] ??= await this.#begin(row);
      await this.#rows[row].take(chunk, encoded, given.length === expected.length ? given[row] : undefined);
    }
  }

  async #begin(row: number): Promise<RowDecoders> {
    const { decoder, own } = this.#parts;
    const { models, facts } = decoder;
    const led = await GreedyDecoder.begin(models, facts);
    if (own === null) return new RowDecoders(row, this.#tally, led, facts.blankId);
    const theirs = await GreedyDecoder.begin(own.models, own.facts);
    const exchanged = new ExchangedDecoder(this.#exchange, theirs);
    return new RowDecoders(row, this.#tally, led, facts.blankId, exchanged);
  }

  result(): TaskResult<DecisionDetails> {
    const { output, lengths, decoder, own } = this.#parts;
    const all = this.#rows.map(({ counts }) => counts);
    const sum = (of: (counts: RowCounts) => number) => all.reduce((total, counts) => total + of(counts), 0);
    const details: DecisionDetails = {
      kind: 'transducer',
      output,
      decoder: decoder.path,
      ...this.#tally.counts(),
      agreed: sum(({ tokens }) => tokens),
      durationsAgreed: decoder.facts.durations.length === 0 ? null : sum(({ durations }) => durations),
      emitted: {
        reference: sum(({ emitted }) => emitted.reference.length),
        candidate: sum(({ emitted }) => emitted.candidate.length),
        equal: all.every(({ emitted }) => emitted.reference.join() === emitted.candidate.join()),
      },
      swap: own === null ? null : exchangeResult(own, this.#exchange),
    };
    return {
      ...this.#data.identity(this.#kind, { output, lengths, decoder: decoder.digest }),
      outcome: outcomeOfDecisions(details),
      metrics: metricsOfDecisions(details),
      details,
    };
  }

  async close(): Promise<void> {
    await this.#parts.own?.close();
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
          'Give the meta file of the bundle that this encoder belongs to, or name its output with --task-output.',
      },
    );
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
