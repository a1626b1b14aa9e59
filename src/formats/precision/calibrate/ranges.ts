import type { EventListener } from '../../../events.js';
import type { ChannelMoments } from './channels.js';
import type { QuantizedDtype } from './grid.js';

/**
 * The calibrated range of one tensor, zero included: `amax` is the magnitude that the largest code stands for, by the method requested. It is 0 where every
 * value was 0, and no scale can be made of that.
 */
export interface TensorRange {
  readonly min: number;
  readonly max: number;
  readonly amax: number;
  /** Where they were asked for, and a table does not have them. */
  readonly channels?: ChannelMoments;
}

/** The source of a calibration's log events; its warnings are those of a conversion. */
export const CALIBRATION_LOG = 'calibration';

/** The method that chooses the magnitude of a tensor. */
export type CalibrationMethod = 'max' | 'percentile' | 'entropy' | 'mse';

/** Ranges by the name of the tensor in the FP32 model. */
export type CalibratedRanges = ReadonlyMap<string, TensorRange>;

/** Runs the FP32 model over the samples and gives ranges of exactly these tensors. */
export type Calibrate = (
  model: string,
  tensors: readonly string[],
  context: {
    readonly emit: EventListener;
    readonly signal?: AbortSignal;
    /** The type that the ranges are for; only `mse` looks at it. Null: nothing is made from the ranges, which are extremes then. */
    readonly dtype: QuantizedDtype | null;
    /** The tensors whose channels are wanted too, with the axis of the channels. */
    readonly channels: ReadonlyMap<string, number>;
  },
) => Promise<CalibratedRanges>;
