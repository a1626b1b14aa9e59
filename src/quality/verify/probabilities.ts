import type { Magnitudes } from '../../formats/tensor/compare/magnitudes.js';
import { type FloatReader, PIECE } from '../../formats/tensor/float-reader.js';

/** An output whose values are all from 0 to 1. */
export interface Probabilities {
  /** The largest logit that its values stand for; 0 where some are exactly 0 or 1, as in masks. */
  readonly logit: number;
  /** Root mean square of p * (1 - p), by which an error of a logit moves its probability. */
  readonly steepness: number;
}

/** Nearer to 0 or 1 FP32 rounds. */
const LEAST_PROBABILITY = 2 ** -24;

/** Undefined where values are no probabilities. */
export function probabilitiesOf(values: FloatReader, { least, peak }: Magnitudes): Probabilities | undefined {
  if (!(least >= 0 && peak <= 1)) return undefined;
  if (least === 0) return { logit: 0, steepness: 0 };
  let squares = 0;
  forEachPiece(values, (piece) => {
    for (let i = 0; i < piece.length; i++) squares += (piece[i]! * (1 - piece[i]!)) ** 2;
  });
  return {
    logit: -Math.log(Math.max(Math.min(least, 1 - peak), LEAST_PROBABILITY)),
    steepness: Math.sqrt(squares / values.length),
  };
}

/** The index of the largest value. */
export function placeOfPeak(values: FloatReader): number {
  let [place, peak] = [0, Number.NEGATIVE_INFINITY];
  forEachPiece(values, (piece, start) => {
    for (let i = 0; i < piece.length; i++) if (piece[i]! > peak) [place, peak] = [start + i, piece[i]!];
  });
  return place;
}

function forEachPiece(values: FloatReader, visit: (piece: ArrayLike<number>, start: number) => void): void {
  const piece = values.format.make(Math.min(PIECE, values.length));
  for (let start = 0; start < values.length; start += PIECE) {
    const read = piece.subarray(0, values.length - start);
    values.read(start, read);
    visit(read, start);
  }
}
