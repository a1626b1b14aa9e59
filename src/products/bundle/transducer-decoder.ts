import type { Binding } from '../../engines/runtime/session.js';
import { type Decision, largestOf } from '../../quality/tasks/agreement.js';
import {
  type Encoded,
  jointLogits,
  PredictorState,
  type Runner,
  type TransducerFacts,
} from './transducer.js';

/** Decisions at one encoder step before the decoder moves on in any case: NeMo's default of `max_symbols`. */
const MOST_PER_STEP = 10;

export interface DecodingModels {
  readonly predictor: Runner;
  readonly joint: Runner;
}

/** A predictor and a joint network that are open: what turns encoder outputs into tokens. */
export interface TokenDecoder {
  /** Where it is described, for messages. */
  readonly path: string;
  /** Of the content of both models and of the facts; the same wherever the files lie. */
  readonly digest: string;
  readonly facts: TransducerFacts;
  readonly models: DecodingModels;
  /** The joint network's input from an encoder. */
  readonly encoderInput: { readonly name: string; readonly shape: Binding['shape'] };
  /** The output of the joint network. */
  readonly logits: string;
  close(): Promise<void>;
}

/**
 * One greedy decoder on its way through encoder steps, which may come piece by piece: its place counts from the beginning of the piece at hand, and what a
 * duration leads beyond its end is gone on from in the next.
 */
export class GreedyDecoder {
  readonly #joint: Runner;
  readonly #facts: TransducerFacts;
  readonly #predictor: PredictorState;
  #step = 0;
  #decidedAtStep = 0;

  private constructor(joint: Runner, facts: TransducerFacts, predictor: PredictorState) {
    this.#joint = joint;
    this.#facts = facts;
    this.#predictor = predictor;
  }

  /** A decoder before the first step: its predictor has seen the blank. */
  static async begin({ predictor, joint }: DecodingModels, facts: TransducerFacts): Promise<GreedyDecoder> {
    const state = new PredictorState(predictor, facts);
    await state.feed(facts.blankId);
    return new GreedyDecoder(joint, facts, state);
  }

  /** Encoder step to decide about next. */
  get step(): number {
    return this.#step;
  }

  /** The best decision at a step, by what the predictor has seen; changes nothing. */
  async decide(encoded: Encoded, step = this.#step): Promise<Decision> {
    const logits = await jointLogits(this.#joint, encoded, step, this.#predictor.output!, this.#facts);
    return decisionOf(step, logits, this.#facts);
  }

  /**
   * Goes on by a decision, its own or another's, as NeMo's greedy decoders do (`rnnt_greedy_decoding.py`): by its duration; by one step after a blank of no
   * duration, which would be decided again and again; and after the last decision at a step by one more, where there are durations, or by one.
   */
  async take({ token, duration }: Pick<Decision, 'token' | 'duration'>): Promise<void> {
    const { blankId, durations } = this.#facts;
    const isBlank = token === blankId;
    if (!isBlank) await this.#predictor.feed(token);
    this.#decidedAtStep++;
    const isLast = this.#decidedAtStep >= MOST_PER_STEP;
    const advance = durations[duration] ?? (isBlank ? 1 : 0);
    const extra = advance === 0 ? isBlank || isLast : isLast && durations.length > 0;
    const steps = advance + Number(extra);
    if (steps > 0) this.#decidedAtStep = 0;
    this.#step += steps;
  }

  /** Decides about a piece to its end, and goes on by its own decisions. */
  async through(encoded: Encoded): Promise<readonly Decision[]> {
    const decisions: Decision[] = [];
    while (this.#step < encoded.steps) {
      const decision = await this.decide(encoded);
      decisions.push(decision);
      await this.take(decision);
    }
    return decisions;
  }

  /** The piece at hand, of so many steps, is over. */
  leave(steps: number): void {
    this.#step = Math.max(0, this.#step - steps);
  }

  /** Another decoder that has come the same way. */
  fork(): GreedyDecoder {
    const forked = new GreedyDecoder(this.#joint, this.#facts, this.#predictor.fork());
    forked.#step = this.#step;
    forked.#decidedAtStep = this.#decidedAtStep;
    return forked;
  }
}

/**
 * Greedy decoding of a token-and-duration transducer (Xu et al. 2023): at each step the best token and the best duration; a token that is not the blank is
 * fed to the predictor; the decoder moves on by the duration, and a blank always by at least one step. Without durations a plain transducer: blank moves one
 * step, a token none.
 *
 * With `path`, decisions of another decoder, the same steps and tokens are gone through whatever this one would have decided, so that both can be compared
 * decision by decision after the first difference too.
 */
export async function decode(
  models: DecodingModels,
  encoded: Encoded,
  facts: TransducerFacts,
  path?: readonly Decision[],
): Promise<readonly Decision[]> {
  const decoder = await GreedyDecoder.begin(models, facts);
  if (path === undefined) return decoder.through(encoded);
  const decisions: Decision[] = [];
  for (const expected of path) {
    decisions.push(await decoder.decide(encoded, expected.step));
    await decoder.take(expected);
  }
  return decisions;
}

/** Reads one row of logits: tokens and blank first, then durations. */
export function decisionOf(step: number, logits: Float32Array, { tokenLogits }: TransducerFacts): Decision {
  const token = largestOf(logits, 0, Math.min(tokenLogits, logits.length));
  const duration = largestOf(logits, tokenLogits, logits.length);
  return {
    step,
    token: token.index,
    duration: duration.index,
    tokenMargin: token.margin,
    durationMargin: duration.margin,
    logits,
  };
}
