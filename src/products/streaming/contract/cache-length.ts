import type { CacheLengthRule } from '../../../formats/contract/contract.js';
import { stepsOf } from '../fastconformer.js';

export interface PredictedLength {
  readonly frames: number;
  readonly stateIn: number;
  /** Negative where the contract cannot be: more is dropped than comes in. */
  readonly stateOut: number;
}

/** The length of the state after each chunk, by the rule. It reproduces every length that was published for the Parakeet streaming encoder. */
export function simulateLengths(
  { capacity, dropExtra, drop }: CacheLengthRule,
  frames: Iterable<number>,
  start = 0,
): readonly PredictedLength[] {
  let stateIn = start;
  const predicted: PredictedLength[] = [];
  for (const each of frames) {
    const stateOut = Math.min(capacity, stateIn + stepsOf(each) - dropExtra - drop);
    predicted.push({ frames: each, stateIn, stateOut });
    stateIn = stateOut;
  }
  return predicted;
}

/** Valid steps of every result: those of the chunk's own frames, without what looks ahead. */
export const validResultLength = (rule: CacheLengthRule, ownFrames: number): number =>
  stepsOf(ownFrames) - rule.drop;

/** Chunk sizes of a stream: the first, then the rest. */
export const scheduled = (
  { first, rest }: { first: number; rest: number },
  chunks: number,
): readonly number[] => Array.from({ length: chunks }, (_, chunk) => (chunk === 0 ? first : rest));
