import { type Decision, GreedyDecoder } from '../bundle/decode.js';
import type { BundleDecoder } from '../bundle/open-decoder.js';
import type { Encoded } from '../bundle/transducer.js';
import { TrtforgeError } from '../errors.js';
import { packedBytes } from '../tensor/dtype.js';
import type { NamedTensors, Tensor } from '../tensor/tensor.js';
import { numbersOf } from '../tensor/values.js';
import type { TaskJudge } from './task-judge.js';
import type { JudgedTask } from './task-schema.js';
import { TaskTally } from './task-tally.js';

/**
 * Decodes the encoder outputs of reference and candidate with the same predictor and joint network, each row of a batch by itself and over the borders of
 * chunks, and holds the candidate's decisions against the reference's: tokens and durations must be the same.
 */
export class TransducerTask implements TaskJudge {
  readonly #output: string;
  readonly #lengths: string | null;
  readonly #decoder: BundleDecoder;
  readonly #tally = new TaskTally();
  readonly #rows: RowDecoders[] = [];

  /** `lengths` names the output with the valid steps of each row; null: all are. */
  constructor(output: string, lengths: string | null, decoder: BundleDecoder) {
    this.#output = output;
    this.#lengths = lengths;
    this.#decoder = decoder;
  }

  async take(chunk: number, candidate: NamedTensors | null, reference: NamedTensors): Promise<void> {
    const expected = this.#encoded(reference);
    const given = candidate === null ? [] : this.#encoded(candidate);
    if (expected.length === 0 || given.length !== expected.length) this.#tally.unjudged(chunk);
    for (const [row, encoded] of expected.entries()) {
      const { models, facts } = this.#decoder;
      this.#rows[row] ??= new RowDecoders(
        row,
        this.#tally,
        await GreedyDecoder.begin(models, facts),
        facts.blankId,
      );
      await this.#rows[row].take(chunk, encoded, given.length === expected.length ? given[row] : undefined);
    }
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
    };
  }

  close(): Promise<void> {
    return this.#decoder.close();
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

interface RowCounts {
  readonly tokens: number;
  readonly durations: number;
  readonly emitted: { readonly reference: readonly number[]; readonly candidate: readonly number[] };
}

/** The decoders of one row: one that goes the reference's way, and from the first difference on one that goes the candidate's own. */
class RowDecoders {
  readonly #row: number;
  readonly #tally: TaskTally;
  readonly #led: GreedyDecoder;
  readonly #blankId: number;
  readonly #emitted: number[] = [];
  #free: { readonly decoder: GreedyDecoder; readonly emitted: number[] } | undefined;
  #tokens = 0;
  #durations = 0;

  constructor(row: number, tally: TaskTally, led: GreedyDecoder, blankId: number) {
    this.#row = row;
    this.#tally = tally;
    this.#led = led;
    this.#blankId = blankId;
  }

  get counts(): RowCounts {
    const candidate = this.#free?.emitted ?? this.#emitted;
    return {
      tokens: this.#tokens,
      durations: this.#durations,
      emitted: { reference: this.#emitted, candidate },
    };
  }

  async take(chunk: number, reference: Encoded, candidate: Encoded | undefined): Promise<void> {
    if (candidate === undefined || candidate.steps !== reference.steps) this.#part();
    if (candidate !== undefined && candidate.steps !== reference.steps)
      this.#tally.steps(chunk, this.#row, reference.steps, candidate.steps);
    while (this.#led.step < reference.steps) {
      const { step } = this.#led;
      const expected = await this.#led.decide(reference);
      this.#tally.decision();
      if (candidate !== undefined && step < candidate.steps)
        this.#compare(chunk, expected, await this.#led.decide(candidate));
      this.#emit(this.#emitted, expected);
      await this.#led.take(expected);
    }
    this.#led.leave(reference.steps);
    await this.#goOn(candidate, reference.steps);
  }

  #compare(chunk: number, expected: Decision, actual: Decision): void {
    const where = { chunk, at: [this.#row, expected.step] };
    const sameToken = this.#tally.choice(
      { ...where, what: 'token' },
      { index: expected.token, margin: expected.tokenMargin },
      { index: actual.token, margin: actual.tokenMargin },
    );
    const sameDuration = this.#tally.choice(
      { ...where, what: 'duration' },
      { index: expected.duration, margin: expected.durationMargin },
      { index: actual.duration, margin: actual.durationMargin },
    );
    this.#tokens += Number(sameToken);
    this.#durations += Number(sameDuration);
    if (!sameToken || !sameDuration) this.#part();
  }

  /** From here on the candidate is decoded by its own decisions too. */
  #part(): void {
    this.#free ??= { decoder: this.#led.fork(), emitted: [...this.#emitted] };
  }

  async #goOn(candidate: Encoded | undefined, referenceSteps: number): Promise<void> {
    if (this.#free === undefined) return;
    const { decoder, emitted } = this.#free;
    while (candidate !== undefined && decoder.step < candidate.steps) {
      const decision = await decoder.decide(candidate);
      this.#emit(emitted, decision);
      await decoder.take(decision);
    }
    decoder.leave(candidate?.steps ?? referenceSteps);
  }

  #emit(emitted: number[], { token }: Decision): void {
    if (token !== this.#blankId) emitted.push(token);
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
