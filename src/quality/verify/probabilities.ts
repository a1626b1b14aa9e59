import type { Magnitudes } from '../../formats/tensor/compare/magnitudes.js';
import { eachPieceOf, type FloatReader } from '../../formats/tensor/float-reader.js';

/** An output whose values are all from 0 to 1. */
export interface Probabilities {
  /** Of a softmax or a sigmoid, the logits that its values stand for, log(p / (1 - p)): the largest, and their root mean square. 0 of anything else. */
  readonly logits: { readonly peak: number; readonly rms: number };
  /** Root mean square of p * (1 - p), by which an error of a logit moves its probability. */
  readonly steepness: number;
}

/** Nearer to 0 or 1 FP32 rounds. */
const LEAST_PROBABILITY = 2 ** -24;

/** Of rows of so many values; `areScores`: known to be those of a sigmoid or softmax. Undefined where values are no probabilities. */
export function probabilitiesOf(
  values: FloatReader,
  width: number,
  { least, peak }: Magnitudes,
  areScores = false,
): Probabilities | undefined {
  if (!(least >= 0 && peak <= 1)) return undefined;
  let [steep, squares, sum] = [0, 0, 0];
  let haveLogits = areScores || (least > 0 && width > 1);
  eachPieceOf(values, (piece, start) => {
    for (let i = 0; haveLogits && i < piece.length; i++) {
      const p = piece[i]!;
      steep += (p * (1 - p)) ** 2;
      squares += logitOf(p) ** 2;
      sum += p;
      if (areScores || (start + i + 1) % width > 0) continue;
      haveLogits = Math.abs(sum - 1) < SUM_ERROR;
      sum = 0;
    }
  });
  if (!haveLogits) return NO_LOGITS;
  const rms = Math.sqrt(squares / values.length);
  return {
    logits: { peak: Math.max(Math.abs(logitOf(least)), Math.abs(logitOf(peak))), rms },
    steepness: Math.sqrt(steep / values.length),
  };
}

/** The largest distance from 1 of the sum of a softmax's row. */
const SUM_ERROR = 1e-3;

/** The value without logits. */
export const NO_LOGITS: Probabilities = { logits: { peak: 0, rms: 0 }, steepness: 0 };

const logitOf = (p: number): number => {
  const kept = Math.min(Math.max(p, LEAST_PROBABILITY), 1 - LEAST_PROBABILITY);
  return Math.log(kept / (1 - kept));
};

/** The index of the largest value. */
export function placeOfPeak(values: FloatReader): number {
  let [place, peak] = [0, Number.NEGATIVE_INFINITY];
  eachPieceOf(values, (piece, start) => {
    for (let i = 0; i < piece.length; i++) if (piece[i]! > peak) [place, peak] = [start + i, piece[i]!];
  });
  return place;
}
