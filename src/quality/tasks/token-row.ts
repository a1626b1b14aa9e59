import type { DecisionTally } from './decisions.js';
import type { ExchangedDecoder } from './exchanged-decoder.js';
import type { Encoded } from './transducer.js';
import type { Decision, GreedyDecoder } from './transducer-decoder.js';

export interface RowCounts {
  readonly tokens: number;
  readonly durations: number;
  readonly emitted: { readonly reference: readonly number[]; readonly candidate: readonly number[] };
}

/** The decoders of one row: one that goes the reference's way, and from the first difference on one that goes the candidate's own. */
export class RowDecoders {
  readonly #row: number;
  readonly #tally: DecisionTally;
  readonly #led: GreedyDecoder;
  readonly #blankId: number;
  readonly #exchanged: ExchangedDecoder | null;
  readonly #emitted: number[] = [];
  #free: { readonly decoder: GreedyDecoder; readonly emitted: number[] } | undefined;
  #tokens = 0;
  #durations = 0;

  /** `exchanged` is asked about the same decisions, where the candidate has a decoder of its own. */
  constructor(
    row: number,
    tally: DecisionTally,
    led: GreedyDecoder,
    blankId: number,
    exchanged: ExchangedDecoder | null = null,
  ) {
    this.#row = row;
    this.#tally = tally;
    this.#led = led;
    this.#blankId = blankId;
    this.#exchanged = exchanged;
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
      if (candidate !== undefined && step < candidate.steps) {
        this.#compare(chunk, expected, await this.#led.decide(candidate));
        await this.#exchanged?.compare(this.#led, expected, { reference, candidate });
      }
      this.#emit(this.#emitted, expected);
      await this.#exchanged?.take(expected);
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
      expected.logits,
    );
    const sameDuration = this.#tally.choice(
      { ...where, what: 'duration' },
      { index: expected.duration, margin: expected.durationMargin },
      { index: actual.duration, margin: actual.durationMargin },
      expected.logits,
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
