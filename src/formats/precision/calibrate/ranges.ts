import type { EventListener } from '../../../events.js';

/** What calibration found of one tensor: the magnitude that the largest code stands for, by the method asked. */
export interface TensorRange {
  readonly min: number;
  readonly max: number;
  readonly amax: number;
}

/** How the magnitude of a tensor is chosen. */
export type CalibrationMethod = 'max' | 'percentile' | 'entropy' | 'mse';

/** Ranges by the name of the tensor in the FP32 model. */
export type CalibratedRanges = ReadonlyMap<string, TensorRange>;

/** Runs the FP32 model over the samples and gives ranges of exactly these tensors. */
export type Calibrate = (
  model: string,
  tensors: readonly string[],
  context: { readonly emit: EventListener; readonly signal?: AbortSignal },
) => Promise<CalibratedRanges>;
