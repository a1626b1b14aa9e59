import {
  type Encoded,
  jointLogits,
  PredictorState,
  type Runner,
  type TransducerFacts,
} from './transducer.js';

/** What a greedy decoder decided at one step, and by how much. */
export interface Decision {
  /** Encoder step it looked at. */
  readonly step: number;
  /** The blank's id where nothing was emitted. */
  readonly token: number;
  /** Index among the durations; 0 without durations. */
  readonly duration: number;
  /** Best logit less the second best. */
  readonly tokenMargin: number;
  /** Infinity without durations. */
  readonly durationMargin: number;
  readonly logits: Float32Array;
}

/** Tokens at one encoder step before the decoder moves on in any case, as NeMo's default. */
const MOST_PER_STEP = 10;

export interface DecodingModels {
  readonly predictor: Runner;
  readonly joint: Runner;
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
  const predictor = new PredictorState(models.predictor, facts);
  await predictor.feed(facts.blankId);
  const decide = async (step: number): Promise<Decision> =>
    decisionOf(step, await jointLogits(models.joint, encoded, step, predictor.output!, facts), facts);
  const decisions: Decision[] = [];
  if (path !== undefined) {
    for (const { step, token } of path) {
      decisions.push(await decide(step));
      if (token !== facts.blankId) await predictor.feed(token);
    }
    return decisions;
  }
  for (let step = 0, here = 0; step < encoded.steps; ) {
    const decision = await decide(step);
    decisions.push(decision);
    const isBlank = decision.token === facts.blankId;
    if (!isBlank) await predictor.feed(decision.token);
    here++;
    const advance = facts.durations[decision.duration] ?? (isBlank ? 1 : 0);
    const forced = isBlank || here >= MOST_PER_STEP ? Math.max(1, advance) : advance;
    if (forced > 0) here = 0;
    step += forced;
  }
  return decisions;
}

/** Reads one row of logits: tokens and blank first, then durations. */
export function decisionOf(step: number, logits: Float32Array, { tokenLogits }: TransducerFacts): Decision {
  const token = best(logits, 0, Math.min(tokenLogits, logits.length));
  const duration = best(logits, tokenLogits, logits.length);
  return {
    step,
    token: token.index,
    duration: duration.index,
    tokenMargin: token.margin,
    durationMargin: duration.margin,
    logits,
  };
}

/** Largest of a range and its lead over the next; the first of equals. NaN is never the best. */
function best(
  values: Float32Array,
  start: number,
  end: number,
): { readonly index: number; readonly margin: number } {
  let index = 0;
  let first = Number.NEGATIVE_INFINITY;
  let second = Number.NEGATIVE_INFINITY;
  for (let at = start; at < end; at++) {
    const value = values[at]!;
    if (value > first) {
      second = first;
      first = value;
      index = at - start;
    } else if (value > second) second = value;
  }
  return { index, margin: end <= start ? Number.POSITIVE_INFINITY : first - second };
}
