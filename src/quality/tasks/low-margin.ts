import { z } from 'zod';
import { formatIds, formatNamed } from '../../formats/precision/formats/index.js';

/** What the candidate's arithmetic rounds to. */
export const roundingSchema = z.enum(['fp32', 'tf32', ...formatIds]);
export type Rounding = z.infer<typeof roundingSchema>;

/**
 * How small a lead over the second best may be, as a share of the scores' root mean square, for a rounding to turn it: some ten to some hundred roundings of
 * the type (2^-11 for TF32, 2^-24 for FP32).
 */
export const lowMarginShare = (rounding: Rounding): number =>
  formatNamed(rounding)?.lowMarginShare ?? (rounding === 'tf32' ? 0.005 : 1e-5);

/** Whether a lead over the second best is within what rounding explains; `scores` are all that was chosen among. */
export const isLowMargin = (margin: number, scores: Float32Array, share: number): boolean =>
  margin <= share * rootMeanSquare(scores);

const rootMeanSquare = (values: Float32Array): number =>
  Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / Math.max(1, values.length));
