import { TrtforgeError } from '../../../errors.js';
import { packedBytes } from '../../../formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { numbersOf } from '../../../formats/tensor/values.js';
import type { Encoded } from '../../../quality/tasks/transducer.js';
import { GreedyDecoder } from '../../../quality/tasks/transducer-decoder.js';
import type { BundleDecoder } from '../../bundle/open-decoder.js';
import type { JudgedTask } from '../compare/task-schema.js';
import type { TaskJudge } from './judge.js';
import { type RowCounts, RowDecoders } from './row.js';
import { SwappedDecoder, SwapTally, swapResult } from './swap.js';
import { TaskTally } from './tally.js';

/**
 * Decodes the encoder outputs of reference and candidate with the same predictor and joint network, each row of a batch by itself and over the borders of
 * chunks, and holds the candidate's decisions against the reference's: tokens and durations must be the same.
 */
export class TransducerTask implements TaskJudge {
  readonly #output: string;
  readonly #lengths: string | null;
  readonly #decoder: BundleDecoder;
  readonly #tally: TaskTally;
  readonly #swap: {
    readonly decoder: BundleDecoder;
    readonly limit: number;
    readonly tally: SwapTally;
  } | null;
  readonly #rows: RowDecoders[] = [];

  /** `lengths` names the output with the valid steps of each row; null: all are. `share` as `TaskTally` takes it. `swap` is the candidate's own decoder, whose logits count as equal up to a limit. */
  constructor(
    output: string,
    lengths: string | null,
    decoder: BundleDecoder,
    share: number,
    swap: { readonly decoder: BundleDecoder; readonly limit: number } | null = null,
  ) {
    this.#output = output;
    this.#lengths = lengths;
    this.#decoder = decoder;
    this.#tally = new TaskTally(share);
    this.#swap = swap === null ? null : { ...swap, tally: new SwapTally() };
  }

  async take(chunk: number, candidate: NamedTensors | null, reference: NamedTensors): Promise<void> {
    const expected = this.#encoded(reference);
    const given = candidate === null ? [] : this.#encoded(candidate);
    if (expected.length === 0 || given.length !== expected.length) this.#tally.unjudged(chunk);
    for (const [row, encoded] of expected.entries()) {
      this.#rows[row] ??= await this.#begin(row);
      await this.#rows[row].take(chunk, encoded, given.length === expected.length ? given[row] : undefined);
    }
  }

  async #begin(row: number): Promise<RowDecoders> {
    const { models, facts } = this.#decoder;
    const led = await GreedyDecoder.begin(models, facts);
    if (this.#swap === null) return new RowDecoders(row, this.#tally, led, facts.blankId);
    const { tally, decoder } = this.#swap;
    const own = await GreedyDecoder.begin(decoder.models, decoder.facts);
    return new RowDecoders(row, this.#tally, led, facts.blankId, new SwappedDecoder(tally, own));
  }

  result(): JudgedTask {
    const all = this.#rows.map(({ counts }) => counts);
    const sum = (of: (counts: RowCounts) => number) => all.reduce((total, counts) => total + of(counts), 0);
    return {
      kind: 'transducer',
      output: this.#output,
      decoder: this.#decoder.path,
      ...this.#tally.told(),
      agreed: sum(({ tokens }) => tokens),
      durationsAgreed: this.#decoder.facts.durations.length === 0 ? null : sum(({ durations }) => durations),
      emitted: {
        reference: sum(({ emitted }) => emitted.reference.length),
        candidate: sum(({ emitted }) => emitted.candidate.length),
        equal: all.every(({ emitted }) => emitted.reference.join() === emitted.candidate.join()),
      },
      swap:
        this.#swap === null ? null : swapResult(this.#swap.decoder.path, this.#swap.tally, this.#swap.limit),
    };
  }

  async close(): Promise<void> {
    await this.#swap?.decoder.close();
    await this.#decoder.close();
  }

  /** The rows of an encoder output, each as a batch of one. Throws TF_BUNDLE_MISMATCH when it is not what the joint network takes. */
  #encoded(outputs: NamedTensors): readonly Encoded[] {
    const tensor = outputs.get(this.#output);
    if (tensor === undefined) return [];
    this.#refuseMisfit(tensor);
    const { timeAxis } = this.#decoder.facts;
    const lengths = this.#lengths === null ? undefined : outputs.get(this.#lengths);
    const valid = lengths === undefined ? [] : numbersOf(lengths);
    const steps = tensor.shape[timeAxis] ?? 0;
    return rowsOf(tensor).map((output, row) => ({
      output,
      steps: Math.max(0, Math.min(valid[row] ?? steps, steps)),
    }));
  }

  #refuseMisfit({ shape }: Tensor): void {
    const { encoderInput, facts, path } = this.#decoder;
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
      `${this.#output} is [${shape.join(', ')}]; the joint network of ${path} takes ${encoderInput.name} as [${declared.map((size) => size ?? '?').join(', ')}], a row at a time.`,
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
