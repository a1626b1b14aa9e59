import { z } from 'zod';

/**
 * How small a lead over the second best may be, as a share of the scores' root mean square, for a rounding to turn it: some ten to some hundred roundings of
 * the type (2^-11 for TF32 and FP16, 2^-8 for BF16, 2^-24 for FP32).
 */
export const closeCallShare = { fp32: 1e-5, tf32: 0.005, fp16: 0.02, bf16: 0.16 } as const satisfies Record<
  Rounding,
  number
>;

/** What the candidate's arithmetic rounds to. */
export const roundingSchema = z.enum(['fp32', 'tf32', 'fp16', 'bf16']);
export type Rounding = z.infer<typeof roundingSchema>;

/** Whether a lead over the second best is within what rounding explains; `scores` are all that was chosen among. */
export const isCloseCall = (margin: number, scores: Float32Array, share: number): boolean =>
  margin <= share * rootMeanSquare(scores);

const rootMeanSquare = (values: Float32Array): number =>
  Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / Math.max(1, values.length));
